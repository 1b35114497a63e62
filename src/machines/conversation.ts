/**
 * A conversation's way of handing messages to the agent: the queue, the turn, and the requests of the agent.
 *
 * A sandbox numbers its turns from 1, and its reports say how many have ended. A report also says up to which change of the
 * conversation it goes (`seq`): one that comes late, from a former owner of this actor or for a second time, changes nothing.
 *
 *  M1 Messages go out one at a time, the oldest first. An urgent one goes before all that wait.
 *  M2 A message goes out only while the runtime rests: no turn runs, and no message is on its way.
 *  M3 A message that is on its way when its sandbox ends waits again, before all others. The next sandbox gets it under
 *     the same id.
 *  M4 After an interrupt a queue that has messages is held. Only a person's next message, or a person who resumes it, lets it go on.
 *  M5 An interrupt names its turn, so a repeated one does not end a later turn. An interrupt that comes while a message
 *     is on its way ends the turn that the message begins or meets, and no later one.
 *  M6 A request is answered once.
 *  M7 Where no person attends, the oldest request is declined as soon as it is reported, and then the next one.
 *  M8 A message that was posted twice at once waits once, also if the second one comes after the first was accepted.
 *  M9 A plan waits for a person, attended or not. The next message settles it. While no turn runs, it holds no message back: its approval
 *     brings one, which begins the next turn.
 */
import { assign, setup } from "xstate";
import type { RequestAnswer } from "../domain/conversation/steering.ts";
import {
  declinable,
  following,
  type StepInput,
  hasRoom,
  isCurrent,
  isInTurn,
  isUnanswered,
  mustDecline,
  noteEvent,
  openPlan,
  START,
} from "./conversation-context.ts";
import type { ConversationContext, ConversationEvent, ConversationState } from "./conversation-events.ts";
import { pureMachine, type Snapshot } from "./step.ts";
import type { Words } from "./word-types.ts";

export type ConversationSnapshot = Snapshot<ConversationState, ConversationContext>;

export type ConversationCommand =
  /** Ends as message.accepted, deferred or refused. */
  | { readonly type: "sendMessage"; readonly sandboxId: string; readonly messageId: string }
  | { readonly type: "interruptTurn"; readonly sandboxId: string; readonly turn: number }
  | ({ readonly type: "answerRequest" } & AnswerOrder);

interface AnswerOrder {
  readonly sandboxId: string;
  readonly requestId: string;
  readonly answer: RequestAnswer;
}

const requireSandbox = ({ sandboxId }: ConversationContext): string => {
  if (sandboxId === null) throw new Error("a command of a conversation without a sandbox");
  return sandboxId;
};

/** Parameters are taken after the assignments before them. */
const sendMessage = {
  type: "sendMessage" as const,
  params: ({ context }: StepInput) => ({
    sandboxId: requireSandbox(context),
    messageId: context.sending ?? "",
  }),
};
const interruptTurn = {
  type: "interruptTurn" as const,
  params: ({ context, event }: StepInput) => ({
    sandboxId: requireSandbox(context),
    turn: "turn" in event ? event.turn : context.turn,
  }),
};
const answerRequest = {
  type: "answerRequest" as const,
  params: ({ context, event }: StepInput): AnswerOrder => {
    const sandboxId = requireSandbox(context);
    if (event.type === "answer.given") return { sandboxId, requestId: event.requestId, answer: event.answer };
    const requestId = context.answered.at(-1) ?? "";
    const reason = context.plans.includes(requestId) ? "message" : "unattended";
    return { sandboxId, requestId, answer: { declined: reason } };
  },
};

const sendNext = {
  guard: "sends" as const,
  target: "sending" as const,
  actions: ["note" as const, "take" as const, sendMessage],
};
/** The message settles a plan (M9). */
const sendOverPlan = {
  guard: "sendsOverPlan" as const,
  target: "sending" as const,
  actions: ["note" as const, "settlePlan" as const, answerRequest, "take" as const, sendMessage],
};
/** Where the end of a wait leads. */
const onwards = [
  {
    guard: "asksNobody" as const,
    target: "requires_action" as const,
    actions: ["note" as const, "decline" as const, answerRequest],
  },
  { guard: "asks" as const, target: "requires_action" as const, actions: "note" as const },
  { guard: "works" as const, target: "running" as const, actions: "note" as const },
  sendOverPlan,
  sendNext,
  { guard: "rests" as const, target: "idle" as const, actions: "note" as const },
];
const note = { actions: "note" as const };
const toIdle = { guard: "isCurrent" as const, target: "idle" as const, actions: "note" as const };
const post = { guard: "hasRoom" as const, ...note };
const cancel = { guard: "isQueued" as const, ...note };
const resume = { guard: "isHeld" as const, ...note };
const interrupt = { actions: ["note" as const, interruptTurn] };
/** While the agent works, an urgent message ends its turn. */
const postDuringTurn = [{ guard: "hasRoomAndIsUrgent" as const, ...interrupt }, post];
/** M9. */
const postDuringRequest = [
  { ...sendOverPlan, guard: "sendsNewOverPlan" as const },
  { ...sendNext, guard: "sendsNew" as const },
  { guard: "hasRoomAndIsUrgent" as const, ...interrupt },
  {
    guard: "hasRoomAndPlanWaits" as const,
    actions: ["note" as const, "settlePlan" as const, answerRequest],
  },
  post,
];

