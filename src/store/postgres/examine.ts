/**
 * What a database must be so that the service can use it. The start of the service and `platform doctor` ask here, so
 * both see the same. Nothing is changed.
 */
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import * as SqlClient from "effect/sql/SqlClient";
import type { SqlError } from "effect/sql/SqlError";
import { loadMigrations, migrate, remaining, type Applied } from "./migrate.ts";

/** Why the service cannot use the database, and the remedy. */
export interface Fault {
  readonly text: string;
  readonly todo: string;
}

export interface SchemaState {
  /** How many migrations the next start of the service would run. */
  readonly pending: number;
  /** Why this version of the service cannot use the database. Null if it can. */
  readonly refusal: string | null;
}

export interface DatabaseState extends SchemaState {
  /** The server's major version. */
  readonly major: number;
  readonly faults: readonly Fault[];
}

/** The database cannot be used as it is. */
export class DatabaseUnfit extends Schema.TaggedError<DatabaseUnfit>()("DatabaseUnfit", {
  text: Schema.String,
  todo: Schema.String,
}) {
  override get message(): string {
    return `${this.text}. ${this.todo}`;
  }
}

const MIN_MAJOR = 15;

/** What the rules judge. */
export interface Facts extends SchemaState {
  readonly major: number;
  readonly encoding: string;
  readonly isReadOnly: boolean;
  readonly mayCreate: boolean;
  /** Whether two connections of this process share a session of the server. */
  readonly isPooled: boolean;
}

type Rule = Fault & { readonly isBroken: (facts: Facts) => boolean };

const RULES: readonly Rule[] = [
  {
    isBroken: ({ major }) => major < MIN_MAJOR,
    text: "its Postgres is too old",
    todo: `Use Postgres ${MIN_MAJOR} or newer for DATABASE_URL.`,
  },
  {
    isBroken: ({ isPooled }) => isPooled,
    text: "a pooler gives each transaction another session (pool_mode = transaction)",
    todo: "The service needs sessions of its own: it prepares statements and listens for notifications. Set pool_mode = session, or let DATABASE_URL name the server itself.",
  },
  {
    isBroken: ({ isReadOnly }) => isReadOnly,
    text: "it is read-only",
    todo: "Let DATABASE_URL name the primary server, or set default_transaction_read_only = off.",
  },
  {
    isBroken: ({ encoding }) => encoding !== "UTF8",
    text: "its encoding is not UTF8",
    todo: "Create the database with ENCODING 'UTF8'.",
  },
  {
    isBroken: ({ pending, mayCreate }) => pending > 0 && !mayCreate,
    text: "its user may not create tables, and migrations are pending",
    todo: "Grant CREATE on the schema (GRANT CREATE ON SCHEMA public TO the user), or use the database's owner.",
  },
];

export const faultsIn = (facts: Facts): readonly Fault[] => [
  ...RULES.filter(({ isBroken }) => isBroken(facts)).map(({ text, todo }) => ({ text, todo })),
  ...(facts.refusal === null ? [] : [{ text: "its schema does not fit", todo: facts.refusal }]),
];

/** How often two connections are compared: a pooler may give both a session each, once. */
const COMPARISONS = 3;

/**
 * Whether a pooler gives each transaction another session: while one connection is in a transaction, the other one gets
 * that session, or a different one than before.
 */
const isPooled = Effect.scoped(
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    const [first, second] = [yield* sql.reserve, yield* sql.reserve];
    const backend = (of: typeof first): Effect.Effect<unknown, SqlError> =>
      Effect.map(of.executeValuesUnprepared("SELECT pg_backend_pid()", []), ([row]) => row?.[0]);
    const run = (statement: string) => second.executeUnprepared(statement, [], undefined);
    const compare = Effect.gen(function* () {
      const before = yield* backend(first);
      yield* run("BEGIN");
      if ((yield* backend(second)) === before) return true;
      return (yield* backend(first)) !== before;
    }).pipe(Effect.ensuring(Effect.ignore(run("ROLLBACK"))));
    for (let comparison = 0; comparison < COMPARISONS; comparison += 1) if (yield* compare) return true;
    return false;
  }),
);

