/**
 * A session's conversation as server-sent events (api.md 3 "Conversation").
 *
 *  V1 `item` and `state` are versions that are written. Their id is the version's `seq`, so a reader that resumes after
 *     an id gets every later version.
 *  V2 `delta` is text that grows, without an id. It may be lost: a reader whose text has another length than `offset`
 *     ignores it. The item's next version has the text. It never comes before the version that it continues, because
 *     then the reader would ignore all text until the next version.
 *  V3 A reader that is too far behind gets `reset`. It reads the newest page, and continues from that page's `seq`.
 */
import * as Effect from "effect/Effect";
import * as Latch from "effect/Latch";
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

/** Opens when there may be something to read: a version, by a commit's signal or because time has passed, or text. */
const watched = Effect.fnUntraced(function* (sessionId: string) {
  const { changed } = yield* Conversations;
  const hub = yield* ConversationHub;
  const news = Latch.makeUnsafe(true);
  const watch = { news, isOutdated: true, deltas: yield* hub.attach(sessionId, () => news.openUnsafe()) };
  // It waits for the next signal before the versions of this one are read, so that none is lost in between.
  yield* Effect.raceFirst(changed(sessionId), Effect.sleep(POLL)).pipe(
    Effect.andThen(
      Effect.sync(() => {
        watch.isOutdated = true;
        news.openUnsafe();
      }),
    ),
    Effect.forever,
    Effect.forkScoped,
  );
  return watch;
});

/** The versions after a number with the text that grows after each, for ever. It ends when the session is deleted. */
const following = Effect.fnUntraced(function* (sessionId: string, after: number) {
  const { changedAfter } = yield* Conversations;
  const watch = yield* watched(sessionId);
  const { news, deltas } = watch;
  const page = (seq: number) =>
    Effect.gen(function* () {
      yield* news.await;
      news.closeUnsafe();
      const grown = deltas.take(seq).flatMap(deltaFrames);
      // The remaining deltas wait for a version that is written, and not read yet.
      const isBehind = watch.isOutdated || deltas.areThere();
      if (grown.length > 0 && isBehind) news.openUnsafe();
      if (grown.length > 0 || !isBehind) return [grown, Option.some(seq)] as const;
      watch.isOutdated = false;
      const next = yield* changedAfter(sessionId, seq, PAGE);
      if (next === null) return [[], Option.none<number>()] as const;
      if (next.changes.length === PAGE) watch.isOutdated = true;
      if (next.seq > seq && (watch.isOutdated || deltas.areThere())) news.openUnsafe();
      const written = next.reset ? [resetFrame(next.seq)] : next.changes.map(frame);
      return [written, Option.some(next.seq)] as const;
    });
  return Stream.paginate(after, page);
});

/** @param place see `placeOf`. */
export const conversationStream = Effect.fnUntraced(function* (sessionId: string, place: number | null) {
  const { seq } = yield* opened(sessionId);
  const ports = yield* Effect.context<ConversationHub | Conversations>();
  const { changedAfter } = yield* Conversations;
  const isLost = place !== null && (place < 0 || (yield* changedAfter(sessionId, place, 1))?.reset === true);
  const from = place === null || isLost ? seq : place;
  const opening = [...(isLost ? [resetFrame(from)] : []), `id: ${from}\nevent: open\ndata: {}\n\n`];
  // The stream collects text before its first event is sent.
  const whole = Effect.map(following(sessionId, from), (rest) =>
    Stream.concat(Stream.fromIterable(opening), rest),
  );
  return Stream.unwrap(Effect.provideContext(whole, ports));
});
