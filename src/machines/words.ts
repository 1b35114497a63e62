/**
 * What the machines' states, events and commands mean, in sentences for people. The API, the dashboard and the command
 * line show them. A test checks that no state, event, command or possible step is without one.
 */
import type { AccountCommand, AccountEvent, AccountSnapshot } from "./account.ts";
import type { ChangeRequestCommand, ChangeRequestEvent, ChangeRequestState } from "./change-request.ts";
import type { ConversationCommand, ConversationEvent, ConversationState } from "./conversation.ts";
import { environmentBuildWords } from "./environment-build-words.ts";
import type { MachineName } from "./definition.ts";
import type { SandboxCommand, SandboxEvent, SandboxSnapshot } from "./sandbox.ts";
import type { SessionCommand, SessionEvent, SessionSnapshot } from "./session.ts";
import type { Named } from "./step.ts";
import type { Words } from "./word-types.ts";
import type { TriggerCommand, TriggerEvent, TriggerSnapshot } from "./trigger.ts";

const session: Words<SessionSnapshot["state"], SessionEvent, SessionCommand> = {
  states: {
    provisioning: "The session starts: its branch is created, then its sandbox boots.",
    running: "The session runs in its sandbox.",
    stopped: "The session is stopped. It uses no slot.",
    failed: "The session has failed. It uses no slot.",
  },
  events: {
    created: "The session was created.",
    "branch.created": "The session's branch was created.",
    "branch.failed": "The session's branch could not be created.",
    "sandbox.live": "The sandbox reported that it is ready.",
    "sandbox.failed": "The sandbox could not boot.",
    "sandbox.lost": "The sandbox ended by itself.",
    "sandbox.ended": "The sandbox ended as requested.",
    "stop.requested": "Somebody asked for a stop.",
    "delete.requested": "Somebody deleted the session.",
    "idle.elapsed": "The session was idle for too long.",
    "user.deactivated": "The person who started the session was deactivated.",
    "restart.requested": "Somebody asked for a restart.",
    "slot.refused": "A restart found no free slot.",
  },
  next: {
    provisioning: {
      "branch.created": "When the branch exists, the sandbox is ordered.",
      "branch.failed": "If the branch cannot be created, the session fails.",
      "sandbox.live": "When the sandbox answers, the session runs.",
      "sandbox.failed": "If the sandbox does not answer in time, or its boot fails, the session fails.",
      "sandbox.lost": "If the sandbox ends by itself, the session fails.",
      "stop.requested": "A stop ends the session at once.",
      "delete.requested": "A deletion ends the session at once and removes it from the list.",
      "user.deactivated": "If the person who started it is deactivated, the session ends at once.",
    },
    running: {
      "sandbox.lost": "If the sandbox ends by itself, the session fails.",
      "sandbox.ended": "When the sandbox has saved its work and ended, the session is stopped.",
      "stop.requested": "After a stop, the sandbox saves its work and ends. Then the session is stopped.",
      "delete.requested":
        "A deletion removes the session from the list. Its sandbox saves its work and ends.",
      "idle.elapsed":
        "If the session is unused and its agent does no work until then, the sandbox saves its work and ends.",
      "user.deactivated": "If the person who started it is deactivated, the sandbox saves its work and ends.",
    },
    stopped: {
      "restart.requested": "A restart boots a new sandbox on the same branch, if a slot is free.",
      "delete.requested": "A deletion removes the session from the list.",
    },
    failed: {
      "restart.requested": "A restart boots a new sandbox on the same branch, if a slot is free.",
      "delete.requested": "A deletion removes the session from the list.",
    },
  },
  commands: {
    createBranch: "create the session's branch",
    provisionSandbox: "order the sandbox",
    tearDownSandbox: "end the sandbox",
    signalFreeSlot: "tell the queue that a slot is free",
  },
};

