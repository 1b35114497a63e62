/** One-row inserts without HTTP, by PostgreSQL's own pgbench. */
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { accessSync, constants, readdirSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { guardedDirectory } from "../../support/machine/guard.ts";
import { quantile } from "../figures.ts";

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

export const lacksPgbench = PROGRAM === undefined ? "pgbench" : null;

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

/** One-row inserts over `clients` connections. */
export const measureInserts = async (url: string, { clients, seconds }: Round): Promise<Inserts> => {
  if (PROGRAM === undefined) throw new Error("pgbench is not installed");
  const { hostname, searchParams, pathname, username, password } = new URL(url);
  const { directory, remove } = guardedDirectory("platform-bench-");
  try {
    const script = path.join(directory, "insert.sql");
    await writeFile(script, SCRIPT);
    const load = ["-c", String(clients), "-j", "1", "-T", String(seconds)];
    const { stdout } = await run(
      PROGRAM,
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
