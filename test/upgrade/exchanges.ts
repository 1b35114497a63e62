/** Recorded answers of daemons of earlier versions (README.md), and a server that repeats them. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";

export interface Exchange {
  readonly method: string;
  /** The path and the query. */
  readonly target: string;
  readonly status: number;
  readonly text: string;
}

const STATES = path.join(import.meta.dirname, "states");
const SUFFIX = ".json";

/** The states with recorded exchanges. */
export const RECORDED_STATES: readonly string[] = readdirSync(STATES)
  .filter((name) => name.endsWith(SUFFIX))
  .map((name) => name.slice(0, -SUFFIX.length));

export const readExchanges = (state: string): readonly Exchange[] =>
  JSON.parse(readFileSync(path.join(STATES, `${state}${SUFFIX}`), "utf8")) as readonly Exchange[];

/** Where the daemon of a sandbox on this machine listens. */
export const daemonSocket = (sandboxId: string): string => {
  const places = readdirSync(tmpdir())
    .filter((name) => name.startsWith("platform-"))
    .map((name) => path.join(tmpdir(), name, "s", sandboxId))
    .filter((place) => existsSync(place));
  const [socket] = places.flatMap((place) =>
    readdirSync(place, { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith("d.sock"))
      .map((name) => path.join(place, name)),
  );
  if (socket === undefined) throw new Error(`the sandbox ${sandboxId} has no socket`);
  return socket;
};

const pathOf = (target: string): string => target.split("?")[0] ?? "";

/** A server that answers as the daemon did, by method and path. It closes each answer, also that of a stream. */
export class RecordedDaemon implements AsyncDisposable {
  readonly #server: Server;
  /** The requests, with the path only. */
  readonly asked: string[] = [];

  private constructor(exchanges: readonly Exchange[]) {
    this.#server = createServer((request, response) => {
      const { method = "", url = "" } = request;
      this.asked.push(`${method} ${pathOf(url)}`);
      const exchange = exchanges.find((one) => one.method === method && pathOf(one.target) === pathOf(url));
      request.resume();
      response.writeHead(exchange?.status ?? 404).end(exchange?.text ?? '{"code":"not_found"}');
    });
  }

  /** @param socket where it listens. Absent: on a port of loopback. */
  static async start(exchanges: readonly Exchange[], socket?: string): Promise<RecordedDaemon> {
    const daemon = new RecordedDaemon(exchanges);
    const place = socket === undefined ? { port: 0, host: "127.0.0.1" } : { path: socket };
    await new Promise<void>((resolve) => void daemon.#server.listen(place, resolve));
    return daemon;
  }

  get url(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => void this.#server.close(resolve));
  }
}
