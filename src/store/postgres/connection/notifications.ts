/** LISTEN on a connection of its own: a pooled connection changes hands, and its notifications would be lost. */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Queue from "effect/Queue";
import type { SqlError } from "effect/sql/SqlError";
import { open, type PostgresOptions } from "./connection.ts";
import { sqlErrorOf } from "./errors.ts";

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

export const layer = (options: PostgresOptions): Layer.Layer<Notifications> =>
  Layer.succeed(Notifications)({
    listen: (channel, hear) =>
      Effect.scoped(
        Effect.gen(function* () {
          const { connection, end } = yield* open({ ...options, statementTimeoutMs: 0 });
          const queue = yield* connection.listen(channel);
          // sql-pg would first send UNLISTEN, and wait for a server that may be silent.
          yield* Effect.addFinalizer(() => Effect.sync(() => end(new Error("no one listens any more"))));
          hear(null);
          for (;;) hear((yield* Queue.take(queue)).payload);
        }),
      ).pipe(Effect.mapError(sqlErrorOf)),
  });
