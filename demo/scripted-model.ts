/**
 * A model that needs no network and no key: an OpenAI-compatible chat-completions server that plays the script of
 * script.ts. It is behind the managed model gateway of the demo and of the end-to-end tests, so that the real agent
 * runtime runs offline and always does the same. `node demo/scripted-model.ts [port]` serves it alone.
 */
import * as http from "node:http";
import type { AddressInfo } from "node:net";
import * as Result from "effect/Result";
import * as Schema from "effect/Schema";
import { ChatRequest, nextTurn, type Turn } from "./script.ts";

/** Each request contains the whole conversation. This is far larger than any model's context. */
const BODY_LIMIT_BYTES = 16 * 1024 * 1024;
const MODEL_ID = "scripted";
/** No clock: the same request always gets the same bytes. */
const CREATED = 0;

export interface ScriptedModel {
  /** The base URL for an OpenAI client, ending in /v1. */
  readonly url: string;
  /** Stops listening and cuts open connections. */
  readonly close: () => Promise<void>;
}

/** Starts it on `host` (default 127.0.0.1) and `port` (default: a free one). Any API key is accepted. */
export const startScriptedModel = async (
  options: { readonly host?: string; readonly port?: number } = {},
): Promise<ScriptedModel> => {
  const host = options.host ?? "127.0.0.1";
  const server = http.createServer((request, response) => {
    answer(request, response).catch((cause: unknown) => {
      // The client left while it was sending, so it cannot get an answer.
      response.destroy(cause instanceof Error ? cause : undefined);
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port ?? 0, host, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${host}:${String(port)}/v1`,
    close: () =>
      new Promise((resolve, reject) => {
        server.close((error) => {
          if (error === undefined) resolve();
          else reject(error);
        });
        server.closeAllConnections();
      }),
  };
};

const answer = async (request: http.IncomingMessage, response: http.ServerResponse): Promise<void> => {
  const route = `${request.method ?? ""} ${(request.url ?? "").split("?")[0] ?? ""}`;
  if (route === "GET /v1/models") {
    const model = { id: MODEL_ID, object: "model", created: CREATED, owned_by: "demo" };
    sendJson(response, 200, { object: "list", data: [model] });
    return;
  }
  if (route !== "POST /v1/chat/completions") {
    refuse(response, 404, `${route} not found.`);
    return;
  }
  const body = await bodyOf(request);
  if (body === null) {
    refuse(response, 413, `The request is larger than ${String(BODY_LIMIT_BYTES)} bytes.`);
    return;
  }
  const decoded = decodeRequest(body);
  if (Result.isFailure(decoded)) {
    refuse(response, 400, `Not a chat-completions request: ${String(decoded.failure)}`);
    return;
  }
  const turn = nextTurn(decoded.success);
  if (decoded.success.stream === true) sendStream(response, decoded.success, turn);
  else sendJson(response, 200, completionOf(decoded.success, turn));
};

const decodeRequest = Schema.decodeUnknownResult(Schema.fromJsonString(ChatRequest));

/** The whole body. Null if it is too large: then it is read to its end and discarded, so that the refusal arrives. */
const bodyOf = async (request: http.IncomingMessage): Promise<string | null> => {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.byteLength;
    if (size <= BODY_LIMIT_BYTES) chunks.push(chunk);
  }
  return size > BODY_LIMIT_BYTES ? null : Buffer.concat(chunks).toString("utf8");
};

/** The tokens that each answer names. */
export const USAGE = {
  prompt_tokens: 40,
  completion_tokens: 8,
  total_tokens: 48,
  prompt_tokens_details: { cached_tokens: 10 },
};

/** The id of a call must differ from those of earlier turns of the same conversation. */
const completionId = (request: ChatRequest): string => `scripted-${String(request.messages.length)}`;

const finishReason = (turn: Turn): string => (turn.kind === "answer" ? "stop" : "tool_calls");

const messageOf = (request: ChatRequest, turn: Turn) =>
  turn.kind === "answer"
    ? { role: "assistant", content: turn.text }
    : {
        role: "assistant",
        content: null,
        tool_calls: [
          {
            index: 0,
            id: `call-${completionId(request)}`,
            type: "function",
            function: { name: turn.tool, arguments: JSON.stringify(turn.input) },
          },
        ],
      };

const completionOf = (request: ChatRequest, turn: Turn) => ({
  id: completionId(request),
  object: "chat.completion",
  created: CREATED,
  model: request.model,
  choices: [{ index: 0, message: messageOf(request, turn), finish_reason: finishReason(turn) }],
  usage: USAGE,
});

const sendStream = (response: http.ServerResponse, request: ChatRequest, turn: Turn): void => {
  const chunk = (rest: object): string =>
    `data: ${JSON.stringify({
      id: completionId(request),
      object: "chat.completion.chunk",
      created: CREATED,
      model: request.model,
      ...rest,
    })}\n\n`;
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
  response.write(chunk({ choices: [{ index: 0, delta: messageOf(request, turn), finish_reason: null }] }));
  response.write(chunk({ choices: [{ index: 0, delta: {}, finish_reason: finishReason(turn) }] }));
  if (request.stream_options?.include_usage === true) response.write(chunk({ choices: [], usage: USAGE }));
  response.end("data: [DONE]\n\n");
};

const sendJson = (response: http.ServerResponse, status: number, body: object): void => {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
};

/** An error in the format of OpenAI's API. */
const refuse = (response: http.ServerResponse, status: number, message: string): void => {
  sendJson(response, status, { error: { message, type: "invalid_request_error" } });
};

if (import.meta.main) {
  const model = await startScriptedModel({ port: Number(process.argv[2] ?? 0) });
  process.stdout.write(`${model.url}\n`);
}
