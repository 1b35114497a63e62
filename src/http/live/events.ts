/**
 * Live data as server-sent events (api.md 1 "Live data"): each event has an id, `Last-Event-ID` resumes after it, and a
 * comment every 15 s keeps the connection open. A reader waits for the commit's signal, and also polls each second in
 * case a signal was lost.
 */
import * as Effect from "effect/Effect";
import * as Option from "effect/Option";
import * as Schedule from "effect/Schedule";
import * as Stream from "effect/Stream";
import { HttpServerResponse } from "effect/http";
import { Events, type StoredEvent } from "../../store/ports/events.ts";
import { eventWire } from "../handlers/wire.ts";

const KEEP_ALIVE = "15 seconds";
export const POLL = "1 second";
const PAGE = 100;

export interface EventScope {
  readonly projectId: string;
  readonly sessionId: string | null;
}

/**
 * The stream of a project's or a session's events.
 *
 * @param lastEventId the newest event that its reader has read. Null: only future events.
 */
export const eventStream = Effect.fnUntraced(function* (scope: EventScope, lastEventId: string | null) {
  const events = yield* Events;
  const first = yield* events.after({ ...scope, cursor: lastEventId, limit: PAGE });
  const page = (cursor: string) =>
    Effect.gen(function* () {
      const next = yield* events.after({ ...scope, cursor, limit: PAGE });
      if (next.events.length > 0) return [frames(next), Option.some(next.cursor)] as const;
      yield* Effect.raceFirst(events.changed(scope.projectId), Effect.sleep(POLL));
      return [[], Option.some(next.cursor)] as const;
    });
  // The first frame tells the reader its position at once, so that a reconnect before the first event can resume. It
  // comes before the following events: otherwise a broken connection in between would skip them.
  const place = lastEventId === null || first.reset ? first.cursor : lastEventId;
  const opening = [
    ...(first.reset ? ["event: reset\ndata: {}\n\n"] : []),
    `id: ${place}\nevent: open\ndata: {}\n\n`,
  ];
  return Stream.concat(
    Stream.fromIterable([...opening, ...frames(first)]),
    Stream.paginate(first.cursor, page),
  );
});

/** The frames with a comment from time to time, until `end` completes or the stream itself ends. */
const keptOpen = <E, R>(
  frames: Stream.Stream<string, E, R>,
  end: Effect.Effect<void>,
): Stream.Stream<string, E, R> => {
  const comments = Stream.map(Stream.fromSchedule(Schedule.spaced(KEEP_ALIVE)), () => ": keep\n\n");
  return Stream.merge(frames, Stream.interruptWhen(comments, end), { haltStrategy: "either" });
};

/** The answer that sends the events until `end` completes. */
export const eventResponse = <E>(
  events: Stream.Stream<string, E>,
  end: Effect.Effect<void>,
): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.stream(Stream.encodeText(keptOpen(events, end)), {
    contentType: "text/event-stream",
    headers: { "cache-control": "no-store", "x-accel-buffering": "no" },
  });

const frames = ({ events }: { readonly events: readonly StoredEvent[] }): readonly string[] =>
  events.map(
    (event) => `id: ${event.cursor}\nevent: ${event.type}\ndata: ${JSON.stringify(eventWire(event))}\n\n`,
  );