const sandbox: Words<SandboxSnapshot["state"], SandboxEvent, SandboxCommand> = {
  states: {
    provisioning: "The sandbox boots, or waits for the build of its environment or for a place to boot.",
    active: "The sandbox runs.",
    stopped: "The sandbox was stopped and removed.",
    error: "The sandbox failed and was removed.",
    archived: "The sandbox was hibernated and removed. Its work is saved.",
  },
  events: {
    created: "The sandbox was ordered.",
    "daemon.ready": "The sandbox's daemon answered.",
    "boot.failed": "The boot failed.",
    "sandbox.lost": "The sandbox ended by itself.",
    "stop.requested": "The session asked the sandbox to stop.",
    "archive.requested": "The session asked the sandbox to hibernate.",
    "work.saved": "The sandbox answered the request to save its work.",
  },
  next: {
    provisioning: {
      "daemon.ready": "When its daemon answers, the sandbox is active and the session runs.",
      "boot.failed": "If the boot fails or takes too long, the sandbox is removed and the session fails.",
      "stop.requested": "If the session stops, the sandbox is removed at once. It has no work to save yet.",
      "archive.requested": "If the session is deleted, the sandbox is removed at once.",
    },
    active: {
      "sandbox.lost": {
        error: "If its processes end, the sandbox is removed and the session fails.",
        stopped: "If its processes end before the work is saved, the sandbox is removed without it.",
        archived: "If its processes end before the work is saved, the sandbox is removed without it.",
      },
      "stop.requested": "If the session stops, the sandbox saves its work first.",
      "archive.requested": "If the session is idle or deleted, the sandbox saves its work first.",
      "work.saved": "When the save has ended, the sandbox is removed.",
    },
    stopped: {},
    error: {},
    archived: {},
  },
  commands: {
    bootSandbox: "boot the sandbox",
    watchSandbox: "watch whether the sandbox runs",
    saveWork: "save unpushed work",
    destroySandbox: "remove the sandbox",
    reportLive: "tell the session that the sandbox is ready",
    reportFailed: "tell the session that the boot failed",
    reportLost: "tell the session that the sandbox is lost",
    reportEnded: "tell the session that the sandbox has ended",
  },
};

const trigger: Words<TriggerSnapshot["state"], TriggerEvent, TriggerCommand> = {
  states: {
    waiting: "The trigger has no timer.",
    armed: "The trigger waits for its next instant.",
    firing: "The trigger looks which instants are due, and fires.",
  },
  events: {
    created: "The trigger was loaded.",
    "timer.elapsed": "It was time to look.",
    "due.accounted": "Every due instant got its row in the ledger.",
    "look.failed": "The look failed too often and was given up.",
  },
  next: {
    waiting: { "timer.elapsed": "The scheduler asks for a look." },
    armed: { "timer.elapsed": "At its next instant, the trigger fires." },
    firing: {
      "timer.elapsed": "If another instant comes, a second look follows this one.",
      "due.accounted": {
        armed: "When every due instant has its row, the timer is set for the next one.",
        waiting: "If no instant lies ahead, the trigger waits without a timer.",
        firing: "If another instant came meanwhile, a second look follows.",
      },
      "look.failed": "If the look fails too often, the scheduler asks for another one.",
    },
  },
  commands: {
    accountForDue: "fire or skip the instants that are due",
    armTimer: "set the timer",
  },
};

