/** The model's calls, as they are seen in the forwarder. */
import { channel } from "node:diagnostics_channel";
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { GatewayCalls, watchGateway } from "../../../daemon/agent/gateway-calls.ts";

const ask = (host = "llm.platform.internal") =>
  Buffer.from(`POST http://${host}/v1/chat/completions HTTP/1.1\r\nhost: ${host}\r\n\r\n{}`);

const answer = (status: number, body: string, head = `content-length: ${Buffer.byteLength(body)}`) =>
  Buffer.from(`HTTP/1.1 ${status} Words\r\n${head}\r\n\r\n${body}`);

const error = (message: string) => JSON.stringify({ error: { message } });

/** A new turn, and a connection. */
const connected = () => {
  const calls = new GatewayCalls();
  return { calls, connection: calls.connection() };
};

test("an answer that is no success is told with its words, and how many there were in a row", () => {
  const { calls, connection } = connected();
  for (const words of ["No key", "Still no key"]) {
    connection.sent(ask());
    connection.received(answer(401, error(words)));
  }
  expect(calls.refused).toEqual({ status: 401, words: "Still no key", again: null, times: 2 });
  connection.sent(ask());
  connection.received(answer(200, "{}"));
  expect(calls.refused).toBeNull();
  connection.sent(ask());
  connection.received(answer(402, `1a\r\n${error("Pay")}\r\n0\r\n\r\n`, "transfer-encoding: chunked"));
  expect(calls.refused).toEqual({ status: 402, words: "Pay", again: null, times: 1 });
  calls.begin();
  expect(calls.refused).toBeNull();
});

test("an answer tells when the provider takes requests again", () => {
  const { calls, connection } = connected();
  connection.sent(ask());
  connection.received(answer(429, "{}", "Retry-After: 20\r\ncontent-length: 2"));
  expect(calls.refused).toMatchObject({ status: 429, again: "in 20 s" });
});

test("other hosts and tunnels are not looked at", () => {
  const { calls, connection } = connected();
  for (const asked of [
    ask("other.example.org"),
    ask("llm.platform.internal.example.org"),
    Buffer.from("CONNECT llm.platform.internal:80 HTTP/1.1\r\n\r\n"),
  ]) {
    connection.sent(asked);
    connection.received(answer(401, "{}"));
  }
  expect([calls.refused, calls.isCalling, calls.pieces]).toEqual([null, false, 0]);
});

test.each([
  ["the last chunk, in two pieces", "transfer-encoding: chunked", ["3\r\nabc\r\n", "0\r\n", "\r\n"]],
  ["as many bytes as it announced", "content-length: 6", ["abc", "def"]],
])("a call is open until %s", (_, head, pieces) => {
  const { calls, connection } = connected();
  connection.sent(ask());
  connection.received(answer(200, "", head));
  for (const piece of pieces) {
    expect(calls.isCalling).toBe(true);
    connection.received(Buffer.from(piece));
  }
  expect([calls.isCalling, calls.pieces]).toEqual([false, pieces.length + 2]);
});

test("a call ends with its connection", () => {
  const { calls, connection } = connected();
  connection.sent(ask());
  connection.closed();
  expect(calls.isCalling).toBe(false);
});

test("the forwarder's connections are looked at", () => {
  const calls = watchGateway();
  const [client, proxy] = [new PassThrough(), new PassThrough()];
  channel("platform.egress").publish({ client, proxy });
  client.emit("data", ask());
  expect(calls.isCalling).toBe(true);
  proxy.emit("data", answer(503, "{}"));
  expect([calls.isCalling, calls.refused?.status]).toEqual([false, 503]);
});