/** Which migrations the database has. */
export const examineSchema = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const [about] = yield* sql<{ readonly migrated: boolean }>`
    SELECT to_regclass('schema_migrations') IS NOT NULL AS migrated`;
  const migrations = about?.migrated
    ? yield* sql<Applied>`SELECT name, checksum FROM schema_migrations ORDER BY name COLLATE "C"`
    : [];
  return yield* remaining(yield* loadMigrations, migrations).pipe(
    Effect.map((missing): SchemaState => ({ pending: missing.length, refusal: null })),
    Effect.catch(({ message }) => Effect.succeed<SchemaState>({ pending: 0, refusal: message })),
  );
});

export const examineDatabase = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  // First, because behind a pooler that shares sessions even a prepared statement can fail.
  const isThroughPooler = yield* isPooled;
  const [about] = yield* sql<{
    readonly version: string;
    readonly encoding: string;
    readonly isReadOnly: boolean;
    readonly mayCreate: boolean;
  }>`
    SELECT current_setting('server_version_num') AS version, current_setting('server_encoding') AS encoding,
      pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' AS "isReadOnly",
      coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AS "mayCreate"`.unprepared;
  const major = Math.floor(Number(about?.version) / 10_000);
  const facts = {
    major,
    encoding: about?.encoding ?? "",
    isReadOnly: about?.isReadOnly ?? false,
    mayCreate: about?.mayCreate ?? false,
    isPooled: isThroughPooler,
    ...(isThroughPooler ? { pending: 0, refusal: null } : yield* examineSchema),
  };
  const { pending, refusal } = facts;
  return { major, pending, refusal, faults: faultsIn(facts) } satisfies DatabaseState;
});

/** Refuses a database that the service could not use. */
export const requireFit: Effect.Effect<void, DatabaseUnfit | SqlError, SqlClient.SqlClient> = Effect.flatMap(
  examineDatabase,
  ({ faults: [fault] }) => (fault === undefined ? Effect.void : Effect.fail(new DatabaseUnfit(fault))),
);

/** A running node sends a heartbeat each second. */
const HEARTBEATS = "3 seconds";

/** The heartbeats that other nodes have sent, by their ids. */
const beatsOfOthers = Effect.fnUntraced(function* (nodeId: string) {
  const sql = yield* SqlClient.SqlClient;
  const [about] = yield* sql<{ readonly has: boolean }>`SELECT to_regclass('nodes') IS NOT NULL AS has`;
  if (about?.has !== true) return new Map<string, string>();
  const rows = yield* sql<{ readonly id: string; readonly beats: string }>`
    SELECT id, beats::text AS beats FROM nodes WHERE id <> ${nodeId} AND dead_at IS NULL`;
  return new Map(rows.map(({ id, beats }) => [id, beats]));
});

/** Refuses to migrate under nodes of an earlier version: they would read and write tables that they do not know. */
const requireAlone = Effect.fnUntraced(function* (nodeId: string) {
  const before = yield* beatsOfOthers(nodeId);
  if (before.size === 0) return;
  yield* Effect.sleep(HEARTBEATS);
  const after = yield* beatsOfOthers(nodeId);
  const running = [...after].filter(([id, beats]) => before.get(id) !== beats).map(([id]) => id);
  // Another node of this version may have migrated the database meanwhile, and run.
  if (running.length === 0 || (yield* examineSchema).pending === 0) return;
  return yield* new DatabaseUnfit({
    text: `another version of the service still runs on it (node ${running.join(", ")}), and this version would migrate it`,
    todo: "Stop the service on all nodes, then start this version.",
  });
});

/** The start's way to the database. @param nodeId of the node that starts */
export const migrateIfFit = Effect.fnUntraced(function* (nodeId: string) {
  yield* requireFit;
  if ((yield* examineSchema).pending > 0) yield* requireAlone(nodeId);
  return yield* migrate;
});