/** Where a report of the runtime leads. */
const onwardsWords = {
  requires_action: "When the agent asks a person, it waits for the answer.",
  running: "When a turn of the agent begins, the agent works.",
  sending: "When the agent rests, the next waiting message goes out.",
  idle: "When the agent rests and no message may go out, the conversation is idle.",
};
const goneWords = "If the sandbox ends, its turn is over. A message on its way waits again.";
const cancelledWords = "A person can take a waiting message back.";
const resumedWords = "A person can let the held queue go on.";

const sends = (args: StepInput): boolean =>
  isCurrent(args) && following(args) === "sending" && noteEvent(args.context, args.event).sending === null;
const sendsNew = (args: StepInput): boolean =>
  hasRoom(args.context, args.event) && following(args) === "sending";
/** Whether a plan waits for an answer after the event. */
const meetsPlan = ({ context, event }: StepInput): boolean => openPlan(noteEvent(context, event)) !== null;

export const conversationMachine = setup({
  types: {
    context: {} as ConversationContext,
    events: {} as ConversationEvent,
    meta: {} as Words<ConversationSnapshot["state"], ConversationEvent, ConversationCommand>,
  },
  guards: {
    asksNobody: (args) => isCurrent(args) && following(args) === "requires_action" && mustDecline(args),
    asks: (args) => isCurrent(args) && following(args) === "requires_action",
    works: (args) => isCurrent(args) && following(args) === "running",
    sends,
    sendsOverPlan: (args) => sends(args) && meetsPlan(args),
    rests: (args) => isCurrent(args) && following(args) === "idle",
    isCurrent,
    startsStopped: ({ context, event }) =>
      isCurrent({ context, event }) && context.stopping && "turn" in event && event.turn > context.ended,
    hasRoom: ({ context, event }) => hasRoom(context, event),
    hasRoomAndIsUrgent: ({ context, event }) =>
      hasRoom(context, event) && event.type === "message.posted" && event.isUrgent,
    isQueued: ({ context, event }) => "messageId" in event && context.queue.includes(event.messageId),
    isHeld: ({ context }) => context.held,
    isHeldAndSends: (args) => args.context.held && following(args) === "sending",
    isHeldAndSendsOverPlan: (args) => args.context.held && following(args) === "sending" && meetsPlan(args),
    sendsNew,
    sendsNewOverPlan: (args) => sendsNew(args) && meetsPlan(args),
    hasRoomAndPlanWaits: (args) => hasRoom(args.context, args.event) && meetsPlan(args),
    isInTurn: ({ context }) => isInTurn(context),
    isUnanswered: ({ context, event }) =>
      event.type === "answer.given" && isUnanswered(context, event.requestId),
    isUnansweredAndSends: (args) =>
      args.event.type === "answer.given" &&
      isUnanswered(args.context, args.event.requestId) &&
      following(args) === "sending",
  },
  actions: {
    sendMessage: (_, _params: { readonly sandboxId: string; readonly messageId: string }) => undefined,
    interruptTurn: (_, _params: { readonly sandboxId: string; readonly turn: number }) => undefined,
    answerRequest: (_, _params: AnswerOrder) => undefined,
    note: assign(({ context, event }) => noteEvent(context, event)),
    take: assign(({ context: { queue } }) => ({ sending: queue[0] ?? null, queue: queue.slice(1) })),
    decline: assign(({ context }) => ({ answered: [...context.answered, declinable(context) ?? ""] })),
    settlePlan: assign(({ context }) => ({ answered: [...context.answered, openPlan(context) ?? ""] })),
  },
}).createMachine({
  id: "conversation",
  meta: {
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
    commands: {
      sendMessage: "send the message to the agent",
      interruptTurn: "interrupt the agent's turn",
      answerRequest: "send the answer to the agent",
    },
  },
  context: START,
  initial: "idle",
  states: {
    idle: {
      description: "The agent rests, or no sandbox runs.",
      meta: {
        next: {
          "message.posted": {
            sending: "A message goes to the agent at once.",
            idle: "A message waits until a sandbox runs and the agent rests.",
          },
          "message.cancelled": cancelledWords,
          "queue.resumed": {
            sending: "A person can let the held queue go on: its first message goes out.",
            idle: resumedWords,
          },
          "runtime.reported": onwardsWords,
          "runtime.gone": "If the sandbox ends, messages wait for the next one.",
        },
      },
      on: {
        "message.posted": [{ ...sendNext, guard: "sendsNew" }, post],
        "message.cancelled": cancel,
        "queue.resumed": [{ ...sendNext, guard: "isHeldAndSends" }, resume],
        "runtime.reported": onwards,
        "runtime.gone": toIdle,
      },
    },
    sending: {
      description: "A message is on its way to the agent.",
      meta: {
        next: {
          "message.posted": "Another message waits in the queue.",
          "message.cancelled": cancelledWords,
          "message.accepted": {
            ...onwardsWords,
            running: "When the agent gets the message, it works on it.",
          },
          "message.deferred": {
            ...onwardsWords,
            running: "If the agent is at work, the message waits for the end of the turn.",
          },
          "message.refused": {
            ...onwardsWords,
            idle: "If the agent refuses the message, the message fails.",
          },
          "queue.resumed": resumedWords,
          "interrupt.requested": "An interrupt ends the turn of this message as soon as it begins.",
          "runtime.reported": onwardsWords,
          "runtime.gone": goneWords,
        },
      },
      on: {
        "message.posted": post,
        "message.cancelled": cancel,
        "message.accepted": [{ guard: "startsStopped", target: "running", ...interrupt }, ...onwards],
        "message.deferred": [{ guard: "startsStopped", target: "running", ...interrupt }, ...onwards],
        "message.refused": onwards,
        "queue.resumed": resume,
        "interrupt.requested": note,
        // Another sandbox has taken over (M3), or the report says nothing new.
        "runtime.reported": [...onwards, note],
        "runtime.gone": toIdle,
      },
    },
    running: {
      description: "The agent works on a turn.",
      meta: {
        next: {
          "message.posted": "A message waits for the end of the turn. An urgent one ends the turn.",
          "message.cancelled": cancelledWords,
          "queue.resumed": resumedWords,
          "interrupt.requested": "A person can interrupt the agent: the turn ends.",
          "runtime.reported": {
            ...onwardsWords,
            running: "When one turn ends and another one begins, the agent works on.",
          },
          "runtime.gone": goneWords,
        },
      },
      on: {
        "message.posted": postDuringTurn,
        "message.cancelled": cancel,
        "queue.resumed": resume,
        "interrupt.requested": interrupt,
        "runtime.reported": onwards,
        "runtime.gone": toIdle,
      },
    },
    requires_action: {
      description: "The agent has asked something and waits for the answer.",
      meta: {
        next: {
          "message.posted": {
            sending:
              "If the agent waits with a plan after its turn, a message goes to it at once and settles the plan.",
            requires_action:
              "A message waits for the end of the turn. An urgent one ends the turn. Any message settles a plan.",
          },
          "message.cancelled": cancelledWords,
          "queue.resumed": {
            sending:
              "A person can let the held queue go on: its first message goes out, and settles the plan that waits.",
            requires_action: resumedWords,
          },
          "interrupt.requested": "A person can interrupt the agent: the turn ends, and the request with it.",
          "answer.given": {
            sending: "If the agent's turn has ended with the plan, an approval begins the next turn.",
            requires_action:
              "An answer goes to the agent. Without one, the request is declined when its time is over.",
          },
          "runtime.reported": {
            ...onwardsWords,
            running: "When the request is answered, the agent works on.",
          },
          "runtime.gone": goneWords,
        },
      },
      on: {
        "message.posted": postDuringRequest,
        "message.cancelled": cancel,
        "queue.resumed": [{ ...sendOverPlan, guard: "isHeldAndSendsOverPlan" }, resume],
        "interrupt.requested": { guard: "isInTurn", ...interrupt },
        "answer.given": [
          {
            guard: "isUnansweredAndSends",
            target: "sending",
            actions: ["note", answerRequest, "take", sendMessage],
          },
          { guard: "isUnanswered", actions: ["note", answerRequest] },
        ],
        "runtime.reported": onwards,
        "runtime.gone": toIdle,
      },
    },
  },
});

export const conversation = pureMachine<
  ConversationSnapshot,
  ConversationEvent,
  ConversationCommand,
  Record<string, never>
>(conversationMachine);
