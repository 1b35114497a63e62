/**
 * Live data as server-sent events (api.md 1 "Live data"): each event has an id, `Last-Event-ID` resumes after it, and a
 * comment every 15 s keeps the connection open. All readers of a project follow one tail (tail.ts).
 *
 *  E1 A signal may come before its event can be read: an older transaction might still put one before it. Then the tail
 *     looks again until it can.
 */
import * as Effect from "effect/Effect";
import * as Option from "effect/Option";
import * as Schedule from "effect/Schedule";
import * as Stream from "effect/Stream";
import { HttpServerResponse } from "effect/http";
import { Events, type StoredEvent } from "../../store/ports/events.ts";
import { eventWire } from "../steps/wire.ts";
import { encoded, lookOn, makeTails, reading, Ring, subjectTail, type Framed } from "./tail.ts";

const KEEP_ALIVE = "15 seconds";
export const POLL = "1 second";
const PAGE = 100;
/** E1. The first look again is soon, since most transactions are short. */
const HELD_BACK_MS = 10;
const HELD_BACK_MAX_MS = 500;

export interface EventScope {
  readonly projectId: string;
  readonly sessionId: string | null;
}

interface EventEntry extends Framed {
  /** Null: a comment. */
  readonly cursor: string | null;
  readonly sessionId: string | null;
}

const frameOf = (event: StoredEvent): Uint8Array =>
  encoded(`id: ${event.cursor}\nevent: ${event.type}\ndata: ${JSON.stringify(eventWire(event))}\n\n`);
const RESET = "event: reset\ndata: {}\n\n";

const comment = (frame: Uint8Array): EventEntry => ({ frame, cursor: null, sessionId: null });

/** The tails of this node's projects that have readers. */
export const eventTails = Effect.gen(function* () {
  const events = yield* Events;
  const follow = Effect.fnUntraced(function* (projectId: string) {
    const ring = new Ring<EventEntry>();
    const scope = { projectId, sessionId: null, limit: PAGE };
    let { cursor } = yield* events.after({ ...scope, cursor: null });
    const look = Effect.gen(function* () {
      for (let waitMs = HELD_BACK_MS; ; waitMs = Math.min(2 * waitMs, HELD_BACK_MAX_MS)) {
        const next = yield* events.after({ ...scope, cursor });
        cursor = next.cursor;
        if (next.reset) ring.forget();
        ring.push(next.events.map((event) => ({ ...event, frame: frameOf(event) })));
        if (next.events.length === PAGE) continue;
        if (!next.isHeldBack) return;
        yield* Effect.sleep(waitMs);
      }
    });
    const wake = yield* lookOn({ ring, changed: events.changed(projectId), look, comment });
    // Events may have been committed before it listened.
    wake();
    return ring;
  });
  return yield* makeTails(follow);
});
export type EventTails = Effect.Success<typeof eventTails>;

/**
 * The stream of a project's or a session's events, in the caller's scope.
 *
 * @param lastEventId the newest event that its reader has read. Null: only future events.
 */
export const eventStream = Effect.fnUntraced(function* (
  tails: EventTails,
  scope: EventScope,
  lastEventId: string | null,
) {
  const events = yield* Events;
  const ring = yield* subjectTail(tails, scope.projectId);
  const follower = yield* ring.attach;
  const first = yield* events.after({ ...scope, cursor: lastEventId, limit: PAGE });
  const read = (cursor: string) =>
    Effect.map(events.after({ ...scope, cursor, limit: PAGE }), (next) => ({
      frames: [...(next.reset ? [encoded(RESET)] : []), ...next.events.map(frameOf)],
      place: next.cursor,
      isAll: next.events.length < PAGE,
    }));
  /** A read may be ahead of the ring. The ring has nothing twice. */
  const pass = (entries: readonly EventEntry[], place: string) => {
    const { sessionId } = scope;
    const frames = entries.filter(
      (entry) =>
        entry.cursor === null ||
        ((sessionId === null || entry.sessionId === sessionId) && events.isLater(entry.cursor, place)),
    );
    const last = entries.findLast(({ cursor }) => cursor !== null)?.cursor ?? place;
    return { frames: frames.map(({ frame }) => frame), place: events.isLater(last, place) ? last : place };
  };
  // The first frame tells the reader its position at once, so that a reconnect before the first event can resume. It
  // comes before the following events: otherwise a broken connection in between would skip them.
  const place = lastEventId === null || first.reset ? first.cursor : lastEventId;
  const opening = `${first.reset ? RESET : ""}id: ${place}\nevent: open\ndata: {}\n\n`;
  return Stream.concat(
    Stream.fromIterable([encoded(opening), ...first.events.map(frameOf)]),
    reading({ ring, follower, from: first.cursor, isAll: first.events.length < PAGE, read, pass }),
  );
});

const NEWS = encoded("event: project\ndata: {}\n\n");

/**
 * Says in the stream of another subject that something in the project has changed. A browser has few connections, so its
 * page reads both by one. These frames have no id: their reader reads again what it shows, also after a break.
 */
export const projectNews = Effect.fnUntraced(function* (tails: EventTails, projectId: string) {
  const ring = yield* subjectTail(tails, projectId);
  const follower = yield* ring.attach;
  const next = Effect.gen(function* () {
    yield* follower.news.await;
    if (ring.isOver) return [[], Option.none<null>()] as const;
    const entries = ring.take(follower);
    const isNew = entries === null || entries.some(({ cursor }) => cursor !== null);
    return [isNew ? [NEWS] : [], Option.some(null)] as const;
  });
  return Stream.paginate(null, () => next);
});

/** The frames with a comment from time to time. */
export const keptOpen = <E, R>(frames: Stream.Stream<string, E, R>): Stream.Stream<Uint8Array, E, R> => {
  const comments = Stream.map(Stream.fromSchedule(Schedule.spaced(KEEP_ALIVE)), () => ": keep\n\n");
  return Stream.encodeText(Stream.merge(frames, comments, { haltStrategy: "left" }));
};

/** The answer that sends the events until `end` completes. */
export const eventResponse = <E>(
  events: Stream.Stream<Uint8Array, E>,
  end: Effect.Effect<void>,
): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.stream(Stream.interruptWhen(events, end), {
    contentType: "text/event-stream",
    headers: { "cache-control": "no-store", "x-accel-buffering": "no" },
  });
