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
 *  M4 After an interrupt the queue is held. Only a person's next message, or a person who resumes it, lets it go on.
 *  M5 An interrupt names its turn, so a repeated one does not end a later turn. An interrupt that comes while a message
 *     is on its way ends the turn that the message begins or meets, and no later one.
 *  M6 A request is answered once.
 *  M7 Where no person attends, the oldest request is declined as soon as it is reported, and then the next one.
 *  M8 A message that was posted twice at once waits once, also if the second one comes after the first was accepted.
 */
import { assign, setup } from "xstate";
import type { Author, ItemError } from "../domain/conversation.ts";
import { QUEUE_MAX, type MessageDraft, type RequestAnswer } from "../domain/steering.ts";
import { pureMachine, type Snapshot } from "./step.ts";

export interface ConversationContext {
  /** The sandbox whose runtime takes messages. Null: none does now. */
  readonly sandboxId: string | null;
  /** The number of the newest turn that has begun in that sandbox. */
  readonly turn: number;
  /** How many of its turns have ended. */
  readonly ended: number;
  /** Up to which change of the conversation the newest report goes. */
  readonly seq: number;
  /** Open requests, the oldest first. */
  readonly requests: readonly string[];
  /** Open requests that have their answer. */
  readonly answered: readonly string[];
  /** Messages that wait, the next one first. */
  readonly queue: readonly string[];
  /** The message that is on its way to the runtime. */
  readonly sending: string | null;
  /** The last messages that left the queue for good (M8). */
  readonly settled: readonly string[];
  /** The queue waits for a person (M4). */
  readonly held: boolean;
  /** The turn of the message on its way ends as soon as it has a number. */
  readonly stopping: boolean;
  /** Whether a person may answer requests of this session. */
  readonly attended: boolean;
}
export type ConversationState = "idle" | "sending" | "running" | "requires_action";
export type ConversationSnapshot = Snapshot<ConversationState, ConversationContext>;

export type ConversationEvent =
  | {
      readonly type: "message.posted";
      readonly messageId: string;
      readonly isUrgent: boolean;
      readonly message: MessageDraft;
    }
  | { readonly type: "message.cancelled"; readonly messageId: string }
  /** The runtime has the message. It begins the turn of this number. */
  | (Outcome<"message.accepted"> & { readonly turn: number })
  /** The runtime does not rest: the turn of this number runs. */
  | (Outcome<"message.deferred"> & { readonly turn: number })
  /** The message will never be accepted. */
  | (Outcome<"message.refused"> & { readonly error: ItemError })
  | { readonly type: "queue.resumed" }
  | { readonly type: "interrupt.requested" }
  | {
      readonly type: "runtime.reported";
      readonly sandboxId: string;
      /** Up to which change of the conversation this report goes. */
      readonly seq: number;
      /** How many turns have ended. */
      readonly ended: number;
      /** Whether another turn runs. */
      readonly isWorking: boolean;
      readonly requests: readonly string[];
      readonly isAttended: boolean;
    }
  /** The sandbox has ended, or another one takes its place. */
  | { readonly type: "runtime.gone"; readonly sandboxId: string }
  | {
      readonly type: "answer.given";
      readonly requestId: string;
      readonly answer: RequestAnswer;
      /** Null: no person answers. */
      readonly by: Author | null;
    };

interface Outcome<Type extends string> {
  readonly type: Type;
  readonly messageId: string;
  readonly sandboxId: string;
}

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

const START: ConversationContext = {
  sandboxId: null,
  turn: 0,
  ended: 0,
  seq: 0,
  requests: [],
  answered: [],
  queue: [],
  sending: null,
  settled: [],
  held: false,
  stopping: false,
  attended: true,
};

/** What no longer holds when a sandbox ends (M3). */
const without = (context: ConversationContext): ConversationContext => ({
  ...START,
  seq: context.seq,
  queue: context.sending === null ? context.queue : [context.sending, ...context.queue],
  settled: context.settled,
  held: context.held,
});

type Reported = Extract<ConversationEvent, { type: "runtime.reported" }>;

const reported = (former: ConversationContext, event: Reported): ConversationContext => {
  if (event.seq < former.seq) return former;
  const context = former.sandboxId === event.sandboxId ? former : without(former);
  if (event.ended < context.ended) return context;
  return {
    ...context,
    sandboxId: event.sandboxId,
    ended: event.ended,
    seq: event.seq,
    turn: Math.max(context.turn, event.ended + Number(event.isWorking || event.requests.length > 0)),
    attended: event.isAttended,
    requests: event.requests,
    answered: context.answered.filter((id) => event.requests.includes(id)),
  };
};

