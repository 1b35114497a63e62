/** One exchange with a server whose answers the test writes. */
import { Response } from "undici";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Exchange, WireFault } from "../../src/connectors/wire.ts";
import type { NetClient } from "../../src/ground/net/client.ts";

const url = new URL("https://mcp.example.com/mcp");
const CALL = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "echo" } });
/** The client's answer to a ping of the server. */
const PONG = JSON.stringify({ jsonrpc: "2.0", id: "srv-9", result: {} });

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** An exchange whose call has sent its request. */
const calling = (...answers: readonly (Response | Error)[]): Exchange => {
  const queue = [...answers];
  const answer = async () => {
    const next = queue.shift();
    if (next instanceof Error) throw next;
    return next;
  };
  const client = { fetch: answer } as unknown as NetClient;
  const exchange = new Exchange({ client, url, maxBytes: 1000 });
  exchange.isCalling = true;
  return exchange;
};

const post = async (exchange: Exchange, body: string): Promise<string> =>
  await (await exchange.fetch(url, { method: "POST", body })).text();

/** How the exchange has ended after a while. */
const endOf = async (exchange: Exchange): Promise<unknown> => {
  let end: unknown = "open";
  exchange.broken.catch((error: unknown) => {
    end = error;
  });
  await vi.advanceTimersByTimeAsync(60_000);
  return end;
};

test("goes on after the client has answered a request of the server's own", async () => {
  const stream = new Response(new ReadableStream());
  const exchange = calling(stream, new Response("", { status: 202 }));
  await exchange.fetch(url, { method: "POST", body: CALL });
  await post(exchange, PONG);
  expect(await endOf(exchange)).toBe("open");
  expect(exchange.status).toBe(200);
});

test("ends a while after the call's own answer has ended without a result", async () => {
  const exchange = calling(new Response(": nothing\n\n"));
  await post(exchange, CALL);
  expect(await endOf(exchange)).toEqual(new WireFault("closed the connection without a result"));
});

test("goes on, with the call's own status, if the server does not take that answer or cannot be reached", async () => {
  const stream = new Response(new ReadableStream());
  const exchange = calling(stream, new Response("", { status: 404 }), new Error("reset"));
  await exchange.fetch(url, { method: "POST", body: CALL });
  await post(exchange, PONG);
  await expect(post(exchange, PONG)).rejects.toThrow("reset");
  expect([await endOf(exchange), exchange.status, exchange.isSent]).toEqual(["open", 200, true]);
});

test("does not take the call for sent when only an answer to the server was", async () => {
  const exchange = calling(new Response("", { status: 202 }));
  await post(exchange, PONG);
  expect(exchange.isSent).toBe(false);
});
