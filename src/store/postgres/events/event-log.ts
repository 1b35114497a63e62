/** Appends event rows inside the transaction that caused them, and tells readers after its commit. */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import type { SqlError } from "effect/sql/SqlError";
import type { Fragment } from "effect/sql/Statement";
import { readNews } from "../../../domain/service/news.ts";
import type { PlacelessEvent } from "../../event-rows.ts";
import type { NewEvent } from "../../ports/events.ts";
import { Waiting } from "../../waiting.ts";
import type { Notifications } from "../connection/notifications.ts";
import { makeSignal } from "../connection/signals.ts";
import { at, jsonb } from "../connection/statement.ts";

const CHANNEL = "platform_events";
/** The subject of readers of all projects. */
const ANY = "";

export class EventLog extends Context.Service<
  EventLog,
  {
    /** Call this inside the transaction that causes these events. */
    readonly append: (events: readonly NewEvent[]) => Effect.Effect<void, SqlError>;
    /**
     * The same in two parts: a statement's part that appends the events, and the signal to readers after the commit.
     * `given` is a relation of that statement: one row, or none if the events must not be appended.
     */
    readonly insertion: (events: readonly NewEvent[], condition: Fragment) => Fragment;
    /** The same for one event. `given` has its project and session as `project_id` and `session_id`. */
    readonly insertionIn: (event: PlacelessEvent, condition: Fragment) => Fragment;
    readonly tell: (events: readonly NewEvent[]) => Effect.Effect<void, SqlError>;
    /** Wakes the project's readers after the commit; they find no event where none was appended. */
    readonly wake: (projectId: string) => Effect.Effect<void, SqlError>;
    /** Null means any project's. */
    readonly changed: (projectId: string | null) => Effect.Effect<void>;
  }
>()("platform/store/postgres/EventLog") {}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const waiting = new Waiting();
  const { say } = yield* makeSignal(CHANNEL, (projectId) => {
    waiting.wake(projectId);
    if (projectId !== null) waiting.wake(ANY);
  });
  const always = sql`(SELECT) AS always`;
  const insertion = (events: readonly NewEvent[], condition: Fragment) => sql`
    INSERT INTO events (project_id, session_id, type, at, data, news)
    SELECT project_id, session_id, type, to_timestamp(at / 1000.0), data, news
    FROM ${condition}, jsonb_to_recordset(${jsonb(events.map(eventRow))}::jsonb)
      AS e(project_id uuid, session_id uuid, type text, at bigint, data jsonb, news text)`;
  const insertionIn = (event: PlacelessEvent, condition: Fragment) => sql`
    INSERT INTO events (project_id, session_id, type, at, data, news)
    SELECT project_id, session_id, ${event.type}::text, ${at(event.at)}::timestamptz, ${jsonb(event.data)}::jsonb,
      ${readNews(event)}::text
    FROM ${condition}`;
  const tell = (events: readonly NewEvent[]) =>
    events.length === 0 ? Effect.void : say([...new Set(events.map(({ projectId }) => projectId))]);
  const append = (events: readonly NewEvent[]): Effect.Effect<void, SqlError> =>
    events.length === 0 ? Effect.void : Effect.andThen(insertion(events, always), tell(events));
  const wake = (projectId: string) => say([projectId]);
  return {
    append,
    insertion,
    insertionIn,
    tell,
    wake,
    changed: (projectId: string | null) => waiting.wait(projectId ?? ANY),
  };
});

const eventRow = (event: NewEvent) => ({
  project_id: event.projectId,
  session_id: event.sessionId,
  type: event.type,
  at: event.at,
  data: event.data,
  news: readNews(event),
});

export const layer: Layer.Layer<EventLog, never, SqlClient.SqlClient | Notifications> = Layer.effect(
  EventLog,
  make,
);
