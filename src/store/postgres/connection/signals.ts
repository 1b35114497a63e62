/**
 * Tells every node, this process at once and the others by NOTIFY, that something of a subject was committed. NOTIFY is
 * sent by a fiber of its own, because inside a transaction it halves the commits, and waiting for it would slow down the
 * writer; a lost one costs whoever waits its poll interval.
 */
import * as Effect from "effect/Effect";
import * as Latch from "effect/Latch";
import * as Schedule from "effect/Schedule";
import * as SqlClient from "effect/sql/SqlClient";
import type { SqlError } from "effect/sql/SqlError";
import { Notifications } from "./notifications.ts";

/** Between two NOTIFYs of a channel: what is said meanwhile is said together, since each is a commit of its own. */
export const NOTIFY_PAUSE_MS = 20;
/** After a lost connection. */
export const LISTEN_AGAIN_MS = 1_000;

/**
 * One channel, in the caller's scope.
 *
 * @param hear is called with each subject, and with null where all may have changed.
 * @returns `say`, to be called inside the transaction whose commit is told.
 */
export const makeSignal = Effect.fnUntraced(function* (
  channel: string,
  hear: (subject: string | null) => void,
) {
  const sql = yield* SqlClient.SqlClient;
  const { listen } = yield* Notifications;
  const unsaid = new Set<string>();
  const isUnsaid = Latch.makeUnsafe(false);

  yield* listen(channel, hear).pipe(Effect.retry(Schedule.spaced(LISTEN_AGAIN_MS)), Effect.forkScoped);
  const notify = Effect.gen(function* () {
    yield* isUnsaid.await;
    const subjects = [...unsaid];
    unsaid.clear();
    isUnsaid.closeUnsafe();
    // A failure is not repeated: the poll of those who wait covers it.
    yield* Effect.ignore(
      sql`SELECT pg_notify(${channel}, subject) FROM unnest(${subjects}::text[]) AS subject`,
    );
    yield* Effect.sleep(NOTIFY_PAUSE_MS);
  });
  yield* Effect.forkScoped(Effect.forever(notify));

  const say = (subjects: readonly string[]): Effect.Effect<void, SqlError> =>
    sql.afterCommit(
      Effect.sync(() => {
        for (const subject of subjects) {
          hear(subject);
          unsaid.add(subject);
        }
        isUnsaid.openUnsafe();
      }),
    );
  return { say };
});
