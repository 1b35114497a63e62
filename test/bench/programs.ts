/** Programs of the benchmarks, each in a process of its own, so that what they cost is counted apart. */
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";

/** What a server says to its parent once it listens. */
interface Listening {
  readonly port: number;
}

/** Listens on a free port of loopback, says it to the parent, and ends with the parent. */
export const serveParent = (server: Server): void => {
  server.listen(0, "127.0.0.1", () => {
    process.send?.({ port: (server.address() as AddressInfo).port } satisfies Listening);
  });
  process.on("disconnect", () => process.exit());
};

export const answer = (response: ServerResponse, status: number, body: string): void => {
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
  });
  response.end(body);
};

/** Answers with what the work says, and with 500 if it fails. */
export const answerWith = (response: ServerResponse, work: Promise<void>): void =>
  void work.catch((error: unknown) => {
    process.stderr.write(`${String(error)}\n`);
    answer(response, 500, "{}");
  });

const start = (
  program: string,
  settings: Readonly<Record<string, string>>,
  execArgv: readonly string[],
): { readonly child: ChildProcess; readonly word: () => Promise<unknown> } => {
  const { DATABASE_URL: _, ...environment } = process.env;
  const file = path.join(import.meta.dirname, program);
  const child = fork(file, { env: { ...environment, ...settings }, execArgv: [...execArgv] });
  const ended = once(child, "exit").then(([code]) => {
    throw new Error(`${program} ended with ${String(code)}`);
  });
  // Callers that wait for a word hear of its end; at the very end no caller waits.
  ended.catch(() => undefined);
  const word = async () => ((await Promise.race([once(child, "message"), ended])) as [unknown])[0];
  return { child, word };
};

/** Starts a server of this folder, with what it says once it listens (`serveParent`). */
export const startServer = async <Said extends object = Listening>(
  program: string,
  settings: Readonly<Record<string, string>> = {},
) => {
  const { child, word } = start(program, settings, []);
  return { ...((await word()) as Said), pid: child.pid ?? 0, close: () => child.disconnect() };
};

/** A program of this folder that answers one order after another. */
export const startWorker = <Order extends object, Answer>(
  program: string,
  execArgv: readonly string[] = [],
) => {
  const { child, word } = start(program, {}, execArgv);
  return {
    ask: (order: Order): Promise<Answer> => {
      child.send(order);
      return word() as Promise<Answer>;
    },
    close: () => child.disconnect(),
  };
};

/** Takes the parent's orders, one after another. A failure ends the program. */
export const obey = <Order>(perform: (order: Order) => Promise<unknown>): void => {
  process.on("message", (order: Order) => {
    perform(order).then(
      (outcome) => process.send?.(outcome),
      (error: unknown) => {
        process.stderr.write(`${String(error)}\n`);
        process.exit(1);
      },
    );
  });
};
