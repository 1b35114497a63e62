/** LISTEN on a connection of its own: a pooled connection changes hands, and its notifications would be lost. */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import type { SqlError } from "effect/sql/SqlError";
import { connectionSettings, patientClient, type PostgresOptions } from "./connection.ts";
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

const open = (options: PostgresOptions) =>
  Effect.acquireRelease(
    Effect.tryPromise({
      try: async () => {
        const client = new (patientClient(options))({ ...connectionSettings(options), statement_timeout: 0 });
        // Ignores errors before `listen` waits for them: the following query fails with them.
        client.on("error", () => undefined);
        await client.connect();
        return client;
      },
      catch: (cause) => sqlErrorOf(cause, "listen"),
    }),
    (client) => Effect.promise(() => client.end().catch(() => undefined)),
  );

export const layer = (options: PostgresOptions): Layer.Layer<Notifications> =>
  Layer.succeed(Notifications)({
    listen: (channel, hear) =>
      Effect.scoped(
        Effect.gen(function* () {
          const client = yield* open(options);
          return yield* Effect.callback<never, SqlError>((resume) => {
            const fail = (cause: unknown) => {
              resume(Effect.fail(sqlErrorOf(cause, "listen")));
            };
            client.on("error", fail);
            client.on("end", () => {
              fail(new Error("the listening connection ended"));
            });
            client.on("notification", ({ payload }) => {
              hear(payload ?? "");
            });
            client.query(`LISTEN ${channel}`).then(() => hear(null), fail);
          });
        }),
      ),
  });
