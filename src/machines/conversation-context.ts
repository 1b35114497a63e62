/** What a conversation remembers after each event, and where the event leads: conversation.ts has the rules M1 to M9. */
import { QUEUE_MAX } from "../domain/conversation/steering.ts";
import type { ConversationContext, ConversationEvent, ConversationState } from "./conversation-events.ts";

export const START: ConversationContext = {
  sandboxId: null,
  turn: 0,
  ended: 0,
  seq: 0,
  requests: [],
  plans: [],
  answered: [],
  queue: [],
  sending: null,
  settled: [],
  held: false,
  stopping: false,
  attended: true,
};

/** What no longer holds when a sandbox ends (machines/conversation.ts M3). */
const without = (context: ConversationContext): ConversationContext => ({
  ...START,
  seq: context.seq,
  queue: context.sending === null ? context.queue : [context.sending, ...context.queue],
  settled: context.settled,
  held: context.held,
});

type Reported = Extract<ConversationEvent, { type: "runtime.reported" }>;

const applyReport = (former: ConversationContext, event: Reported): ConversationContext => {
  if (event.seq < former.seq) return former;
  const context = former.sandboxId === event.sandboxId ? former : without(former);
  if (event.ended < context.ended) return context;
  // The agent asks all else in a turn.
  const runs = event.isWorking || event.requests.some((id) => !event.plans.includes(id));
  return {
    ...context,
    sandboxId: event.sandboxId,
    ended: event.ended,
    seq: event.seq,
    turn: Math.max(context.turn, event.ended + Number(runs)),
    attended: event.isAttended,
    requests: event.requests,
    plans: event.plans,
    answered: context.answered.filter((id) => event.requests.includes(id)),
  };
};

/** A message is known by its id: it waits once (machines/conversation.ts M8). */
const isKnown = ({ queue, sending, settled }: ConversationContext, id: string): boolean =>
  sending === id || queue.includes(id) || settled.includes(id);

export const hasRoom = (context: ConversationContext, event: ConversationEvent): boolean =>
  event.type === "message.posted" && context.queue.length < QUEUE_MAX && !isKnown(context, event.messageId);

/** How many messages are remembered (machines/conversation.ts M8): requests that are under way at the same time are far fewer. */
const SETTLED_KEPT = 20;
const settledWith = ({ settled }: ConversationContext, id: string): readonly string[] =>
  [...settled, id].slice(-SETTLED_KEPT);

const interrupt = (context: ConversationContext): ConversationContext => ({
  ...context,
  held: context.queue.length > 0,
  stopping: context.sending !== null,
});

/** The message on its way has arrived, or never will. */
const markHandled = (context: ConversationContext, id: string): ConversationContext => ({
  ...context,
  sending: null,
  settled: settledWith(context, id),
  stopping: false,
});

/** Whether a turn runs. */
export const isInTurn = ({ turn, ended }: ConversationContext): boolean => turn > ended;

/** The context after the event, before the next message is taken from the queue. */
export const noteEvent = (context: ConversationContext, event: ConversationEvent): ConversationContext => {
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
      return { ...markHandled(context, event.messageId), turn: Math.max(context.turn, event.turn) };
    case "message.deferred":
      return {
        ...context,
        sending: null,
        stopping: false,
        turn: Math.max(context.turn, event.turn),
        queue: [event.messageId, ...queue],
      };
    case "message.refused":
      return markHandled(context, event.messageId);
    case "queue.resumed":
      return { ...context, held: false };
    case "interrupt.requested":
      return interrupt(context);
    case "runtime.reported":
      return applyReport(context, event);
    case "runtime.gone":
      return without(context);
    case "answer.given": {
      const afterAnswer = { ...context, answered: [...context.answered, event.requestId] };
      if (event.begins === undefined || isKnown(context, event.begins.messageId)) return afterAnswer;
      return { ...afterAnswer, queue: [event.begins.messageId, ...queue], held: false };
    }
  }
};

/** An event, and the context that it meets. */
export interface StepInput {
  readonly context: ConversationContext;
  readonly event: ConversationEvent;
}

/** The state that follows. A message that is next in the queue is still there. */
export const following = ({ context, event }: StepInput): ConversationState => {
  const after = noteEvent(context, event);
  const maySend = after.sandboxId !== null && !after.held && after.queue.length > 0;
  if (after.sending !== null) return "sending";
  if (after.requests.length > 0 && (isInTurn(after) || !maySend)) return "requires_action";
  if (isInTurn(after)) return "running";
  return maySend ? "sending" : "idle";
};

const OUTCOMES: ReadonlySet<string> = new Set(["message.accepted", "message.deferred", "message.refused"]);

/** Whether the event is about something that the conversation still waits for. */
export const isCurrent = ({ context, event }: StepInput): boolean => {
  if (event.type === "runtime.gone") return event.sandboxId === context.sandboxId;
  if (!("messageId" in event) || !("sandboxId" in event)) return true;
  return (
    OUTCOMES.has(event.type) && event.messageId === context.sending && event.sandboxId === context.sandboxId
  );
};

export const isUnanswered = ({ requests, answered }: ConversationContext, id: string): boolean =>
  requests.includes(id) && !answered.includes(id);

/** The plan that waits for an answer, after this event. Null if none does. */
export const openPlan = (context: ConversationContext): string | null =>
  context.plans.find((id) => isUnanswered(context, id)) ?? null;

/** The request that must be declined because no person attends (machines/conversation.ts M7). */
export const declinable = (context: ConversationContext): string | null =>
  context.attended
    ? null
    : (context.requests.find((id) => isUnanswered(context, id) && !context.plans.includes(id)) ?? null);

export const mustDecline = ({ context, event }: StepInput): boolean =>
  declinable(noteEvent(context, event)) !== null;
