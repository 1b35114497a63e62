/**
 * Vitest's global set-up: it offers the run's Postgres and does not start it. The offer is an address that answers one HTTP
 * request. The first request starts the server (programs/postgres-main.ts), and each request gets the same answer. So a run whose
 * tests ask for no database starts none.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, get } from "node:http";
import type { AddressInfo } from "node:net";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import type { TestProject } from "vitest/node";

declare module "vitest" {
  interface ProvidedContext {
    /** Where a test asks for the run's Postgres. */
    postgres: string;
  }
}

/** The server of a run, and a migrated database on it that tests copy. */
export interface RunPostgres {
  readonly url: string;
  readonly template: string;
}

interface Started extends RunPostgres {
  readonly stop: () => Promise<void>;
}

const PROGRAM = fileURLToPath(new URL("../programs/postgres-main.ts", import.meta.url));

/** A program of its own: the modules of the store cost a run that needs no database half a second. */
const start = async (): Promise<Started> => {
  const child = spawn(process.execPath, [PROGRAM], { stdio: ["pipe", "pipe", "pipe"] });
  const [complaint, closed] = [text(child.stderr), once(child, "close")];
  const lines = createInterface(child.stdout);
  const line = await Promise.race([
    once(lines, "line").then(([first]) => first as string),
    closed.then(() => null),
  ]);
  if (line === null) throw new Error(await complaint);
  const stop = async (): Promise<void> => {
    child.stdin.end();
    await closed;
  };
  return { ...(JSON.parse(line) as RunPostgres), stop };
};

/** An offer of a Postgres. */
export interface Offer {
  readonly address: string;
  /** Ends the offer, and the server where one was started. */
  readonly close: () => Promise<void>;
}

export const offerPostgres = async (): Promise<Offer> => {
  let started: Promise<Started> | null = null;
  const listener = createServer((_request, response) => {
    started ??= start();
    started.then(
      ({ url, template }) => response.end(JSON.stringify({ url, template } satisfies RunPostgres)),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  await new Promise<void>((resolve) => {
    listener.listen(0, "127.0.0.1", resolve);
  });
  const { port } = listener.address() as AddressInfo;
  return {
    address: `http://127.0.0.1:${port}/`,
    close: async () => {
      listener.close();
      listener.closeAllConnections();
      // A start that failed has cleared up after itself.
      const server = await started?.catch(() => null);
      await server?.stop();
    },
  };
};

/** Asks for the server behind an offer, and waits until it accepts connections. */
export const askForPostgres = async (address: string): Promise<RunPostgres> => {
  const answer = await new Promise<{ readonly status: number; readonly body: string }>((resolve, reject) => {
    get(address, { agent: false }, (response) => {
      text(response).then((body) => resolve({ status: response.statusCode ?? 0, body }), reject);
    }).once("error", reject);
  });
  if (answer.status !== 200) throw new Error(`Postgres did not start: ${answer.body}`);
  return JSON.parse(answer.body) as RunPostgres;
};

export const setup = async (project: TestProject): Promise<() => Promise<void>> => {
  const { address, close } = await offerPostgres();
  project.provide("postgres", address);
  return close;
};
