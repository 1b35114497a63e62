/**
 * A database's schema as text: types, tables with their columns and constraints, indexes, functions, triggers, all in order of their names.
 * The same schema always gives the same text, however it was created. The embedded Postgres has no pg_dump, but the
 * catalogs contain everything.
 */
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";

interface Column {
  readonly table: string;
  readonly name: string;
  readonly type: string;
  readonly required: boolean;
  readonly defaults: string | null;
  readonly identity: string;
}
interface Definition {
  readonly table: string;
  readonly name: string;
  readonly definition: string;
}

const columnLine = ({ name, type, required, defaults, identity }: Column): string =>
  [
    `  ${name} ${type}`,
    ...(required ? ["NOT NULL"] : []),
    ...(identity === "a" ? ["GENERATED ALWAYS AS IDENTITY"] : []),
    ...(defaults === null ? [] : [`DEFAULT ${defaults}`]),
  ].join(" ");

export const dumpSchema = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const enums = yield* sql<{ readonly name: string; readonly labels: readonly string[] }>`
    SELECT typname::text AS name, array_agg(enumlabel::text ORDER BY enumsortorder) AS labels
    FROM pg_enum JOIN pg_type ON pg_type.oid = enumtypid GROUP BY typname ORDER BY typname::text COLLATE "C"`;
  const columns = yield* sql<Column>`
    SELECT relname::text AS "table", attname::text AS name, format_type(atttypid, atttypmod) AS type,
      attnotnull AS required, pg_get_expr(adbin, adrelid) AS defaults, attidentity::text AS identity
    FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
    WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND attnum > 0 AND NOT attisdropped
    ORDER BY relname::text COLLATE "C", attnum`;
  // Since Postgres 18 NOT NULL is also a constraint. The columns already show it.
  const constraints = yield* sql<Definition>`
    SELECT relname::text AS "table", conname::text AS name, pg_get_constraintdef(pg_constraint.oid) AS definition
    FROM pg_constraint JOIN pg_class ON pg_class.oid = conrelid
    WHERE connamespace = 'public'::regnamespace AND contype <> 'n' ORDER BY conname::text COLLATE "C"`;
  const indexes = yield* sql<Definition>`
    SELECT tablename::text AS "table", indexname::text AS name, indexdef AS definition FROM pg_indexes
    WHERE schemaname = 'public' AND indexname NOT IN (SELECT conname FROM pg_constraint)
    ORDER BY indexname::text COLLATE "C"`;

  const functions = yield* sql<{ readonly definition: string }>`
    SELECT pg_get_functiondef(oid) AS definition FROM pg_proc
    WHERE pronamespace = 'public'::regnamespace ORDER BY proname::text COLLATE "C"`;
  const triggers = yield* sql<{ readonly definition: string }>`
    SELECT pg_get_triggerdef(oid) AS definition FROM pg_trigger
    WHERE NOT tgisinternal ORDER BY tgname::text COLLATE "C"`;

  const tables = [...new Set(columns.map(({ table }) => table))].map((table) => {
    const lines = [
      ...columns.filter((column) => column.table === table).map(columnLine),
      ...constraints
        .filter((constraint) => constraint.table === table)
        .map(({ name, definition }) => `  CONSTRAINT ${name} ${definition}`),
    ];
    const own = indexes.filter((index) => index.table === table).map(({ definition }) => `${definition};`);
    return [`CREATE TABLE ${table} (\n${lines.join(",\n")}\n);`, ...own].join("\n");
  });
  const types = enums.map(
    ({ name, labels }) => `CREATE TYPE ${name} AS ENUM (${labels.map((label) => `'${label}'`).join(", ")});`,
  );
  const header =
    "-- What an empty database and all migrations give; written by test/store/schema/migrate.test.ts.";
  const others = [...functions, ...triggers].map(({ definition }) => `${definition.trimEnd()};`);
  return `${[header, ...types, ...tables, ...others].join("\n\n")}\n`;
});
