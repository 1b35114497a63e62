/**
 * A model provider on loopback that fails on request: an OpenAI-compatible and an Anthropic server in one. The model's
 * id decides the outcome of a call: `ok`, `unauthorized`, `broke`, `quota`, `broken`, `cut`.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";

export interface ModelCall {
  readonly path: string;
  readonly model: string;
  readonly key: string | undefined;
  /** Names of the tools that the model may use. */
  readonly tools: readonly string[];
  /** The whole request. */
  readonly text: string;
}

interface ChatRequest {
  readonly model: string;
  readonly tools?: readonly { readonly name?: string; readonly function?: { readonly name: string } }[];
}

const REFUSALS: Readonly<Record<string, readonly [number, string]>> = {
  unauthorized: [401, "Incorrect API key provided: sk-canary-key-of-the-project"],
  broke: [402, "Payment required, says the provider"],
  quota: [429, "You exceeded your current quota"],
  broken: [500, "The server had an error"],
};

const openai = (response: ServerResponse, request: ChatRequest): void => {
  const chunk = (delta: object, finish: string | null): void => {
    const choices = [{ index: 0, delta, finish_reason: finish }];
    const { model } = request;
    response.write(
      `data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", created: 1, model, choices })}\n\n`,
    );
  };
  response.writeHead(200, { "content-type": "text/event-stream" });
  chunk({ role: "assistant", content: "an answer" }, null);
  if (request.model === "cut") {
    // The written part must arrive before the connection ends.
    response.write(": cut\n\n", () => response.destroy());
    return;
  }
  chunk({}, "stop");
  response.end("data: [DONE]\n\n");
};

const anthropic = (response: ServerResponse, { model }: ChatRequest): void => {
  const event = (type: string, data: object): void =>
    void response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
  const usage = { input_tokens: 1, output_tokens: 1 };
  response.writeHead(200, { "content-type": "text/event-stream" });
  event("message_start", {
    message: { id: "1", type: "message", role: "assistant", model, content: [], stop_reason: null, usage },
  });
  event("content_block_start", { index: 0, content_block: { type: "text", text: "" } });
  event("content_block_delta", { index: 0, delta: { type: "text_delta", text: "an answer" } });
  event("content_block_stop", { index: 0 });
  event("message_delta", { delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } });
  event("message_stop", {});
  response.end();
};

export class ModelStub {
  readonly calls: ModelCall[] = [];
  readonly #server: Server = createServer((request, response) => void this.#answer(request, response));

  /** @returns its base URL, which ends in /v1. */
  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", () => resolve()));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  /** The calls of one model. */
  of(model: string): readonly ModelCall[] {
    return this.calls.filter((call) => call.model === model);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = (await json(request)) as ChatRequest;
    const path = request.url ?? "";
    const key = request.headers["x-api-key"] ?? request.headers.authorization?.replace("Bearer ", "");
    this.calls.push({
      path,
      model: body.model,
      key: Array.isArray(key) ? key[0] : key,
      tools: (body.tools ?? []).map((tool) => tool.function?.name ?? tool.name ?? ""),
      text: JSON.stringify(body),
    });
    const [status, message] = REFUSALS[body.model] ?? [200, ""];
    if (status !== 200) {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: { message, type: "refused", code: null } }));
    } else if (path.endsWith("/messages")) anthropic(response, body);
    else openai(response, body);
  }
}
