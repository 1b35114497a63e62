/**
 * The best library that was measured, as bare as one would write it: `node:http` in front, undici's dispatch behind,
 * and the same check of the user context. No Expect, no request trailers, no early hints, no half-close.
 */
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type ServerResponse,
} from "node:http";
import type { Duplex } from "node:stream";
import * as Result from "effect/Result";
import { Pool, type Dispatcher } from "undici";
import { USER_CONTEXT_HEADER, verifyUserContext } from "../../../src/domain/sandbox/user-context.ts";
import { portOf, SESSION_ID, tellPort, TOKEN, upstreamPort } from "./listening.ts";

const pool = new Pool(`http://127.0.0.1:${upstreamPort()}`, {
  // With a limit it would serve that many open streams and no more.
  connections: null,
  headersTimeout: 0,
  bodyTimeout: 0,
});
const DROPPED = new Set([
  USER_CONTEXT_HEADER,
  "authorization",
  "host",
  "connection",
  "keep-alive",
  "upgrade",
]);

const isAuthentic = ({ headersDistinct }: IncomingMessage): boolean =>
  Result.isSuccess(
    verifyUserContext(headersDistinct[USER_CONTEXT_HEADER] ?? [], {
      token: TOKEN,
      sessionId: SESSION_ID,
      nowMs: Date.now(), // oxlint-disable-line no-restricted-properties -- a context is held against the machine's clock
    }),
  );

const passed = (raw: readonly string[]): string[] => {
  const kept: string[] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const [name = "", value = ""] = [raw[at], raw[at + 1]];
    if (!DROPPED.has(name.toLowerCase())) kept.push(name, value);
  }
  return kept;
};

class Passing implements Dispatcher.DispatchHandler {
  #controller: Dispatcher.DispatchController | null = null;
  readonly #response: ServerResponse;

  constructor(response: ServerResponse) {
    this.#response = response;
    response.on("close", () => {
      if (!response.writableFinished) this.#controller?.abort(new Error("the client went away"));
    });
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    ...[status, , reason]: [number, IncomingHttpHeaders, string?]
  ): void {
    if (status < 200) return;
    const raw = (controller.rawHeaders as Buffer[]).map((bytes) => bytes.toString("latin1"));
    this.#response.writeHead(status, reason ?? "", passed(raw) as unknown as OutgoingHttpHeaders);
    this.#response.on("drain", () => controller.resume());
    // As a proxy must: headers of a slow stream arrive before its first event.
    this.#response.flushHeaders();
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#response.write(chunk)) controller.pause();
  }

  onResponseEnd(): void {
    this.#response.end();
  }

  onResponseError(): void {
    if (this.#response.headersSent) this.#response.destroy();
    else this.#response.writeHead(502).end();
  }
}

const optionsOf = (request: IncomingMessage) => ({
  path: request.url ?? "/",
  method: request.method as Dispatcher.HttpMethod,
  headers: passed(request.rawHeaders),
});

const server = createServer((request, response) => {
  if (!isAuthentic(request)) return response.writeHead(401).end();
  const { "content-length": length, "transfer-encoding": encoding } = request.headers;
  const body = length === undefined && encoding === undefined ? null : request;
  return pool.dispatch({ ...optionsOf(request), body }, new Passing(response));
});
server.on("upgrade", (request: IncomingMessage, client: Duplex) => {
  if (!isAuthentic(request)) return void client.destroy();
  pool.upgrade({ ...optionsOf(request), protocol: "websocket" }, (error, answer) => {
    if (error !== null || answer === null) return void client.destroy();
    const lines = Object.entries(answer.headers).map(([name, value]) => `${name}: ${String(value)}\r\n`);
    client.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join("")}\r\n`);
    const upstream = answer.socket;
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      from.pipe(to);
      from.on("error", () => to.destroy()).on("close", () => to.destroy());
    }
  });
});
tellPort(await portOf(server));