const account: Words<AccountSnapshot["state"], AccountEvent, AccountCommand> = {
  states: {
    idle: "Nothing moves in the queue until a slot is freed or a fire arrives.",
    draining: "The queue is checked: waiting fires start in free slots.",
    pausing: "The last check of the queue failed. Another one follows in a second.",
  },
  events: {
    created: "The account was loaded.",
    "slot.freed": "A session ended and freed its slot.",
    "fire.queued": "A fire went into the queue.",
    "cap.changed": "The number of slots may have changed.",
    "drain.finished": "The check of the queue ended.",
    "drain.failed": "The database could not be reached.",
    "pause.elapsed": "The pause after a failed check was over.",
  },
  next: {
    idle: {
      "slot.freed": "When a session ends, the oldest waiting fire starts in its slot.",
      "fire.queued": "When a fire goes into the queue, free slots are looked for.",
      "cap.changed": "When the account gets more slots, waiting fires start.",
    },
    draining: {
      "slot.freed": "If a session ends during the check, another check follows.",
      "fire.queued": "If a fire goes into the queue during the check, another check follows.",
      "cap.changed": "If the number of slots changes during the check, another check follows.",
      "drain.finished": {
        idle: "When no waiting fire has a free slot, the check ends.",
        draining: "If more fires wait and slots are free, the check goes on.",
      },
      "drain.failed": "If the database cannot be reached, the check is repeated after a second.",
    },
    pausing: { "pause.elapsed": "After the pause, the queue is checked again." },
  },
  commands: { drainQueue: "start waiting fires in free slots", pause: "wait before the next check" },
};

/** Where a report of the runtime leads. */
const onwards = {
  requires_action: "When the agent asks a person, it waits for the answer.",
  running: "When a turn of the agent begins, the agent works.",
  sending: "When the agent rests, the next waiting message goes out.",
  idle: "When the agent rests and no message may go out, the conversation is idle.",
};
const gone = "If the sandbox ends, its turn is over. A message on its way waits again.";
const cancelled = "A person can take a waiting message back.";
const resumed = "A person can let the held queue go on.";

const conversation: Words<ConversationState, ConversationEvent, ConversationCommand> = {
  states: {
    idle: "The agent rests, or no sandbox runs.",
    sending: "A message is on its way to the agent.",
    running: "The agent works on a turn.",
    requires_action: "The agent has asked something and waits for the answer.",
  },
  events: {
    created: "The conversation began.",
    "message.posted": "A message was posted.",
    "message.cancelled": "A waiting message was taken back.",
    "message.accepted": "The agent got the message.",
    "message.deferred": "The agent was at work. The message waits again.",
    "message.refused": "The agent refused the message.",
    "queue.resumed": "A person let the queue go on.",
    "interrupt.requested": "A person interrupted the agent.",
    "runtime.reported": "The agent's runtime reported what it does.",
    "runtime.gone": "The sandbox ended.",
    "answer.given": "A request of the agent was answered.",
  },
  next: {
    idle: {
      "message.posted": {
        sending: "A message goes to the agent at once.",
        idle: "A message waits until a sandbox runs and the agent rests.",
      },
      "message.cancelled": cancelled,
      "queue.resumed": {
        sending: "A person can let the held queue go on: its first message goes out.",
        idle: resumed,
      },
      "runtime.reported": onwards,
      "runtime.gone": "If the sandbox ends, messages wait for the next one.",
    },
    sending: {
      "message.posted": "Another message waits in the queue.",
      "message.cancelled": cancelled,
      "message.accepted": { ...onwards, running: "When the agent gets the message, it works on it." },
      "message.deferred": {
        ...onwards,
        running: "If the agent is at work, the message waits for the end of the turn.",
      },
      "message.refused": { ...onwards, idle: "If the agent refuses the message, the message fails." },
      "queue.resumed": resumed,
      "interrupt.requested": "An interrupt ends the turn of this message as soon as it begins.",
      "runtime.reported": onwards,
      "runtime.gone": gone,
    },
    running: {
      "message.posted": "A message waits for the end of the turn. An urgent one ends the turn.",
      "message.cancelled": cancelled,
      "queue.resumed": resumed,
      "interrupt.requested": "A person can interrupt the agent: the turn ends.",
      "runtime.reported": {
        ...onwards,
        running: "When one turn ends and another one begins, the agent works on.",
      },
      "runtime.gone": gone,
    },
    requires_action: {
      "message.posted": "A message waits for the end of the turn. An urgent one ends the turn.",
      "message.cancelled": cancelled,
      "queue.resumed": resumed,
      "interrupt.requested": "A person can interrupt the agent: the turn ends, and the request with it.",
      "answer.given":
        "An answer goes to the agent. Without one, the request is declined when its time is over.",
      "runtime.reported": { ...onwards, running: "When the request is answered, the agent works on." },
      "runtime.gone": gone,
    },
  },
  commands: {
    sendMessage: "send the message to the agent",
    interruptTurn: "interrupt the agent's turn",
    answerRequest: "send the answer to the agent",
  },
};

