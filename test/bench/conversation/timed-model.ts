/**
 * An OpenAI-compatible model on loopback that answers with tokens that carry their instant (farm-orders.ts, `stamp`), in
 * the rhythm that the benchmark sets.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { stamp } from "../../support/programs/farm-orders.ts";
import type { Talk } from "./streaming.ts";

export const MODEL = "timed";

export class TimedModel {
  readonly #talk: Talk;
  readonly #server: Server;

  constructor(talk: Talk) {
    this.#talk = talk;
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch(() => response.destroy());
    });
  }

  /** @returns its base URL, which ends in /v1. */
  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", () => resolve()));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method === "GET") {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ object: "list", data: [{ id: MODEL, object: "model" }] }));
      return;
    }
    const { tools } = (await json(request)) as { readonly tools?: readonly object[] };
    response.writeHead(200, { "content-type": "text/event-stream" });
    const write = (rest: object): void => {
      const chunk = { id: "1", object: "chat.completion.chunk", created: 1, model: MODEL, ...rest };
      response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    };
    const delta = (part: object, finish: string | null = null): void =>
      write({ choices: [{ index: 0, delta: part, finish_reason: finish }] });
    // Without tools, opencode asks for a title.
    if (tools === undefined) delta({ content: "A title" });
    else {
      const begun = performance.now();
      for (let count = 0; count < this.#talk.tokens; count += 1) {
        await delay(Math.max(0, begun + count * this.#talk.everyMs - performance.now()));
        delta({ content: stamp() });
      }
    }
    delta({}, "stop");
    write({ choices: [], usage: { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 } });
    response.end("data: [DONE]\n\n");
  }
}
