/** The rows of an instant inserted once more, into a table of the same columns and indexes, without a service. */
import type * as pg from "pg";

type Row = readonly unknown[];

export interface Bare {
  readonly pool: pg.Pool;
  readonly checkpoint: () => Promise<void>;
  /** Throws where the ledger has not exactly this many rows of an instant, each queued. */
  readonly holdsAll: (dueMs: number, count: number) => Promise<void>;
  readonly close: () => Promise<void>;
}

const COLUMNS = {
  id: "uuid",
  account_id: "uuid",
  project_id: "uuid",
  trigger_slug: "text",
  kind: "text",
  status: "text",
  reason: "text",
  scheduled_for: "timestamptz",
  received_at: "timestamptz",
  delivery_id: "text",
  answers_delivery: "boolean",
  session_id: "uuid",
  attempts: "integer",
  replay_of: "uuid",
  fired_at: "timestamptz",
} as const;
const NAMES = Object.keys(COLUMNS);
const TYPES = Object.values(COLUMNS);
const INSERT = `INSERT INTO bare_fires (${NAMES.join(", ")})`;
const EACH = `${INSERT} VALUES (${NAMES.map((_, index) => `$${index + 1}`).join(", ")})`;
const TOGETHER = `${INSERT} SELECT * FROM unnest(${TYPES.map((type, index) => `$${index + 1}::${type}[]`).join(", ")})`;

/** A table like the ledger; LIKE takes indexes and checks along and no foreign keys. */
const TABLE = "CREATE TABLE IF NOT EXISTS bare_fires (LIKE fires INCLUDING ALL)";

export const openBare = async (pool: pg.Pool): Promise<Bare> => {
  await pool.query(TABLE);
  return {
    pool,
    checkpoint: async () => {
      await pool.query("CHECKPOINT");
    },
    holdsAll: async (dueMs, count) => {
      const { rows } = await pool.query<{ readonly status: string; readonly count: number }>(
        "SELECT status, count(*)::integer AS count FROM fires WHERE scheduled_for = $1 GROUP BY status",
        [new Date(dueMs)],
      );
      if (rows.length !== 1 || rows[0]?.status !== "queued" || rows[0].count !== count)
        throw new Error(`the ledger has ${JSON.stringify(rows)} instead of ${count} queued rows`);
    },
    close: () => pool.end(),
  };
};

const empty = async ({ pool, checkpoint }: Bare): Promise<void> => {
  await pool.query("TRUNCATE bare_fires");
  await checkpoint();
};

/** Ms from the first insert to each one's answer, and those that one statement for all takes. */
export const inserted = async (bare: Bare, dueMs: number) => {
  const { pool } = bare;
  const { rows } = await pool.query<Row[]>({
    text: `SELECT ${NAMES.join(", ")} FROM fires WHERE scheduled_for = $1`,
    values: [new Date(dueMs)],
    rowMode: "array",
  });
  await empty(bare);
  const waiting = [...rows];
  const each: number[] = [];
  let begun = performance.now();
  const insertAll = async (): Promise<void> => {
    for (let row = waiting.pop(); row !== undefined; row = waiting.pop()) {
      await pool.query({ name: "bare", text: EACH, values: [...row] });
      each.push(performance.now() - begun);
    }
  };
  await Promise.all(Array.from({ length: pool.options.max }, insertAll));
  await empty(bare);
  begun = performance.now();
  const columns = NAMES.map((_, index) => rows.map((row) => row[index]));
  await pool.query({ name: "bare-together", text: TOGETHER, values: columns });
  return { each, together: performance.now() - begun };
};
