/** How a conversation is read: pages of items, and changes after a number. Both adapters use it. */
import * as Effect from "effect/Effect";
import {
  CHANGES_BEHIND_MAX,
  type Conversation,
  type ConversationChange,
  type ConversationPage,
  type Item,
} from "../ports/sessions/conversations.ts";
import { BadCursor } from "../ports/errors.ts";

/** A place: at most nine digits, which every number of a conversation has. */
const PLACE = /^[1-9]\d{0,8}$/;

/** Reads a cursor of `pageOfItems`. Null stays null. */
export const readItemPlace = (cursor: string | null): Effect.Effect<number | null, BadCursor> => {
  if (cursor === null) return Effect.succeed(null);
  return PLACE.test(cursor) ? Effect.succeed(Number(cursor)) : Effect.fail(new BadCursor({ cursor }));
};

/** @param items newest first, one more than `limit` if there are more. */
export const pageOfItems = (
  items: readonly Item[],
  limit: number,
): Pick<ConversationPage, "items" | "nextCursor"> => {
  const pageItems = items.slice(0, limit);
  const last = pageItems.at(-1);
  return {
    items: pageItems,
    nextCursor: items.length > limit && last !== undefined ? String(last.place) : null,
  };
};

/** @param items those with a version above `seq`, in order, at most `limit`. */
export const conversationChanges = (
  conversation: Conversation,
  items: readonly Item[],
  { seq, limit }: { readonly seq: number; readonly limit: number },
) => {
  const { seq: last, turnSeq, turn, usage, held } = conversation;
  if (seq > last || last - seq > CHANGES_BEHIND_MAX) return { changes: [], seq: last, reset: true };
  const state: ConversationChange[] =
    turnSeq > seq ? [{ type: "state", seq: turnSeq, turn, usage, held }] : [];
  const all = [...items.map((item) => ({ type: "item" as const, seq: item.seq, item })), ...state];
  const changes = all.toSorted((a, b) => a.seq - b.seq).slice(0, limit);
  const read = changes.at(-1)?.seq ?? last;
  return { changes, seq: changes.length < limit ? last : read, reset: false };
};
