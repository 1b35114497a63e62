/**
 * When people are told that the agent has finished. Two facts come in either order, from two requests to a daemon: how a turn
 * ended, and that the conversation rests. Both adapters decide with these functions, under the lock of the conversation.
 *
 *  R1 The event is written with the second of the two facts. The end of a turn waits in the conversation until then, and is
 *     taken from there once.
 *  R2 A turn that another one has followed is not told: people hear of the last one.
 *  R3 A queue that a person holds is at rest: nothing goes on by itself.
 */
import type { ConversationSnapshot } from "../machines/conversation.ts";
import type { ConversationStep } from "./conversations/steps.ts";
import type { EndedTurn } from "./ports/sessions/sessions.ts";

/** What becomes of a turn that ended: people are told, it waits, or another turn has followed. */
export type TurnFate = "told" | "waits" | "passed";

/** Whether nothing goes on by itself: no turn, no message on its way, and none that would be sent next. */
const rests = ({ state, context }: ConversationSnapshot): boolean =>
  state === "idle" && (context.held || context.queue.length === 0);

const isFollowed = (turn: EndedTurn, { context }: ConversationSnapshot): boolean =>
  turn.conversation != null &&
  context.sandboxId === turn.sandboxId &&
  context.turn > turn.conversation.number;

/** @param snapshot null for a session without a conversation */
export const fateAtEnd = (turn: EndedTurn, snapshot: ConversationSnapshot | null): TurnFate => {
  if (snapshot === null) return "told";
  if (isFollowed(turn, snapshot)) return "passed";
  return rests(snapshot) ? "told" : "waits";
};

/** Whether a step may end the wait of a turn. */
export const comesToRest = ({ after }: ConversationStep): boolean => rests(after);

/** What a step that comes to rest means for the turn that waits. */
export const fateAtRest = (
  turn: EndedTurn,
  { event, before, after }: ConversationStep,
): "told" | "passed" => {
  // The turn of a message that the runtime refused has no end of its own.
  if (event.type === "message.refused") return "told";
  return isFollowed(turn, before) || isFollowed(turn, after) ? "passed" : "told";
};
