/** Upgraded connections at their ends: who is let go, and when. */
import { once } from "node:events";
import { afterEach, expect, it } from "vitest";
import { Front, GET, statusesIn } from "./front.ts";

let front: Front;
afterEach(() => front.stop());

const UPGRADE = GET.replace("\r\n\r\n", "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
const AGREED = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";

const joined = async (limits: { readonly halfOpenMs?: number } = {}) => {
  front = await Front.start(limits);
  front.answers(AGREED);
  const client = front.client();
  client.send(UPGRADE);
  await client.until(({ got }) => got.endsWith("\r\n\r\n"));
  const [upstream] = front.upstream.sockets;
  if (upstream === undefined) throw new Error("the upstream was reached");
  return { client, upstream };
};

it("closes an upgraded connection whose client has left, even if the upstream does not react", async () => {
  const { client } = await joined({ halfOpenMs: 100 });
  // It leaves its own side open and stays silent: only the service would end the client's connection.
  front.upstream.onEnd = () => undefined;
  client.socket.end();
  await client.until(({ ended }) => ended !== null);
});

it("cuts the upstream of an upgraded connection when its client is cut, and the other way round", async () => {
  const { client, upstream } = await joined();
  const gone = once(upstream, "close");
  client.socket.resetAndDestroy();
  await gone;
  const again = front.client();
  again.send(UPGRADE);
  await again.until(({ got }) => got.endsWith("\r\n\r\n"));
  for (const socket of front.upstream.sockets) socket.resetAndDestroy();
  await again.until(({ ended }) => ended !== null);
});

it("accepts only the protocol that it requested from an upstream", async () => {
  front = await Front.start();
  front.answers(AGREED.replace("websocket", "h2c"));
  expect(statusesIn(await front.ask(UPGRADE))).toEqual(["502"]);
});

it("answers an upgrade for an upstream that does not, with 502 or 504 [X16]", async () => {
  front = await Front.start({ answerMs: 100 });
  front.upstream.onBytes = (socket) => void socket.destroy();
  expect(statusesIn(await front.ask(UPGRADE))).toEqual(["502"]);
  front.upstream.onBytes = () => undefined;
  expect(statusesIn(await front.ask(UPGRADE))).toEqual(["504"]);
});
