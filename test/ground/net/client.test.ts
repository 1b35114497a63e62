/** Requests over real connections: their limits, and why one has no answer. */
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from "node:net";
import { afterEach, expect, it } from "vitest";
import { NetClient, readBody } from "../../../src/ground/net/client.ts";

let cleanups: (() => unknown)[] = [];
afterEach(async () => {
  await Promise.all(cleanups.map((cleanup) => cleanup()));
  cleanups = [];
});

const port = async (server: Server): Promise<number> => {
  const open = new Set<Socket>();
  server.on("connection", (socket: Socket) => open.add(socket));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanups.push(() => {
    server.close();
    for (const socket of open) socket.destroy();
  });
  return (server.address() as AddressInfo).port;
};
const serve = (listener: RequestListener) => port(createServer(listener));
const client = (hosts: readonly string[] = ["127.0.0.1"]): NetClient => {
  const made = new NetClient({
    allowances: { hosts: new Set(hosts), setting: "PLATFORM_LIST" },
    connectMs: 10_000,
    silentMs: 60_000,
    connections: 4,
  });
  cleanups.push(() => made.close());
  return made;
};
const request = (at: number, scheme = "http") => ({
  url: new URL(`${scheme}://127.0.0.1:${at}/`),
  headers: {},
});
const reason = (work: Promise<unknown>) =>
  work.then(
    () => null,
    (error: { readonly reason?: unknown }) => error.reason,
  );

it("sends plain HTTP only to hosts that the operator trusts", async () => {
  const at = await serve((_, response) => response.end());
  expect(await reason(client([]).request(request(at)))).toEqual({
    _tag: "PlainHttp",
    setting: "PLATFORM_LIST",
  });
  expect((await client().request(request(at))).statusCode).toBe(200);
});

const check = (url: string, hosts?: readonly string[]) => reason(client(hosts).check(new URL(url)));

it("checks a place as a request does, and lets a name pass that does not resolve", async () => {
  const at = await serve((_, response) => response.end());
  expect(await check("http://example.org/", [])).toMatchObject({ _tag: "PlainHttp" });
  expect(await check(`https://127.0.0.1:${at}/`, [])).toMatchObject({ _tag: "ForbiddenAddress" });
  expect(await check("https://169.254.169.254/", [])).toMatchObject({ _tag: "ForbiddenAddress" });
  expect(await check(`http://127.0.0.1:${at}/`)).toBeNull();
  expect(await check("https://none.invalid/", [])).toBeNull();
});

it("tells a failure of TLS from an answer that is no HTTP", async () => {
  const at = await port(
    createTcpServer((socket) => void socket.on("error", () => undefined).end("SSH-2.0-OpenSSH\r\n")),
  );
  expect(await reason(client().request(request(at, "https")))).toMatchObject({ _tag: "Tls" });
  expect(await reason(client().request(request(at)))).toMatchObject({ _tag: "NotHttp" });
});

it("does not send a request again that was answered with status 421", async () => {
  let requests = 0;
  const at = await serve((_, response) => {
    requests += 1;
    response.writeHead(421).end();
  });
  expect(await reason(client().fetch(request(at).url, {}))).toEqual({ _tag: "Misdirected" });
  expect(requests).toBe(1);
});

it("follows redirects up to their limit, and only where its caller allows", async () => {
  const at = await serve((_, response) => response.writeHead(302, { location: "/" }).end());
  const follow = (limit: number, isAllowed: boolean) =>
    reason(client().follow(request(at), { limit, mayAsk: () => isAllowed }));
  expect(await follow(2, true)).toEqual({ _tag: "Redirect", to: `127.0.0.1:${at}`, kind: "too often" });
  expect(await follow(2, false)).toEqual({ _tag: "Redirect", to: `127.0.0.1:${at}`, kind: "refused" });
});

it("reads no more of a body than its limit, and waits no longer than its time", async () => {
  const at = await serve((_, response) => void response.write("x".repeat(1000)));
  const host = "127.0.0.1";
  const { body } = await client().request(request(at));
  expect(await reason(readBody(body, { host, maxBytes: 999 }))).toEqual({ _tag: "TooLarge", maxBytes: 999 });
  const late = await client().request({ ...request(at), withinMs: 300 });
  expect(await reason(readBody(late.body, { host, maxBytes: 1001, withinMs: 300 }))).toEqual({
    _tag: "Late",
    ms: 300,
  });
});

it("leaves an abort by its caller as it is", async () => {
  const left = new AbortController();
  const at = await serve(() => left.abort());
  await expect(client().request({ ...request(at), signal: left.signal })).rejects.toMatchObject({
    name: "AbortError",
  });
});
