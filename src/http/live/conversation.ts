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
import * as Stream from "effect/Stream";
import {
  ConversationHub,
  type ItemDelta,
  type WaitingDeltas,
} from "../../services/sessions/conversation-hub.ts";
import { Conversations, type ConversationChange } from "../../store/ports/sessions/conversations.ts";
import { Identity } from "../../store/ports/people/identity.ts";
import { badRequest } from "../api/errors.ts";
import { ensureConversation } from "../steps/answers.ts";
import { itemWire, turnWire } from "../steps/sessions/conversation-wire.ts";
import { fitFrame } from "./conversation-frames.ts";
import { encodeFrame, lookOn, makeTails, reading, Ring, subjectTail, type Framed } from "./tail.ts";

/** How many versions are read together. */
const PAGE = 50;
/** The longest piece of a text that one delta has. JSON writes a character with up to six bytes. */
const DELTA_MAX = 8 * 1024;

const NUMBER = /^(?:0|[1-9]\d{0,8})$/;

/** The number after which a reader continues. Null for future versions only, minus one for an id that is not a number. */
export const readPlace = Effect.fnUntraced(function* (lastEventId: string | null, after: string | null) {
  if (lastEventId !== null) return NUMBER.test(lastEventId) ? Number(lastEventId) : -1;
  if (after === null) return null;
  return NUMBER.test(after) ? Number(after) : yield* badRequest("after", "must be a whole number from 0 on");
});

const frame = (change: ConversationChange): string => {
  const { seq } = change;
  if (change.type === "item") return `id: ${seq}\nevent: item\ndata: ${fitFrame(itemWire(change.item))}\n\n`;
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

interface ConversationEntry extends Framed {
  /** Up to which version a reader must have read before. */
  readonly after: number;
  /** The version. Text and comments are none: they have `after`. */
  readonly seq: number;
}

/** Reads for all readers of one conversation on this node. */
class Tail {
  readonly ring = new Ring<ConversationEntry>();
  readonly #sessionId: string;
  readonly #deltas: WaitingDeltas;
  readonly #conversations: (typeof Conversations)["Service"];
  /** Up to which version the ring has everything. */
  #seq: number;

  constructor(
    sessionId: string,
    from: {
      readonly deltas: WaitingDeltas;
      readonly conversations: (typeof Conversations)["Service"];
      readonly seq: number;
    },
  ) {
    this.#sessionId = sessionId;
    this.#deltas = from.deltas;
    this.#conversations = from.conversations;
    this.#seq = from.seq;
  }

  /** Passes text on that continues a version that was passed on. */
  grow(): void {
    this.ring.push(this.#grown());
  }

  #grown(): readonly ConversationEntry[] {
    const after = this.#seq;
    const frames = this.#deltas.take(after).flatMap(deltaFrames);
    return frames.map((text) => ({ frame: encodeFrame(text), after, seq: after }));
  }

  /** Passes on all later versions. */
  get look() {
    return Effect.gen({ self: this }, function* () {
      for (let isMore = true; isMore;) {
        const next = yield* this.#conversations.changedAfter(this.#sessionId, this.#seq, PAGE);
        if (next === null) return this.ring.end();
        if (next.reset) this.ring.forget();
        let after = this.#seq;
        const entries = next.changes.map((change) => {
          const entry = { frame: encodeFrame(frame(change)), after, seq: change.seq };
          after = change.seq;
          return entry;
        });
        this.#seq = next.seq;
        // Together, because a version may take readers back to a shorter text than they have.
        this.ring.push([...entries, ...this.#grown()]);
        isMore = next.changes.length === PAGE;
      }
    });
  }
}

const comment = (bytes: Uint8Array): ConversationEntry => ({ frame: bytes, after: 0, seq: 0 });

/** The tails of this node's conversations that have readers. */
export const conversationTails = Effect.gen(function* () {
  const conversations = yield* Conversations;
  const hub = yield* ConversationHub;
  const wakes = new Map<string, () => void>();
  // A deleted session has no versions that would tell its readers.
  yield* (yield* Identity).endings((id) => {
    for (const wake of id === null ? wakes.values() : [wakes.get(id)]) wake?.();
  });
  const follow = Effect.fnUntraced(function* (sessionId: string) {
    let tail: Tail | null = null;
    const deltas = yield* hub.attach(sessionId, () => tail?.grow());
    const conversation = yield* conversations.get(sessionId);
    tail = new Tail(sessionId, { deltas, conversations, seq: conversation?.seq ?? 0 });
    const { ring, look } = tail;
    const wake = yield* lookOn({ ring, changed: conversations.changed(sessionId), look, comment });
    yield* Effect.acquireRelease(
      Effect.sync(() => wakes.set(sessionId, wake)),
      () => Effect.sync(() => wakes.delete(sessionId)),
    );
    // Versions may have been committed before it listened.
    wake();
    return ring;
  });
  return yield* makeTails(follow);
});
export type ConversationTails = Effect.Success<typeof conversationTails>;

/** The entries for a reader that has everything up to a version (V2). */
const pass = (entries: readonly ConversationEntry[], place: number) => {
  let seq = place;
  const frames: Uint8Array[] = [];
  for (const entry of entries) {
    if (entry.after > seq) return null;
    if (entry.seq > seq || entry.after === entry.seq) frames.push(entry.frame);
    seq = Math.max(seq, entry.seq);
  }
  return { frames, place: seq };
};

/** In the caller's scope. @param place see `readPlace`. */
export const conversationStream = Effect.fnUntraced(function* (
  tails: ConversationTails,
  sessionId: string,
  place: number | null,
) {
  const { changedAfter } = yield* Conversations;
  const { seq } = yield* ensureConversation(sessionId);
  const isLost = place !== null && (place < 0 || (yield* changedAfter(sessionId, place, 1))?.reset === true);
  const from = place === null || isLost ? seq : place;
  // Text is collected before the reader's first event is sent.
  const ring = yield* subjectTail(tails, sessionId);
  const follower = yield* ring.attach;
  const read = (after: number) =>
    Effect.map(changedAfter(sessionId, after, PAGE), (next) =>
      next === null
        ? null
        : {
            frames: (next.reset ? [resetFrame(next.seq)] : next.changes.map(frame)).map(encodeFrame),
            place: next.seq,
            isAll: next.changes.length < PAGE,
          },
    );
  const opening = `${isLost ? resetFrame(from) : ""}id: ${from}\nevent: open\ndata: {}\n\n`;
  return Stream.concat(Stream.succeed(encodeFrame(opening)), reading({ ring, follower, from, read, pass }));
});
