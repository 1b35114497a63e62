/**
 * One-row inserts without HTTP: PostgreSQL's own pgbench where the machine has it, else a plain loop over `pg` that is
 * named as what it is.
 */
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { accessSync, constants, readdirSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import * as pg from "pg";
import { guardedDirectory } from "../../support/machine/guard.ts";
import { quantile } from "../scheduler/figures.ts";

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

/** What the inserts of one round came to. */
export interface Inserts {
  readonly perSecond: number;
  readonly p50Us: number;
  readonly p99Us: number;
}

const insertsOf = (perSecond: number, latenciesUs: readonly number[]): Inserts => ({
  perSecond,
  p50Us: quantile(latenciesUs, 0.5),
  p99Us: quantile(latenciesUs, 0.99),
});

/** How the names of pgbench's logs begin. */
const LOG = "transactions";
/** Of a line of pgbench's log: client, number, latency in µs, script, time. */
const LATENCY_FIELD = 2;

/** The latencies in the logs of pgbench's threads, in µs. */
const logged = async (directory: string): Promise<readonly number[]> => {
  const names = readdirSync(directory).filter((name) => name.startsWith(LOG));
  const logs = await Promise.all(names.map((name) => readFile(path.join(directory, name), "utf8")));
  return logs.flatMap((text) =>
    text
      .split("\n")
      .filter(Boolean)
      .map((line) => Number(line.split(" ")[LATENCY_FIELD])),
  );
};

const byProgram = async (program: string, url: string, { clients, seconds }: Round): Promise<Inserts> => {
  const { hostname, searchParams, pathname, username, password } = new URL(url);
  const { directory, remove } = guardedDirectory("platform-bench-");
  try {
    const script = path.join(directory, "insert.sql");
    await writeFile(script, SCRIPT);
    const load = ["-c", String(clients), "-j", "1", "-T", String(seconds)];
    const { stdout } = await run(
      program,
      ["-n", "-M", "prepared", ...load, "-l", `--log-prefix=${LOG}`, "-f", script],
      {
        // The log goes here, and the guard finds the program by it.
        cwd: directory,
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
    return insertsOf(Number(tps), await logged(directory));
  } finally {
    remove();
  }
};

const byLoop = async (url: string, { clients, seconds }: Round): Promise<Inserts> => {
  const pool = Array.from({ length: clients }, () => new pg.Client({ connectionString: url }));
  await Promise.all(pool.map((client) => client.connect()));
  const deadline = performance.now() + seconds * 1000;
  const latencies: number[] = [];
  let inserted = 0;
  const loop = async (client: pg.Client): Promise<void> => {
    for (let sent = performance.now(); sent < deadline; sent = performance.now()) {
      await client.query({
        name: "insert",
        text: "INSERT INTO pgbench_deliveries (project, slug, delivery_id, body) VALUES ($1, $2, $3, $4)",
        values: [PROJECT, "on-push", randomUUID(), BODY],
      });
      const answered = performance.now();
      latencies.push((answered - sent) * 1000);
      if (answered < deadline) inserted += 1;
    }
  };
  try {
    await Promise.all(pool.map(loop));
  } finally {
    await Promise.all(pool.map((client) => client.end()));
  }
  return insertsOf(inserted / seconds, latencies);
};

/** One-row inserts over `clients` connections. */
export const measureInserts = (url: string, round: Round): Promise<Inserts> =>
  PROGRAM === undefined ? byLoop(url, round) : byProgram(PROGRAM, url, round);
