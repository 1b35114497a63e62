import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import { afterEach, beforeEach, expect, test } from "vitest";
import { callHttp, callJson, type HttpCall } from "../../../daemon/http/client.ts";
import { freePort } from "../../support/machine/free-port.ts";

let server: Server;
let base: string;
let handle: (request: IncomingMessage, response: ServerResponse) => void;
beforeEach(async () => {
  server = createServer((request, response) => handle(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

const failureOf = (call: Partial<HttpCall>) =>
  Effect.runPromise(Effect.flip(callHttp({ url: `${base}/path`, timeoutMs: 5000, ...call })));

test("sends JSON and decodes the answer", async () => {
  handle = async (request, response) => {
    let text = "";
    for await (const chunk of request) text += String(chunk);
    response.end(
      JSON.stringify({ got: text, type: request.headers["content-type"], own: request.headers["x-own"] }),
    );
  };
  const Answer = Schema.Struct({ got: Schema.String, type: Schema.String, own: Schema.String });
  const call = {
    url: base,
    method: "POST" as const,
    body: { a: 1 },
    headers: { "x-own": "y" },
    timeoutMs: 5000,
  };
  expect(await Effect.runPromise(callJson(call, Answer))).toEqual({
    got: '{"a":1}',
    type: "application/json",
    own: "y",
  });
});

test("fails with the status of an unsuccessful answer, and never with its body", async () => {
  handle = (_, response) => response.writeHead(403).end("secret words");
  expect(await failureOf({})).toMatchObject({ status: 403, message: "/path answered 403" });
});

test("fails on an answer of another shape without quoting it", async () => {
  handle = (_, response) => response.end('{"token":"secret words"}');
  const call = callJson({ url: `${base}/path`, timeoutMs: 5000 }, Schema.Struct({ a: Schema.String }));
  expect(await Effect.runPromise(Effect.flip(call))).toMatchObject({
    message: "/path answered in an unexpected form",
  });
});

test("fails when nothing listens, when the answer breaks off, and when none arrives in time", async () => {
  expect((await failureOf({ url: `http://127.0.0.1:${await freePort()}/` })).message).toContain(
    "ECONNREFUSED",
  );
  handle = (_, response) => {
    response.writeHead(200, { "content-length": "10" });
    response.write("half", () => response.destroy());
  };
  expect((await failureOf({})).message).toContain("aborted");
  handle = () => undefined;
  expect((await failureOf({ timeoutMs: 20 })).message).toBe("no answer within 20 ms");
});

test("uses the proxy of the environment, and bypasses it for hosts in NO_PROXY", async () => {
  const seen: string[] = [];
  handle = (request, response) => {
    seen.push(request.url ?? "");
    response.end();
  };
  const proxyEnv = { HTTP_PROXY: base, NO_PROXY: "127.0.0.1" };
  await Effect.runPromise(callHttp({ url: "http://platform.internal/v1/x", timeoutMs: 5000, proxyEnv }));
  await Effect.runPromise(callHttp({ url: `${base}/direct`, timeoutMs: 5000, proxyEnv }));
  expect(seen).toEqual(["http://platform.internal/v1/x", "/direct"]);
});
