/**
 * One-row inserts without HTTP: PostgreSQL's own pgbench where the machine has it, else a plain loop over `pg` that is
 * named as what it is.
 */
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { accessSync, constants, readdirSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import * as pg from "pg";

const run = promisify(execFile);

/** The server takes 100 connections, and the service's and the bare receiver's pools keep theirs. */
const CLIENTS_MAX = 64;
const PROJECT = randomUUID();
const BODY = Buffer.alloc(1_000, "x");
const DEBIAN = "/usr/lib/postgresql";

const debianFolders = (): readonly string[] => {
  try {
    return readdirSync(DEBIAN).map((version) => path.join(DEBIAN, version, "bin"));
  } catch {
    return [];
  }
};

const isProgram = (file: string): boolean => {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
};

// Debian's own folders first: what it has on the PATH is a script that looks a version up.
const PROGRAM = [...debianFolders(), ...(process.env["PATH"] ?? "").split(path.delimiter)]
  .map((directory) => path.join(directory, "pgbench"))
  .find(isProgram);

/** What makes the inserts: `pgbench`, or the loop that stands in for it. */
export const PGBENCH = PROGRAM === undefined ? "pg loop" : "pgbench";

export const clientsFor = (connections: number): number => Math.min(connections, CLIENTS_MAX);

const SCRIPT = `INSERT INTO pgbench_deliveries (project, slug, delivery_id, body)
  VALUES ('${PROJECT}', 'on-push', gen_random_uuid()::text, '\\x${BODY.toString("hex")}');\n`;

interface Round {
  readonly clients: number;
  readonly seconds: number;
}

const byProgram = async (program: string, url: string, { clients, seconds }: Round): Promise<number> => {
  const { hostname, searchParams, pathname, username, password } = new URL(url);
  const directory = await mkdtemp(path.join(tmpdir(), "platform-bench-"));
  try {
    const script = path.join(directory, "insert.sql");
    await writeFile(script, SCRIPT);
    const { stdout } = await run(
      program,
      ["-n", "-M", "prepared", "-c", String(clients), "-j", "1", "-T", String(seconds), "-f", script],
      {
        env: {
          ...process.env,
          PGHOST: searchParams.get("host") ?? hostname,
          PGUSER: username,
          PGPASSWORD: password,
          PGDATABASE: pathname.slice(1),
        },
      },
    );
    const tps = /^tps = (?<tps>[\d.]+)/m.exec(stdout)?.groups?.["tps"];
    if (tps === undefined) throw new Error(`pgbench said no rate:\n${stdout}`);
    return Number(tps);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
};

const byLoop = async (url: string, { clients, seconds }: Round): Promise<number> => {
  const pool = Array.from({ length: clients }, () => new pg.Client({ connectionString: url }));
  await Promise.all(pool.map((client) => client.connect()));
  const deadline = performance.now() + seconds * 1000;
  let inserted = 0;
  const loop = async (client: pg.Client): Promise<void> => {
    while (performance.now() < deadline) {
      await client.query({
        name: "insert",
        text: "INSERT INTO pgbench_deliveries (project, slug, delivery_id, body) VALUES ($1, $2, $3, $4)",
        values: [PROJECT, "on-push", randomUUID(), BODY],
      });
      if (performance.now() < deadline) inserted += 1;
    }
  };
  try {
    await Promise.all(pool.map(loop));
  } finally {
    await Promise.all(pool.map((client) => client.end()));
  }
  return inserted / seconds;
};

/** Rows a second over `clients` connections. */
export const insertsPerSecond = (url: string, round: Round): Promise<number> =>
  PROGRAM === undefined ? byLoop(url, round) : byProgram(PROGRAM, url, round);