/** A message is known by its id: it waits once (M8). */
const hasRoom = ({ queue, sending, settled }: ConversationContext, event: ConversationEvent): boolean =>
  event.type === "message.posted" &&
  queue.length < QUEUE_MAX &&
  sending !== event.messageId &&
  !queue.includes(event.messageId) &&
  !settled.includes(event.messageId);

/** How many messages are remembered (M8): requests that are under way at the same time are far fewer. */
const SETTLED_KEPT = 20;
const settledWith = ({ settled }: ConversationContext, id: string): readonly string[] =>
  [...settled, id].slice(-SETTLED_KEPT);

const interrupted = (context: ConversationContext): ConversationContext => ({
  ...context,
  held: context.queue.length > 0,
  stopping: context.sending !== null,
});

/** The message on its way has arrived, or never will. */
const handled = (context: ConversationContext, id: string): ConversationContext => ({
  ...context,
  sending: null,
  settled: settledWith(context, id),
  stopping: false,
});

/** The context after the event, before the next message is taken from the queue. */
const noted = (context: ConversationContext, event: ConversationEvent): ConversationContext => {
  const { queue } = context;
  switch (event.type) {
    case "message.posted":
      return {
        ...context,
        queue: event.isUrgent ? [event.messageId, ...queue] : [...queue, event.messageId],
        held: context.held && event.message.author.kind === "service",
        stopping: context.stopping || (event.isUrgent && context.sending !== null),
      };
    case "message.cancelled":
      return {
        ...context,
        queue: queue.filter((id) => id !== event.messageId),
        settled: settledWith(context, event.messageId),
      };
    case "message.accepted":
      return { ...handled(context, event.messageId), turn: Math.max(context.turn, event.turn) };
    case "message.deferred":
      return {
        ...context,
        sending: null,
        stopping: false,
        turn: Math.max(context.turn, event.turn),
        queue: [event.messageId, ...queue],
      };
    case "message.refused":
      return handled(context, event.messageId);
    case "queue.resumed":
      return { ...context, held: false };
    case "interrupt.requested":
      return interrupted(context);
    case "runtime.reported":
      return reported(context, event);
    case "runtime.gone":
      return without(context);
    case "answer.given":
      return { ...context, answered: [...context.answered, event.requestId] };
  }
};

interface Given {
  readonly context: ConversationContext;
  readonly event: ConversationEvent;
}

/** The state that follows. A message that is next in the queue is still there. */
const following = ({ context, event }: Given): ConversationState => {
  const after = noted(context, event);
  if (after.sending !== null) return "sending";
  if (after.requests.length > 0) return "requires_action";
  if (after.turn > after.ended) return "running";
  return after.sandboxId !== null && !after.held && after.queue.length > 0 ? "sending" : "idle";
};

const OUTCOMES: ReadonlySet<string> = new Set(["message.accepted", "message.deferred", "message.refused"]);

/** Whether the event is about something that the conversation still waits for. */
const isCurrent = ({ context, event }: Given): boolean => {
  if (event.type === "runtime.gone") return event.sandboxId === context.sandboxId;
  if (!("messageId" in event) || !("sandboxId" in event)) return true;
  return (
    OUTCOMES.has(event.type) && event.messageId === context.sending && event.sandboxId === context.sandboxId
  );
};

const isUnanswered = ({ requests, answered }: ConversationContext, id: string): boolean =>
  requests.includes(id) && !answered.includes(id);

/** Whether a request must be declined because no person attends (M7). */
const mustDecline = ({ context, event }: Given): boolean => {
  const after = noted(context, event);
  return !after.attended && after.requests.some((id) => isUnanswered(after, id));
};

const sandboxOf = ({ sandboxId }: ConversationContext): string => {
  if (sandboxId === null) throw new Error("a command of a conversation without a sandbox");
  return sandboxId;
};

