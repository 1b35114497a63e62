/**
 * Connects an operator's command to the installation's database, whether or not the service runs.
 *
 *  Q1 If DATABASE_URL is set, as for the service, that database is used.
 *  Q2 Otherwise the embedded Postgres of the data directory. If a service runs it, the command shares it through its
 *     socket.
 *  Q3 If no service runs, the command owns the data directory and runs the database itself until it is done. A service
 *     that starts meanwhile gets the name of the owner. The command migrates nothing and creates no directory: only the
 *     service does.
 *  Q4 Statements name tables and columns of this version's schema. A database with another one is refused before that.
 */
import { realpath } from "node:fs/promises";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { EXIT, Failure } from "../../cli/failure.ts";
import type { Config } from "../../settings/config.ts";
import { claimDataDirectory } from "../../store/data-directory.ts";
import * as Client from "../../store/postgres/connection/client.ts";
import * as Embedded from "../../store/postgres/embedded/embedded.ts";
import { examineSchema } from "../../store/postgres/examine.ts";
import { postgresStore } from "../../assembly/database.ts";

/** In addition to the service's own ten. */
const CONNECTIONS = { maxConnections: 2, applicationName: "platform operator" } as const;

const noInstallation = (dataDir: string): Failure =>
  new Failure(EXIT.notFound, "no_installation", {
    message: `${dataDir} has no database. Set PLATFORM_DATA_DIR or DATABASE_URL as for the service, and run this command as the service's user.`,
  });

const notReady = (dataDir: string): Failure =>
  new Failure(EXIT.tryAgain, "database_unavailable", {
    message: `The database of ${dataDir} cannot be reached. The service is starting, it uses DATABASE_URL, or it runs as another user.`,
  });

/** The real path of an existing installation's data directory. */
export const installedDirectory = Effect.fnUntraced(function* ({ dataDir }: Config) {
  return yield* Effect.tryPromise({ try: () => realpath(dataDir), catch: () => noInstallation(dataDir) });
});

const besideTheService = Effect.fnUntraced(function* (dataDir: string) {
  const url = yield* Embedded.runningEmbedded(dataDir);
  if (url === null) return yield* Effect.fail(notReady(dataDir));
  return Client.layer({ url, ...CONNECTIONS });
});

/** A client of the installation's database (Q1 to Q3). */
export const installedDatabase = Effect.fnUntraced(function* (config: Config) {
  if (config.databaseUrl !== null) return Client.layer({ url: config.databaseUrl, ...CONNECTIONS });
  const dataDir = yield* installedDirectory(config);
  if (!(yield* Effect.promise(() => Embedded.hasEmbedded(dataDir))))
    return yield* Effect.fail(noInstallation(dataDir));
  return yield* Effect.as(claimDataDirectory(dataDir), Embedded.layer(dataDir)).pipe(
    Effect.catchTag("DataDirectoryOwned", () => besideTheService(dataDir)),
  );
});

const expectSchema = Effect.gen(function* () {
  const { pending, refusal } = yield* examineSchema;
  if (refusal !== null)
    return yield* Effect.fail(new Failure(EXIT.refused, "schema_unknown", { message: refusal }));
  if (pending > 0)
    return yield* Effect.fail(
      new Failure(EXIT.tryAgain, "migrations_pending", {
        message: `The database lacks ${pending} of this version's migrations. Start the service, which applies them, then try again.`,
      }),
    );
});

type DatabaseClient = Layer.Success<ReturnType<typeof Client.layer>>;

/** The store and the client of a database with this version's schema (Q4). */
export const storeOn = <E, R>(client: Layer.Layer<DatabaseClient, E, R>) =>
  Layer.provideMerge(postgresStore, Layer.provideMerge(Layer.effectDiscard(expectSchema), client));

/** The store of the installation that the settings name. */
export const installedStore = (config: Config) => storeOn(Layer.unwrap(installedDatabase(config)));
