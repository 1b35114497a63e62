/**
 * Ports for programs that get their port as a setting and bind it a moment later. They are below the kernel's ephemeral
 * ports: another test's server or connection could take one of those in between.
 */
import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/** The kernel's ephemeral ports begin at 32768. */
const FIRST = 20_000;
const PORTS_A_WORKER = 1000;
const WORKERS = 12;

const worker = Number(process.env["VITEST_POOL_ID"] ?? 0) % WORKERS;
/** Each run begins at a random port, and uses a port again only after all others of its worker. */
let taken = randomInt(PORTS_A_WORKER);

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });

/** A free port on loopback. */
export const freePort = async (): Promise<number> => {
  for (let tries = 0; tries < PORTS_A_WORKER; tries += 1) {
    taken = (taken + 1) % PORTS_A_WORKER;
    const port = FIRST + worker * PORTS_A_WORKER + taken;
    // oxlint-disable-next-line no-await-in-loop -- the next one only where this one is taken
    if (await isFree(port)) return port;
  }
  throw new Error("no port is free");
};
