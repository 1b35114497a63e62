/**
 * Live data as server-sent events (api.md 1 "Live data"): each event has an id, `Last-Event-ID` resumes after it, a
 * comment every 15 s keeps the connection open. A reader waits on the commit's signal, and looks by itself each
 * second in case a signal was lost.
 */
import * as Effect from "effect/Effect";
import * as Option from "effect/Option";
import * as Schedule from "effect/Schedule";
import * as Stream from "effect/Stream";
import { HttpServerResponse } from "effect/http";
import { Events, type StoreError } from "../store/port.ts";
import type { StoredEvent } from "../store/records.ts";
import { eventWire } from "./wire.ts";

const KEEP_ALIVE = "15 seconds";
const POLL = "1 second";
const PAGE = 100;

export interface EventScope {
  readonly projectId: string;
  readonly sessionId: string | null;
}

/** The stream of a project's or a session's events, from `lastEventId` on, or from now. */
export const eventStream = Effect.fnUntraced(function* (scope: EventScope, lastEventId: string | null) {
  const events = yield* Events;
  const first = yield* events.after({ ...scope, cursor: lastEventId, limit: PAGE });
  const page = (cursor: string) =>
    Effect.gen(function* () {
      const next = yield* events.after({ ...scope, cursor, limit: PAGE });
      if (next.events.length === 0) {
        yield* Effect.raceFirst(events.changed(scope.projectId), Effect.sleep(POLL));
      }
      return [frames(next), Option.some(next.cursor)] as const;
    });
  const opening = [...(first.reset ? ["event: reset\ndata: {}\n\n"] : []), ...frames(first)];
  // A first frame at once tells the reader where it stands, so that a reconnect before the first event has a place.
  const live = Stream.concat(
    Stream.fromIterable([`id: ${first.cursor}\nevent: open\ndata: {}\n\n`, ...opening]),
    Stream.paginate(first.cursor, page),
  );
  const keepAlive = Stream.drop(Stream.fromSchedule(Schedule.spaced(KEEP_ALIVE)), 0).pipe(
    Stream.map(() => ": keep\n\n"),
  );
  return HttpServerResponse.stream(Stream.encodeText(Stream.merge(live, keepAlive)), {
    contentType: "text/event-stream",
    headers: { "cache-control": "no-store", "x-accel-buffering": "no" },
  });
});

const frames = ({ events }: { readonly events: readonly StoredEvent[] }): readonly string[] =>
  events.map(
    (event) => `id: ${event.cursor}\nevent: ${event.type}\ndata: ${JSON.stringify(eventWire(event))}\n\n`,
  );

export type EventStreamError = StoreError;
