/** Passes requests on to an agent runtime, so that a test can change or refuse some of them. */
import { createServer, request, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

/** What becomes of the body of a replay. Null: it is refused with 500. "never": it is not answered. */
export type Meddle = (body: string) => string | null | "never";

export class RuntimeProxy {
  meddle: Meddle = (body) => body;
  /** How many replays came. */
  replays = 0;
  readonly #port: number;
  readonly #server = createServer((from, to) => void this.#pass(from, to));

  /** @param port where the runtime listens */
  constructor(port: number) {
    this.#port = port;
  }

  async start(): Promise<number> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", () => resolve()));
    return (this.#server.address() as AddressInfo).port;
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #pass(from: IncomingMessage, to: ServerResponse): Promise<void> {
    const given = await text(from);
    const isReplay = from.url === "/sync/replay";
    if (isReplay) this.replays += 1;
    const body = isReplay ? this.meddle(given) : given;
    if (body === "never") return;
    if (body === null) {
      to.writeHead(500).end("{}");
      return;
    }
    const { "content-length": _, ...headers } = from.headers;
    const passed = request(
      { host: "127.0.0.1", port: this.#port, path: from.url, method: from.method, headers, agent: false },
      (answer) => {
        to.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(to);
        answer.on("error", () => to.destroy());
      },
    );
    to.on("close", () => passed.destroy());
    passed.on("error", () => to.destroy());
    passed.end(body);
  }
}
