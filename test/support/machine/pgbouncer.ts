/** PgBouncer before a server of the tests, on loopback, with its files in a directory of its own. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, writeFileSync } from "node:fs";
import { connect, createServer, type AddressInfo } from "node:net";
import path from "node:path";
import { pipeline } from "node:stream";
import { pgbouncerProgram } from "../requirements.ts";
import { freePort } from "./free-port.ts";
import { guardedDirectory } from "./guard.ts";

export interface Pooler {
  /** The address of the same database through the pooler. */
  readonly url: string;
  readonly stop: () => Promise<void>;
}

const NOBODY = 65_534;

interface Ports {
  readonly own: number;
  readonly server: number;
}

/** A loopback port of a server: PgBouncer's user may not enter the directory of its socket. */
const bridged = async ({ searchParams, hostname, port }: URL) => {
  const at = Number(port) || 5432;
  const directory = searchParams.get("host");
  const bridge = createServer((from) => {
    const to = directory === null ? connect(at, hostname) : connect(path.join(directory, `.s.PGSQL.${at}`));
    pipeline(from, to, from, () => undefined);
  }).listen(0, "127.0.0.1");
  await once(bridge, "listening");
  return bridge;
};

const configuration = (ports: Ports, mode: string, server: URL): string => `
[databases]
* = host=127.0.0.1 port=${ports.server} user=${server.username} password='${server.password}'
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${ports.own}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
ignore_startup_parameters = statement_timeout, idle_in_transaction_session_timeout
`;

/** Starts it and waits until it listens. @param url the database's address at its server */
export const startPooler = async (url: string, mode: "transaction" | "session"): Promise<Pooler> => {
  if (pgbouncerProgram === undefined) throw new Error("this machine has no PgBouncer");
  const { directory, remove } = guardedDirectory("pgbouncer-");
  const server = new URL(url);
  const port = await freePort();
  const bridge = await bridged(server);
  const ports = { own: port, server: (bridge.address() as AddressInfo).port };
  writeFileSync(path.join(directory, "pgbouncer.ini"), configuration(ports, mode, server));
  // Root may not run it.
  const isRoot = process.getuid?.() === 0;
  if (isRoot) chownSync(directory, NOBODY, NOBODY);
  const child = spawn(pgbouncerProgram, ["pgbouncer.ini"], {
    cwd: directory,
    stdio: ["ignore", "ignore", "pipe"],
    ...(isRoot ? { uid: NOBODY, gid: NOBODY } : {}),
  });
  const ended = once(child, "exit");
  let said = "";
  await new Promise<void>((resolve, reject) => {
    child.stderr.on("data", (chunk: Buffer) => {
      said += chunk.toString();
      if (said.includes("process up")) resolve();
    });
    child.once("exit", () => reject(new Error(`PgBouncer did not start:\n${said}`)));
  });
  return {
    url: `postgres://${server.username}@127.0.0.1:${port}${server.pathname}?sslmode=disable`,
    stop: async () => {
      child.kill("SIGTERM");
      await ended;
      bridge.close();
      remove();
    },
  };
};
