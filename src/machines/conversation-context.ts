/** What a conversation remembers after each event, and where the event leads: conversation.ts has the rules M1 to M8. */
import { QUEUE_MAX } from "../domain/conversation/steering.ts";
import type { ConversationContext, ConversationEvent, ConversationState } from "./conversation-events.ts";

export const START: ConversationContext = {
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

/** What no longer holds when a sandbox ends (machines/conversation.ts M3). */
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

/** A message is known by its id: it waits once (machines/conversation.ts M8). */
export const hasRoom = (
  { queue, sending, settled }: ConversationContext,
  event: ConversationEvent,
): boolean =>
  event.type === "message.posted" &&
  queue.length < QUEUE_MAX &&
  sending !== event.messageId &&
  !queue.includes(event.messageId) &&
  !settled.includes(event.messageId);

/** How many messages are remembered (machines/conversation.ts M8): requests that are under way at the same time are far fewer. */
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
export const noted = (context: ConversationContext, event: ConversationEvent): ConversationContext => {
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

/** An event, and the context that it meets. */
export interface Given {
  readonly context: ConversationContext;
  readonly event: ConversationEvent;
}

/** The state that follows. A message that is next in the queue is still there. */
export const following = ({ context, event }: Given): ConversationState => {
  const after = noted(context, event);
  if (after.sending !== null) return "sending";
  if (after.requests.length > 0) return "requires_action";
  if (after.turn > after.ended) return "running";
  return after.sandboxId !== null && !after.held && after.queue.length > 0 ? "sending" : "idle";
};

const OUTCOMES: ReadonlySet<string> = new Set(["message.accepted", "message.deferred", "message.refused"]);

/** Whether the event is about something that the conversation still waits for. */
export const isCurrent = ({ context, event }: Given): boolean => {
  if (event.type === "runtime.gone") return event.sandboxId === context.sandboxId;
  if (!("messageId" in event) || !("sandboxId" in event)) return true;
  return (
    OUTCOMES.has(event.type) && event.messageId === context.sending && event.sandboxId === context.sandboxId
  );
};

export const isUnanswered = ({ requests, answered }: ConversationContext, id: string): boolean =>
  requests.includes(id) && !answered.includes(id);

/** Whether a request must be declined because no person attends (machines/conversation.ts M7). */
export const mustDecline = ({ context, event }: Given): boolean => {
  const after = noted(context, event);
  return !after.attended && after.requests.some((id) => isUnanswered(after, id));
};
