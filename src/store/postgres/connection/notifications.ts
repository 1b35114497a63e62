/**
 * LISTEN, on one separate connection for all channels of this process: a pooled connection changes hands, and its
 * notifications would be lost.
 */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Fiber from "effect/Fiber";
import * as Layer from "effect/Layer";
import * as Queue from "effect/Queue";
import * as Scope from "effect/Scope";
import * as Semaphore from "effect/Semaphore";
import type { PgConnection } from "@effect/sql-pg/PgConnection";
import type { SqlError } from "effect/sql/SqlError";
import { open, type OpenConnection, type PostgresOptions } from "./connection.ts";
import { namedSqlError } from "./errors.ts";
import { DatabasePulse } from "./pulse.ts";

export class Notifications extends Context.Service<
  Notifications,
  {
    /**
     * Listens to a channel until it is interrupted or the connection ends, which is its only outcome.
     *
     * @param channel a name of ours: letters and underscores.
     * @param hear is called with each payload, and once with null when listening begins: earlier messages are lost.
     */
    readonly listen: (
      channel: string,
      hear: (payload: string | null) => void,
    ) => Effect.Effect<never, SqlError>;
  }
>()("platform/store/postgres/Notifications") {}

/** The listening connection. */
interface Ear extends Pick<OpenConnection, "end" | "isLost"> {
  readonly pinned: PgConnection;
  readonly scope: Scope.Closeable;
}

const openEar = (options: PostgresOptions): Effect.Effect<Ear, SqlError> =>
  Effect.gen(function* () {
    const scope = yield* Scope.make();
    const opening = Effect.flatMap(open({ ...options, statementTimeoutMs: 0 }), (connection) =>
      Effect.map(connection.connection.pin, (pinned) => ({ ...connection, pinned, scope })),
    );
    return yield* Scope.provide(opening, scope).pipe(
      Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause))),
    );
  });

/** Later notifications for a reader that left are dropped. */
const shutDown = (queue: Queue.Dequeue<unknown, SqlError>) =>
  Queue.isQueue(queue) ? Queue.shutdown(queue) : Effect.void;

const CLOSED = new Error("no one listens any more");

/** sql-pg would first send UNLISTEN, and wait for a server that may be silent. */
const close = ({ end, scope }: Ear) =>
  Effect.andThen(
    Effect.sync(() => end(CLOSED)),
    Scope.close(scope, Exit.void),
  );

export const layer = (options: PostgresOptions): Layer.Layer<Notifications, never, DatabasePulse> =>
  Layer.effect(
    Notifications,
    Effect.gen(function* () {
      const pulse = yield* DatabasePulse;
      const oneOpens = Semaphore.makeUnsafe(1);
      let current: Ear | null = null;
      const closeCurrent = Effect.suspend(() => (current === null ? Effect.void : close(current)));
      const ear = oneOpens.withPermit(
        Effect.suspend(() => {
          if (current?.isLost() === false) return Effect.succeed(current);
          return closeCurrent.pipe(
            Effect.andThen(openEar(options)),
            Effect.tap((fresh) => Effect.sync(() => (current = fresh))),
          );
        }),
      );
      yield* Effect.addFinalizer(() => closeCurrent);
      const forget = pulse.onEra(() => current?.end(new Error("the database is at another server")));
      yield* Effect.addFinalizer(() => Effect.sync(forget));

      /** It runs beside its caller: given up, it would send UNLISTEN. */
      const register = (channel: string) =>
        Effect.flatMap(Effect.uninterruptible(ear), ({ pinned, scope }) =>
          Effect.flatMap(Effect.forkIn(Scope.provide(pinned.listen(channel), scope), scope), Fiber.join),
        );
      return {
        listen: (channel, hear) =>
          Effect.scoped(
            Effect.gen(function* () {
              const queue = yield* Effect.acquireRelease(register(channel), shutDown, {
                interruptible: true,
              });
              hear(null);
              for (;;) hear((yield* Queue.take(queue)).payload);
            }),
          ).pipe(Effect.mapError(namedSqlError)),
      };
    }),
  );
