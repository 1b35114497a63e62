/**
 * Reads and writes every row of a database as text, for the backup of an embedded installation. The embedded Postgres
 * comes without pg_dump, and a copy of its files would fit only one version of it.
 *
 *  D1 All tables are read in one snapshot.
 *  D2 A row is the text of its record, exact for every type. The snapshot names the migrations to which its table
 *     belongs.
 *     The schema may be older than the program, so every table is named by the catalogue.
 *  D3 Values that contain transaction ids are only valid on their server. Events, their pruning horizons and the place
 *     of people's notices are left out (readers of events are told `reset`), and a column of transaction ids takes its default.
 */
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import type * as Scope from "effect/Scope";
import { thrownText } from "../../ground/thrown.ts";
import { open } from "./connection/connection.ts";
import { namedSqlError } from "./connection/errors.ts";
import { parameter } from "./connection/values.ts";
import { KEY_CHECK } from "./projects/secrets.ts";

/** The database cannot be read or filled. */
export class RowsFailed extends Schema.TaggedError<RowsFailed>()("RowsFailed", {
  doing: Schema.String,
  cause: Schema.Defect(),
}) {
  override get message(): string {
    return `${this.doing} failed: ${thrownText(this.cause)}`;
  }
}

/** The record of the schema itself. A restore finds it as the migrations wrote it. */
const RECORD = "schema_migrations";
/** Events can be made again, and no sandbox waits for a session of a copy. An older schema need not have these tables. */
const LEFT_OUT = [RECORD, "events", "event_horizons", "own_notices_place", "warm_sandboxes"];
/** How much text is read or written at a time. */
const PORTION_BYTES = 1024 * 1024;
const PORTION_ROWS = 1_000;

export interface Snapshot {
  readonly migrations: readonly { readonly name: string; readonly checksum: string }[];
  readonly tables: readonly string[];
  readonly projects: readonly { readonly id: string; readonly kind: string }[];
  /** The check value of the master key. Null before the first start is complete. */
  readonly keyCheck: string | null;
  /** Rows of a table, in portions. One table at a time. */
  readonly rows: (table: string) => AsyncIterable<readonly string[]>;
}

const attempt = <A>(doing: string, run: () => Promise<A>): Effect.Effect<A, RowsFailed> =>
  Effect.tryPromise({ try: run, catch: (cause) => new RowsFailed({ doing, cause }) });

/** Runs a statement and resolves with its rows. */
type Query = <Row>(text: string, values?: readonly unknown[]) => Promise<readonly Row[]>;

/** A separate connection without a time limit. */
const connect = (url: string): Effect.Effect<Query, RowsFailed, Scope.Scope> =>
  open({ url, applicationName: "platform backup", statementTimeoutMs: 0 }, { idleInTransactionMs: 0 }).pipe(
    Effect.map(
      ({ connection }): Query =>
        <Row>(text: string, values: readonly unknown[] = []) =>
          Effect.runPromise(
            connection.query(text, values.map(parameter), false).pipe(
              Effect.map(({ rows }) => rows as readonly Row[]),
              Effect.mapError(namedSqlError),
            ),
          ),
    ),
    Effect.mapError((cause) => new RowsFailed({ doing: "Reaching the database", cause })),
  );

/** Names come from the catalogue. They are quoted all the same. */
const quoteName = (name: string): string => `"${name.replaceAll('"', '""')}"`;

const tablesExcept = async (query: Query, names: readonly string[]): Promise<readonly string[]> => {
  const rows = await query<{ readonly name: string }>(
    "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' AND tablename <> ALL ($1) ORDER BY 1",
    [names],
  );
  return rows.map(({ name }) => name);
};

async function* readRows(query: Query, table: string): AsyncGenerator<readonly string[]> {
  await query(`DECLARE portions NO SCROLL CURSOR FOR SELECT t::text AS row FROM ${quoteName(table)} AS t`);
  // A log's row is a megabyte, other rows are a line: the size of the earlier rows decides how many are read.
  let [count, bytes, wanted] = [0, 0, 1];
  try {
    for (;;) {
      // oxlint-disable-next-line no-await-in-loop -- one portion after the other
      const portion = await query<{ readonly row: string }>(`FETCH ${wanted} FROM portions`);
      if (portion.length === 0) return;
      count += portion.length;
      bytes += portion.reduce((sum, { row }) => sum + row.length, 0);
      wanted = Math.max(1, Math.min(PORTION_ROWS, Math.floor(PORTION_BYTES / (bytes / count))));
      yield portion.map(({ row }) => row);
    }
  } finally {
    // After an error there is no cursor any more.
    await query("CLOSE portions").catch(() => undefined);
  }
}

