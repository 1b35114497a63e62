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
import { Events, type EventScope, type StoredEvent } from "../../store/ports/events.ts";
import { eventWire } from "../steps/wire.ts";
import { encodeFrame, lookOn, makeTails, reading, Ring, subjectTail, type Framed } from "./tail.ts";

const KEEP_ALIVE = "15 seconds";
export const POLL = "1 second";
const PAGE = 100;
/** E1. The first look again is soon, since most transactions are short. */
const HELD_BACK_MS = 10;
const HELD_BACK_MAX_MS = 500;

interface EventEntry extends Framed {
  /** Null for a comment. */
  readonly cursor: string | null;
  readonly projectId: string | null;
  readonly sessionId: string | null;
}

const eventFrame = (event: StoredEvent): Uint8Array =>
  encodeFrame(`id: ${event.cursor}\nevent: ${event.type}\ndata: ${JSON.stringify(eventWire(event))}\n\n`);
const RESET = "event: reset\ndata: {}\n\n";

const comment = (frame: Uint8Array): EventEntry => ({
  frame,
  cursor: null,
  projectId: null,
  sessionId: null,
});

/**
 * How long a tail of several projects rests after a look: every commit in the installation wakes it, and it shares its
 * query with few readers.
 */
const REST_MS = 250;

/** The subject of a scope's tail. A session is read by its project's. */
const toSubject = (scope: EventScope): string =>
  "reader" in scope ? `${scope.reader.accountId} ${scope.reader.userId ?? ""}` : scope.projectId;

const toScope = (subject: string): EventScope => {
  const [id = "", userId] = subject.split(" ");
  return userId === undefined
    ? { projectId: id, sessionId: null }
    : { reader: { accountId: id, userId: userId === "" ? null : userId } };
};

/** The tails of this node that have readers: of projects, and of people who read all projects that they see. */
export const eventTails = Effect.gen(function* () {
  const events = yield* Events;
  const follow = Effect.fnUntraced(function* (subject: string) {
    const ring = new Ring<EventEntry>();
    const scope = { ...toScope(subject), limit: PAGE };
    const projectId = "reader" in scope ? null : scope.projectId;
    let { cursor } = yield* events.after({ ...scope, cursor: null });
    const look = Effect.gen(function* () {
      for (let waitMs = HELD_BACK_MS; ; waitMs = Math.min(2 * waitMs, HELD_BACK_MAX_MS)) {
        const next = yield* events.after({ ...scope, cursor });
        cursor = next.cursor;
        if (next.reset) ring.forget();
        ring.push(next.events.map((event) => ({ ...event, frame: eventFrame(event) })));
        if (next.events.length === PAGE) continue;
        if (!next.isHeldBack) break;
        yield* Effect.sleep(waitMs);
      }
      if (projectId === null) yield* Effect.sleep(REST_MS);
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
 * The stream of the scope's events, in the caller's scope.
 *
 * @param lastEventId the newest event that its reader has read. Null for future events only.
 */
export const eventStream = Effect.fnUntraced(function* (
  tails: EventTails,
  scope: EventScope,
  lastEventId: string | null,
) {
  const events = yield* Events;
  const ring = yield* subjectTail(tails, toSubject(scope));
  const follower = yield* ring.attach;
  const first = yield* events.after({ ...scope, cursor: lastEventId, limit: PAGE });
  const read = (cursor: string) =>
    Effect.map(events.after({ ...scope, cursor, limit: PAGE }), (next) => ({
      frames: [...(next.reset ? [encodeFrame(RESET)] : []), ...next.events.map(eventFrame)],
      place: next.cursor,
      isAll: next.events.length < PAGE,
    }));
  /** A read may be ahead of the ring. The ring has nothing twice. */
  const pass = (entries: readonly EventEntry[], place: string) => {
    const sessionId = "reader" in scope ? null : scope.sessionId;
    const frames = entries.filter(
      (entry) =>
        entry.cursor === null ||
        ((sessionId === null || entry.sessionId === sessionId) && events.isLater(entry.cursor, place)),
    );
    const last = entries.findLast(({ cursor }) => cursor !== null)?.cursor ?? place;
    return { frames: frames.map(({ frame }) => frame), place: events.isLater(last, place) ? last : place };
  };
  // The first frame tells the reader its position immediately, so that a reconnect before the first event can resume. It
  // comes before the following events: otherwise a broken connection in between would skip them.
  const place = lastEventId === null || first.reset ? first.cursor : lastEventId;
  const opening = `${first.reset ? RESET : ""}id: ${place}\nevent: open\ndata: {}\n\n`;
  return Stream.concat(
    Stream.fromIterable([encodeFrame(opening), ...first.events.map(eventFrame)]),
    reading({ ring, follower, from: first.cursor, isAll: first.events.length < PAGE, read, pass }),
  );
});

const NEWS = encodeFrame("event: project\ndata: {}\n\n");
const OTHER_NEWS = encodeFrame("event: elsewhere\ndata: {}\n\n");

/**
 * Says in the stream of another subject that something in the project has changed, or in another project of the scope. A browser has
 * few connections, so its page reads both by one. These frames have no id: their reader reads its data again then, and after a break.
 */
export const projectNews = Effect.fnUntraced(function* (
  tails: EventTails,
  { projectId, scope }: { readonly projectId: string; readonly scope: EventScope },
) {
  const ring = yield* subjectTail(tails, toSubject(scope));
  const follower = yield* ring.attach;
  const next = Effect.gen(function* () {
    yield* follower.news.await;
    if (ring.isOver) return [[], Option.none<null>()] as const;
    const entries = ring.take(follower);
    const projectIds = entries?.filter(({ cursor }) => cursor !== null).map((entry) => entry.projectId);
    const isOwn = projectIds === undefined || projectIds.includes(projectId);
    const isOther = projectIds === undefined || projectIds.some((id) => id !== projectId);
    return [[...(isOwn ? [NEWS] : []), ...(isOther ? [OTHER_NEWS] : [])], Option.some(null)] as const;
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
