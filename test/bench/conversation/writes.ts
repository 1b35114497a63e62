/** What a conversation's turn writes to Postgres: rows by table and bytes of WAL, beside bare rows with the same content. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import * as pg from "pg";

/** Statistics of a backend are told within this time. */
const TOLD_MS = 2_000;

export interface Written {
  readonly wal: number;
  /** Rows that were inserted, updated or deleted, by table. */
  readonly rows: Readonly<Record<string, number>>;
}

const connected = async (dataDir: string): Promise<pg.Client> => {
  const password = readFileSync(path.join(dataDir, "postgres-password"), "utf8").trim();
  const client = new pg.Client({
    host: path.join(dataDir, "postgres"),
    user: "platform",
    database: "postgres",
    password,
  });
  await client.connect();
  return client;
};

const now = async (client: pg.Client): Promise<Written> => {
  const wal = await client.query<{ wal: string }>(
    "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') AS wal",
  );
  const tables = await client.query<{ name: string; rows: string }>(
    "SELECT relname AS name, n_tup_ins + n_tup_upd + n_tup_del AS rows FROM pg_stat_user_tables",
  );
  return {
    wal: Number(wal.rows[0]?.wal),
    rows: Object.fromEntries(tables.rows.map(({ name, rows }) => [name, Number(rows)])),
  };
};

/** The database of an installation whose service runs. */
export class Writes {
  readonly #client: pg.Client;

  private constructor(client: pg.Client) {
    this.#client = client;
  }

  static async of(dataDir: string): Promise<Writes> {
    return new Writes(await connected(dataDir));
  }

  /** Counts the writes during the work. */
  async during(work: () => Promise<unknown>): Promise<Written> {
    await delay(TOLD_MS);
    const before = await now(this.#client);
    await work();
    await delay(TOLD_MS);
    const after = await now(this.#client);
    const rows = Object.entries(after.rows).map(
      ([name, count]) => [name, count - (before.rows[name] ?? 0)] as const,
    );
    return {
      wal: after.wal - before.wal,
      rows: Object.fromEntries(rows.filter(([, count]) => count > 0)),
    };
  }

  /** Copies the newest items of a conversation, each in a transaction of its own: the least that keeps them. */
  async bare(sessionId: string, items: number): Promise<Written> {
    await this.#client.query("CREATE TABLE IF NOT EXISTS bench_bare (LIKE conversation_items INCLUDING ALL)");
    await this.#client.query("TRUNCATE bench_bare");
    return this.during(async () => {
      for (let offset = 0; offset < items; offset += 1)
        await this.#client.query(
          `INSERT INTO bench_bare SELECT * FROM conversation_items WHERE session_id = $1
           ORDER BY place DESC OFFSET $2 LIMIT 1`,
          [sessionId, offset],
        );
    });
  }

  async items(sessionId: string): Promise<number> {
    const { rows } = await this.#client.query<{ count: string }>(
      "SELECT count(*) FROM conversation_items WHERE session_id = $1",
      [sessionId],
    );
    return Number(rows[0]?.count);
  }

  end(): Promise<void> {
    return this.#client.end();
  }
}