/** Opens the snapshot until the scope closes. */
export const openSnapshot = Effect.fnUntraced(function* (url: string) {
  const query = yield* connect(url);
  return yield* attempt("Reading the database", async (): Promise<Snapshot> => {
    await query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    const migrations = await query<Snapshot["migrations"][number]>(
      `SELECT name, checksum FROM schema_migrations ORDER BY name COLLATE "C"`,
    );
    const projects = await query<Snapshot["projects"][number]>(
      "SELECT id, repository->>'kind' AS kind FROM projects ORDER BY id",
    );
    const check = await query<{ readonly value: string }>("SELECT value FROM settings WHERE key = $1", [
      KEY_CHECK,
    ]);
    return {
      migrations,
      tables: await tablesExcept(query, LEFT_OUT),
      projects,
      keyCheck: check[0]?.value ?? null,
      rows: (table) => readRows(query, table),
    };
  });
});

interface Column {
  readonly name: string;
  readonly isOfServer: boolean;
  readonly isIdentity: boolean;
}

const readColumns = (query: Query, table: string): Promise<readonly Column[]> => {
  return query<Column>(
    `SELECT attname AS name, atttypid = 'xid8'::regtype AS "isOfServer", attidentity <> '' AS "isIdentity"
     FROM pg_attribute
     WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
     ORDER BY attnum`,
    [quoteName(table)],
  );
};

export interface Filling {
  /** Adds rows to a table. Those of a table that this version leaves out are dropped. */
  readonly add: (table: string, rows: readonly string[]) => Promise<void>;
}

const filling = (query: Query, columns: ReadonlyMap<string, readonly Column[]>): Filling => ({
  add: async (table, rows) => {
    if (LEFT_OUT.includes(table)) return;
    const tableColumns = columns.get(table);
    if (tableColumns === undefined) throw new Error(`there is no table ${table}`);
    const names = tableColumns.filter(({ isOfServer }) => !isOfServer).map(({ name }) => quoteName(name));
    await query(
      `WITH given AS MATERIALIZED (SELECT line::${quoteName(table)} AS r FROM unnest($1::text[]) AS line)
       INSERT INTO ${quoteName(table)} (${names.join(", ")}) OVERRIDING SYSTEM VALUE
       SELECT ${names.map((name) => `(r).${name}`).join(", ")} FROM given`,
      [rows],
    );
  },
});

/** Sequences continue after the restored numbers. */
const advance = async (query: Query, table: string, column: string): Promise<void> => {
  await query(
    `SELECT setval(pg_get_serial_sequence($1, $2), max(${quoteName(column)})) FROM ${quoteName(table)}
     HAVING max(${quoteName(column)}) IS NOT NULL`,
    [quoteName(table), column],
  );
};

/**
 * Replaces the content of a migrated database by the rows that `fill` adds, in one transaction. Rows may come in any
 * order: the rows that they refer to come from the same snapshot.
 */
export const fillTables = Effect.fnUntraced(function* (
  url: string,
  fill: (filling: Filling) => Promise<void>,
) {
  const query = yield* connect(url);
  yield* attempt("Filling the database", async () => {
    await query("BEGIN");
    await query("SET LOCAL session_replication_role = replica");
    await query(`TRUNCATE ${(await tablesExcept(query, [RECORD])).map(quoteName).join(", ")}`);
    const columns = new Map<string, readonly Column[]>();
    // oxlint-disable no-await-in-loop -- one connection, one statement at a time
    for (const table of await tablesExcept(query, LEFT_OUT))
      columns.set(table, await readColumns(query, table));
    await fill(filling(query, columns));
    for (const [table, own] of columns) {
      for (const { name } of own.filter(({ isIdentity }) => isIdentity)) await advance(query, table, name);
    }
    // oxlint-enable no-await-in-loop
    await query("COMMIT");
  });
});