/** Parameters are taken after the assignments before them. */
const sendMessage = {
  type: "sendMessage" as const,
  params: ({ context }: Given) => ({ sandboxId: sandboxOf(context), messageId: context.sending ?? "" }),
};
const interruptTurn = {
  type: "interruptTurn" as const,
  params: ({ context, event }: Given) => ({
    sandboxId: sandboxOf(context),
    turn: "turn" in event ? event.turn : context.turn,
  }),
};
const answerRequest = {
  type: "answerRequest" as const,
  params: ({ context, event }: Given): AnswerOrder => ({
    sandboxId: sandboxOf(context),
    ...(event.type === "answer.given"
      ? { requestId: event.requestId, answer: event.answer }
      : { requestId: context.answered.at(-1) ?? "", answer: { declined: "unattended" as const } }),
  }),
};

const sendNext = {
  guard: "sends" as const,
  target: "sending" as const,
  actions: ["note" as const, "take" as const, sendMessage],
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
  sendNext,
  { guard: "rests" as const, target: "idle" as const, actions: "note" as const },
];
const note = { actions: "note" as const };
const gone = { guard: "isCurrent" as const, target: "idle" as const, actions: "note" as const };
const post = { guard: "hasRoom" as const, ...note };
const cancel = { guard: "isQueued" as const, ...note };
const resume = { guard: "isHeld" as const, ...note };
const interrupt = { actions: ["note" as const, interruptTurn] };
/** While the agent works, an urgent message ends its turn. */
const postDuringTurn = [{ guard: "hasRoomAndIsUrgent" as const, ...interrupt }, post];

export const conversationMachine = setup({
  types: { context: {} as ConversationContext, events: {} as ConversationEvent },
  guards: {
    asksNobody: (given) => isCurrent(given) && following(given) === "requires_action" && mustDecline(given),
    asks: (given) => isCurrent(given) && following(given) === "requires_action",
    works: (given) => isCurrent(given) && following(given) === "running",
    sends: (given) =>
      isCurrent(given) &&
      following(given) === "sending" &&
      noted(given.context, given.event).sending === null,
    rests: (given) => isCurrent(given) && following(given) === "idle",
    isCurrent,
    startsStopped: ({ context, event }) =>
      isCurrent({ context, event }) && context.stopping && "turn" in event && event.turn > context.ended,
    hasRoom: ({ context, event }) => hasRoom(context, event),
    hasRoomAndIsUrgent: ({ context, event }) =>
      hasRoom(context, event) && event.type === "message.posted" && event.isUrgent,
    isQueued: ({ context, event }) => "messageId" in event && context.queue.includes(event.messageId),
    isHeld: ({ context }) => context.held,
    isHeldAndSends: (given) => given.context.held && following(given) === "sending",
    sendsNew: (given) => hasRoom(given.context, given.event) && following(given) === "sending",
    isUnanswered: ({ context, event }) =>
      event.type === "answer.given" && isUnanswered(context, event.requestId),
  },
  actions: {
    sendMessage: (_, _params: { readonly sandboxId: string; readonly messageId: string }) => undefined,
    interruptTurn: (_, _params: { readonly sandboxId: string; readonly turn: number }) => undefined,
    answerRequest: (_, _params: AnswerOrder) => undefined,
    note: assign(({ context, event }) => noted(context, event)),
    take: assign(({ context: { queue } }) => ({ sending: queue[0] ?? null, queue: queue.slice(1) })),
    decline: assign(({ context }) => ({
      answered: [
        ...context.answered,
        ...context.requests.filter((id) => isUnanswered(context, id)).slice(0, 1),
      ],
    })),
  },
}).createMachine({
  id: "conversation",
  context: START,
  initial: "idle",
  states: {
    idle: {
      on: {
        "message.posted": [{ ...sendNext, guard: "sendsNew" }, post],
        "message.cancelled": cancel,
        "queue.resumed": [{ ...sendNext, guard: "isHeldAndSends" }, resume],
        "runtime.reported": onwards,
        "runtime.gone": gone,
      },
    },
    sending: {
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
        "runtime.gone": gone,
      },
    },
    running: {
      on: {
        "message.posted": postDuringTurn,
        "message.cancelled": cancel,
        "queue.resumed": resume,
        "interrupt.requested": interrupt,
        "runtime.reported": onwards,
        "runtime.gone": gone,
      },
    },
    requires_action: {
      on: {
        "message.posted": postDuringTurn,
        "message.cancelled": cancel,
        "queue.resumed": resume,
        "interrupt.requested": interrupt,
        "answer.given": { guard: "isUnanswered", actions: ["note", answerRequest] },
        "runtime.reported": onwards,
        "runtime.gone": gone,
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
