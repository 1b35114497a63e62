/**
 * Appends event rows inside the transaction that caused them, and tells readers after its commit: those of this process
 * at once, those of other nodes by NOTIFY. NOTIFY is sent by a fiber of its own, because inside a transaction it halves
 * the commits, and waiting for it would slow down the writer; a lost one costs a reader its poll interval.
 */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Latch from "effect/Latch";
import * as Layer from "effect/Layer";
import * as Schedule from "effect/Schedule";
import * as SqlClient from "effect/sql/SqlClient";
import type { SqlError } from "effect/sql/SqlError";
import type { NewEvent } from "../event-rows.ts";
import { Waiting } from "../waiting.ts";
import { Notifications } from "./notifications.ts";
import { json } from "./statement.ts";

const CHANNEL = "platform_events";

export class EventLog extends Context.Service<
  EventLog,
  {
    /** To be called inside the transaction whose events these are. */
    readonly append: (events: readonly NewEvent[]) => Effect.Effect<void, SqlError>;
    readonly changed: (projectId: string) => Effect.Effect<void>;
  }
>()("platform/store/postgres/EventLog") {}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const { listen } = yield* Notifications;
  const waiting = new Waiting();
  const unsaid = new Set<string>();
  const isUnsaid = Latch.makeUnsafe(false);

  yield* listen(CHANNEL, (projectId) => {
    waiting.wake(projectId);
  }).pipe(Effect.retry(Schedule.spaced("1 second")), Effect.forkScoped);

  const say = Effect.gen(function* () {
    yield* isUnsaid.await;
    const projects = [...unsaid];
    unsaid.clear();
    isUnsaid.closeUnsafe();
    // A failure is not repeated: the readers' poll covers it.
    yield* Effect.ignore(
      sql`SELECT pg_notify(${CHANNEL}, project) FROM unnest(${projects}::text[]) AS project`,
    );
  });
  yield* Effect.forkScoped(Effect.forever(say));

  const append = (events: readonly NewEvent[]): Effect.Effect<void, SqlError> =>
    events.length === 0
      ? Effect.void
      : sql`
          INSERT INTO events (project_id, session_id, type, at, data)
          SELECT project_id, session_id, type, to_timestamp(at / 1000.0), data
          FROM jsonb_to_recordset(${json(events.map(eventRow))}::jsonb)
            AS e(project_id uuid, session_id uuid, type text, at bigint, data jsonb)`.pipe(
          Effect.andThen(
            sql.afterCommit(
              Effect.sync(() => {
                for (const { projectId } of events) {
                  waiting.wake(projectId);
                  unsaid.add(projectId);
                }
                isUnsaid.openUnsafe();
              }),
            ),
          ),
        );

  return { append, changed: (projectId: string) => waiting.wait(projectId) };
});

const eventRow = (event: NewEvent) => ({
  project_id: event.projectId,
  session_id: event.sessionId,
  type: event.type,
  at: event.at,
  data: event.data,
});

export const layer: Layer.Layer<EventLog, never, SqlClient.SqlClient | Notifications> = Layer.effect(
  EventLog,
  make,
);
