/**
 * A session's state in one word for people (`activity` of the API). The page, the command line and the lists of the store
 * use this rule.
 *
 *  A1 A session has one activity at a time, whatever its facts are.
 *  A2 It needs a person exactly while `oldestWait` has something.
 *  A3 A failure stays until a restart or a later turn (run-outcome.ts). That of a turn ends with the change request, too, and
 *     when a person stops the session.
 *  A4 Work counts as unmerged until its change request ends. Later pushes are new work.
 *  A5 A session with a prompt works from its first moment on, not only from the first report of its agent.
 *  A6 An agent that waited for a person when its session went to sleep still needs her, until a restart or the archive.
 *  A7 A session whose restart waits for a place is queued: it has not finished.
 */
import type { TurnNow } from "../conversation/conversation.ts";
import type { LastTurn } from "./last-turn.ts";
import type { TurnRequest } from "../conversation/row-texts.ts";
import type { ACTIVITY_WORDS } from "./activity-words.ts";
import { hasRunFailed } from "./run-outcome.ts";
import { isLive, type SessionStatus, type StopReason } from "./session.ts";

export const ACTIVITIES = [
  "queued",
  "starting",
  "working",
  "needs_you",
  "ready_for_review",
  "resting",
  "asleep",
  "failed",
  "done",
] as const satisfies readonly (keyof typeof ACTIVITY_WORDS)[];
export type Activity = (typeof ACTIVITIES)[number];

/** Of a session's branch against its base, when it was last pushed. */
export interface BranchChanges {
  readonly files: number;
  readonly additions: number;
  readonly deletions: number;
  /** The branch's commit. */
  readonly head: string;
}

/** What decides an activity. */
export interface ActivityFacts {
  readonly status: SessionStatus;
  readonly conversation: {
    readonly turn: {
      readonly state: TurnNow["state"];
      readonly since: number;
      readonly waitingFor: string | null;
    };
    readonly turnRequest: TurnRequest | null;
  } | null;
  /** The agent's oldest call that waits for an approval. */
  readonly oldestApproval: {
    readonly id: string;
    readonly connector: string;
    readonly tool: string;
    readonly at: number;
  } | null;
  readonly unsaved: { readonly since: number } | null;
  readonly stopReason: StopReason | null;
  /** The request for which the agent waited when the service stopped the session. */
  readonly asked: TurnRequest | null;
  /** Whether a restart waits for the end of a stop, or for a place after it (machines/session.ts S7). */
  readonly restarts: boolean;
  readonly initialPrompt: string | null;
  readonly lastTurn: Pick<LastTurn, "state" | "error"> | null;
  /** The newest one of the session, with its branch's last known commit. */
  readonly changeRequest: {
    readonly status: "open" | "merged" | "closed";
    readonly head: string | null;
  } | null;
  readonly changes: Pick<BranchChanges, "files" | "head"> | null;
}

/** Something that waits for a person. */
export interface Wait {
  readonly kind: TurnRequest["kind"] | "approval" | "work_unsaved";
  /** Of the conversation's request, or of the approval. Null if no answer is taken any more, as of a request whose session sleeps. */
  readonly id: string | null;
  readonly text: string;
}

const isTurn = ({ status, conversation }: ActivityFacts, state: TurnNow["state"]): boolean =>
  isLive(status) && conversation?.turn.state === state;

/** Why the service stops a session by itself. A message starts it again. */
export const SLEEPS = ["idle", "made_room", "outdated"] as const satisfies readonly StopReason[];

/** Whether its agent waited for a person when it went to sleep (A6). The request is closed: the answer is a message. */
export const asksAsleep = ({
  status,
  stopReason,
  asked,
}: Pick<ActivityFacts, "status" | "stopReason" | "asked">): boolean =>
  status === "stopped" && SLEEPS.some((reason) => reason === stopReason) && asked !== null;

/** What waits longest for a person. */
export const oldestWait = (facts: ActivityFacts): Wait | null => {
  const { conversation, asked, oldestApproval: call, unsaved } = facts;
  const waits: (Wait & { readonly since: number })[] = [];
  if (conversation !== null && isTurn(facts, "requires_action")) {
    const { turn, turnRequest } = conversation;
    const request = turnRequest ?? { kind: "question", text: "The agent waits for an answer." };
    waits.push({ ...request, id: turn.waitingFor, since: turn.since });
  }
  // It waits longer than all else: nothing else can begin in its sleep.
  if (asked !== null && asksAsleep(facts)) waits.push({ ...asked, id: null, since: 0 });
  if (call !== null)
    waits.push({ kind: "approval", id: call.id, text: `${call.tool} of ${call.connector}`, since: call.at });
  if (unsaved !== null && isLive(facts.status))
    waits.push({
      kind: "work_unsaved",
      id: null,
      text: "Its work cannot be saved, so its sandbox stays.",
      since: unsaved.since,
    });
  const [oldest] = waits.toSorted((one, other) => one.since - other.since);
  if (oldest === undefined) return null;
  const { kind, id, text } = oldest;
  return { kind, id, text };
};

/** A7. */
const isQueued = ({ status, restarts }: ActivityFacts): boolean =>
  status === "queued" || (restarts && (status === "stopped" || status === "failed"));

const isAtWork = (facts: ActivityFacts): boolean =>
  isTurn(facts, "running") ||
  (facts.status === "running" && facts.initialPrompt !== null && facts.lastTurn === null);

/** Whether the newest change request has ended, and nothing was pushed since. */
const isOver = ({ changeRequest, changes }: ActivityFacts): boolean =>
  changeRequest !== null &&
  changeRequest.status !== "open" &&
  (changes === null || changes.files === 0 || changes.head === changeRequest.head);

export const sessionActivity = (facts: ActivityFacts): Activity => {
  const { status, changeRequest, changes } = facts;
  if (oldestWait(facts) !== null) return "needs_you";
  if (isQueued(facts)) return "queued";
  if (status === "branching" || status === "provisioning") return "starting";
  if (status === "failed") return "failed";
  if (isAtWork(facts)) return "working";
  if (status === "completed" || isOver(facts)) return "done";
  if (hasRunFailed(facts) && facts.stopReason !== "requested") return "failed";
  if (changeRequest?.status === "open" || (changes !== null && changes.files > 0)) return "ready_for_review";
  return status === "running" ? "resting" : "asleep";
};