const finished = "When the manifest is read from the base branch, the change request is merged.";
const hostMerged = "If its pull request is merged at the code host, the change request is merged.";

const changeRequest: Words<ChangeRequestState, ChangeRequestEvent, ChangeRequestCommand> = {
  states: {
    open: "The change request is open.",
    merging: "A merge, or a look at a former merge, is under way.",
    merged: "The work is in the base branch.",
    closed: "The change request was closed without a merge.",
  },
  events: {
    created: "The change request was opened.",
    "merge.requested": "Somebody asked for a merge.",
    "close.requested": "Somebody closed the change request.",
    "look.requested": "The service looked whether a former merge was made.",
    "sides.noted": "The two commits of the merge were noted.",
    "merged.in_git": "The base branch has the work.",
    "merge.missed": "The base branch does not have the noted work.",
    "merge.refused": "The merge was refused.",
    "manifest.read": "The manifest was read from the base branch.",
    "manifest.failed": "The manifest could not be read. It is read again later.",
    "pull.merged": "The pull request was merged at the code host.",
    "pull.closed": "The pull request was closed at the code host.",
  },
  next: {
    open: {
      "merge.requested": "A person can merge it.",
      "close.requested": {
        closed: "A person or the session can close it.",
        merging: "Before it is closed, the service looks whether a former merge was made.",
      },
      "look.requested": "The service looks whether a former merge was made.",
      "pull.merged": hostMerged,
      "pull.closed": {
        closed: "If its pull request is closed at the code host, the change request is closed.",
        merging: "If its pull request is closed, the service looks whether a former merge was made.",
      },
    },
    merging: {
      "sides.noted": "When the two commits are noted, git merges them.",
      "merged.in_git": "When the base branch has the work, the manifest is read.",
      "merge.missed": {
        open: "If the base branch does not have the noted work, the change request stays open.",
        closed: "If the base branch does not have the noted work, the change request is closed.",
      },
      "merge.refused": "If the branches conflict or git refuses, the change request is open again.",
      "manifest.read": finished,
      "manifest.failed": "If the manifest cannot be read, the change request is merged all the same.",
      "close.requested": "If it is closed during the look, it is closed afterwards.",
      "pull.closed": "If its pull request is closed during the look, it is closed afterwards.",
    },
    merged: {},
    closed: { "pull.merged": hostMerged },
  },
  commands: {
    noteSides: "compare the branches",
    mergeInGit: "merge the branches in git",
    lookForMerge: "look for the merge in the base branch",
    readManifest: "read the manifest from the base branch",
    mirrorPull: "bring the pull request in line",
    refreshOthers: "look at the project's other change requests again",
  },
};

type AnyWords = Words<string, Named, Named>;

const WORDS: Readonly<Record<MachineName, AnyWords>> = {
  session,
  sandbox,
  trigger,
  account,
  conversation,
  "change-request": changeRequest,
  "environment-build": environmentBuildWords,
};

export const stateWords = (machine: MachineName, state: string): string | null =>
  WORDS[machine].states[state] ?? null;

export const eventWords = (machine: MachineName, event: string): string | null =>
  WORDS[machine].events[event] ?? null;

export const commandWords = (machine: MachineName, command: string): string | null =>
  WORDS[machine].commands[command] ?? null;

export interface Possible {
  readonly from: string;
  readonly event: string;
  readonly to: string;
}

/** What would happen. Null: there is no sentence for this step. */
export const nextWords = (machine: MachineName, { from, event, to }: Possible): string | null => {
  const words = WORDS[machine].next[from]?.[event];
  return typeof words === "object" ? (words[to] ?? null) : (words ?? null);
};
