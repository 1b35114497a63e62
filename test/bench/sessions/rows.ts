/** Many stopped sessions beside one that the service made itself: copies of its rows, each with ids of its own. */
import * as Effect from "effect/Effect";
import * as pg from "pg";
import { claimDataDirectory } from "../../../src/store/data-directory.ts";
import { startEmbedded } from "../../../src/store/postgres/embedded/embedded.ts";

/** Copies of the rows of a table with these columns set, for each row of `copy`. */
const copies = (table: string, columns: string, where: string): string => `
  INSERT INTO ${table} SELECT (r).* FROM (
    SELECT jsonb_populate_record(original, jsonb_build_object(${columns})) AS r
    FROM ${table} AS original, copy WHERE ${where} OFFSET 0
  ) AS made`;

const AGED = "original.created_at - copy.number * interval '1 second'";

const statements = (count: number): readonly string[] => [
  `CREATE TEMP TABLE copy AS
   SELECT number, gen_random_uuid() AS session, gen_random_uuid() AS sandbox FROM generate_series(1, ${count}) AS number`,
  "SET session_replication_role = replica",
  copies(
    "project_sessions",
    `'id', session, 'created_at', ${AGED},
     'state_context', jsonb_set(original.state_context, '{sandboxId}', to_jsonb(sandbox))`,
    "original.id = $1",
  ),
  copies(
    "session_sandboxes",
    `'id', sandbox, 'session_id', session, 'created_at', ${AGED}`,
    "original.session_id = $1",
  ),
  copies(
    "tokens",
    `'id', gen_random_uuid(), 'session_id', session, 'sandbox_id', sandbox, 'hash', md5(random()::text || number)`,
    "original.session_id = $1",
  ),
];

/** Adds copies of a stopped session to the embedded database of an installation that no service runs on. */
export const addStopped = (dataDir: string, sessionId: string, count: number): Promise<void> =>
  Effect.runPromise(
    Effect.gen(function* () {
      const { url } = yield* startEmbedded(yield* claimDataDirectory(dataDir));
      yield* Effect.promise(async () => {
        const client = new pg.Client({ connectionString: url });
        await client.connect();
        // oxlint-disable-next-line no-await-in-loop -- each needs the former
        for (const text of statements(count))
          await client.query(text, text.includes("$1") ? [sessionId] : []);
        // As a database is that has had its rows for a while.
        await client.query("VACUUM ANALYZE");
        await client.end();
      });
    }).pipe(Effect.scoped),
  );
