/** Answers that Node's parser lets in and its writer does not let out: they end one request, never the process. */
import { createServer, request as httpRequest, type IncomingMessage, type Server } from "node:http";
import { createServer as createRawServer, type AddressInfo, type Server as RawServer } from "node:net";
import { once } from "node:events";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Proxy } from "../../src/proxy/proxy.ts";

let answer = "";
let upstream: RawServer;
let front: Server;
let proxy: Proxy;

const portOf = (server: Server | RawServer): number => (server.address() as AddressInfo).port;

beforeEach(async () => {
  upstream = createRawServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => socket.end(answer));
  }).listen(0, "127.0.0.1");
  await once(upstream, "listening");
  proxy = new Proxy((response) => response.writeHead(502).end("unreachable"));
  front = createServer((request, response) =>
    proxy.pass(request, response, {
      at: { host: "127.0.0.1", port: portOf(upstream) },
      path: request.url ?? "/",
      host: "upstream",
      headers: [],
    }),
  ).listen(0, "127.0.0.1");
  await once(front, "listening");
});
afterEach(() => {
  proxy.close();
  front.close();
  upstream.close();
});

/** Status and body of what came; null where the connection was broken. */
const ask = (): Promise<readonly [number, string] | null> =>
  new Promise((resolve) => {
    const call = httpRequest(
      { host: "127.0.0.1", port: portOf(front), agent: false },
      (got: IncomingMessage) => {
        let body = "";
        got.on("data", (chunk: Buffer) => (body += chunk.toString()));
        got.on("end", () => resolve([got.statusCode ?? 0, body]));
        got.on("error", () => resolve(null));
      },
    );
    call.on("error", () => resolve(null));
    call.end();
  });

const OK = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

it.each([
  ["two links in one hint", "Link: </a.css>; rel=preload; as=style, </b.js>; rel=preload; as=script"],
  ["a hint that is no link", "Link: garbage"],
])("passes the answer behind %s", async (_, link) => {
  answer = `HTTP/1.1 103 Early Hints\r\n${link}\r\n\r\n${OK}`;
  expect(await ask()).toEqual([200, "ok"]);
});

it.each([
  ["a control character in its reason", "HTTP/1.1 200 O\x01K\r\ncontent-length: 0\r\n\r\n"],
  ["a status of no class", "HTTP/1.1 099 Odd\r\ncontent-length: 0\r\n\r\n"],
])("answers for an upstream whose answer has %s, and lives on", async (_, odd) => {
  answer = odd;
  const got = await ask();
  expect(got === null || got[0] === 502 || got[0] === 200).toBe(true);
  answer = OK;
  expect(await ask()).toEqual([200, "ok"]);
});
