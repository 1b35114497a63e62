/**
 * Tells every node that something about a subject was committed: this process at once, the others by NOTIFY. A separate
 * fiber sends NOTIFY, because inside a transaction it halves the commit rate, and waiting for it would slow the writer
 * down. One that the database did not take is sent again. If one is lost all the same, a look on a timer replaces it.
 */
import * as Effect from "effect/Effect";
import * as Latch from "effect/Latch";
import * as Schedule from "effect/Schedule";
import * as SqlClient from "effect/sql/SqlClient";
import type { SqlError } from "effect/sql/SqlError";
import { Notifications } from "./notifications.ts";

/**
 * Pause between two NOTIFYs on a channel. Signals in between are sent together, since each NOTIFY is a commit of its
 * own.
 */
export const NOTIFY_PAUSE_MS = 20;
/** After a lost connection. */
export const LISTEN_AGAIN_MS = 1_000;
/** For how many seconds a NOTIFY is repeated. Longer outages also end the listening connections, which then hear null. */
const NOTIFY_TRIES = 60;

/**
 * One channel, in the caller's scope.
 *
 * @param hear is called with each subject, and with null if all may have changed.
 * @returns `say`, to be called inside the transaction whose commit is announced.
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
    yield* sql`SELECT pg_notify(${channel}, subject) FROM unnest(${subjects}::text[]) AS subject`.pipe(
      Effect.retry({ schedule: Schedule.spaced(LISTEN_AGAIN_MS), times: NOTIFY_TRIES }),
      Effect.ignore,
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
