/**
 * A session's conversation as server-sent events (api.md 3 "Conversation").
 *
 *  V1 `item` and `state` are versions that are written. Their id is the version's `seq`, so a reader that resumes after
 *     an id gets every later version.
 *  V2 `delta` is text that grows, without an id. It may be lost or late: a reader whose text has another length than
 *     `offset` ignores it. The item's next version has the text.
 *  V3 A reader that is too far behind gets `reset`. It reads the newest page, and continues from that page's `seq`.
 */
import * as Effect from "effect/Effect";
import * as Option from "effect/Option";
import * as Stream from "effect/Stream";
import { ConversationHub, type ItemDelta } from "../../services/conversation-hub.ts";
import { Conversations, type ConversationChange } from "../../store/ports/conversations.ts";
import { badRequest } from "../api/errors.ts";
import { opened } from "../handlers/answers.ts";
import { itemWire, turnWire } from "../handlers/conversation-wire.ts";
import { fitted } from "./conversation-frames.ts";
import { POLL } from "./events.ts";

/** How many versions are read together. */
const PAGE = 50;
/** The longest piece of a text that one delta has. JSON writes a character with up to six bytes. */
const DELTA_MAX = 8 * 1024;

const NUMBER = /^(?:0|[1-9]\d{0,8})$/;

/** The number after which a reader continues. Null: only future versions. Minus one: an id that is no number. */
export const placeOf = Effect.fnUntraced(function* (lastEventId: string | null, after: string | null) {
  if (lastEventId !== null) return NUMBER.test(lastEventId) ? Number(lastEventId) : -1;
  if (after === null) return null;
  return NUMBER.test(after) ? Number(after) : yield* badRequest("after", "must be a whole number from 0 on");
});

const frame = (change: ConversationChange): string => {
  const { seq } = change;
  if (change.type === "item") return `id: ${seq}\nevent: item\ndata: ${fitted(itemWire(change.item))}\n\n`;
  const state = { seq, state: turnWire(change.turn), queue_held: change.held, usage: change.usage };
  return `id: ${seq}\nevent: state\ndata: ${JSON.stringify(state)}\n\n`;
};

const deltaFrames = ({ itemId, offset, text }: ItemDelta): readonly string[] =>
  Array.from({ length: Math.ceil(text.length / DELTA_MAX) }, (_, index) => {
    const from = index * DELTA_MAX;
    const delta = { item_id: itemId, offset: offset + from, text: text.slice(from, from + DELTA_MAX) };
    return `event: delta\ndata: ${JSON.stringify(delta)}\n\n`;
  });

const resetFrame = (seq: number): string => `id: ${seq}\nevent: reset\ndata: {}\n\n`;

/** The versions after a number, for ever. It ends when the session is deleted. */
const versions = Effect.fnUntraced(function* (sessionId: string, after: number) {
  const { changedAfter, changed } = yield* Conversations;
  const page = (seq: number) =>
    Effect.gen(function* () {
      const next = yield* changedAfter(sessionId, seq, PAGE);
      if (next === null) return [[], Option.none<number>()] as const;
      const on = Option.some(next.seq);
      if (next.reset) return [[resetFrame(next.seq)], on] as const;
      if (next.changes.length > 0) return [next.changes.map(frame), on] as const;
      yield* Effect.raceFirst(changed(sessionId), Effect.sleep(POLL));
      return [[], on] as const;
    });
  return Stream.paginate(after, page);
});

/** @param place see `placeOf`. */
export const conversationStream = Effect.fnUntraced(function* (sessionId: string, place: number | null) {
  const { seq } = yield* opened(sessionId);
  const hub = yield* ConversationHub;
  const { changedAfter } = yield* Conversations;
  const isLost = place !== null && (place < 0 || (yield* changedAfter(sessionId, place, 1))?.reset === true);
  const from = place === null || isLost ? seq : place;
  const opening = [...(isLost ? [resetFrame(from)] : []), `id: ${from}\nevent: open\ndata: {}\n\n`];
  const deltas = Stream.flatMap(hub.deltas(sessionId), (delta) => Stream.fromIterable(deltaFrames(delta)));
  const written = yield* versions(sessionId, from);
  return Stream.concat(Stream.fromIterable(opening), Stream.merge(written, deltas, { haltStrategy: "left" }));
});
