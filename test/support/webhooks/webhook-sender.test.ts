/** The sender against a receiver that refuses, cuts and disappears on request. */
import { createHmac } from "node:crypto";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { once } from "node:events";
import { afterEach, expect, test } from "vitest";
import { WebhookSender, type SenderOptions } from "./webhook-sender.ts";

type Reaction = (response: ServerResponse) => void;

const accept: Reaction = (response) => response.writeHead(202).end('{"status":"queued"}');
const unavailable: Reaction = (response) => response.writeHead(503).end('{"code":"starting"}');
const reset: Reaction = (response) => response.destroy();
const cut: Reaction = (response) => {
  response.writeHead(202, { "content-length": "100" }).write('{"status"');
  response.destroy();
};

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/** A receiver that reacts in turn, then accepts everything; and the requests that it got. */
const receiver = async (...reactions: readonly Reaction[]) => {
  const turns = [...reactions];
  const ids: string[] = [];
  const bodies: string[] = [];
  const signatures: string[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => {
      body += text;
    });
    request.once("end", () => {
      ids.push(String(request.headers["x-github-delivery"]));
      bodies.push(body);
      signatures.push(String(request.headers["x-hub-signature-256"]));
      (turns.shift() ?? accept)(response);
    });
  });
  servers.push(server);
  await once(server.listen(0, "127.0.0.1"), "listening");
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, ids, bodies, signatures };
};

const senderTo = (url: string, given: Partial<SenderOptions> = {}) =>
  new WebhookSender({
    url,
    secret: "s",
    deliveries: 1,
    duplicateShare: 0,
    burst: 1,
    concurrency: 1,
    random: () => 0.5,
    whenUp: () => Promise.resolve(),
    ...given,
  });

test("sends a delivery again under its id after a 503, a reset and an answer that was cut", async () => {
  const { url, ids } = await receiver(unavailable, reset, cut);
  const sender = senderTo(url);
  const log = await sender.send();
  expect(ids).toEqual(["delivery-0", "delivery-0", "delivery-0", "delivery-0"]);
  expect(sender.unanswered).toBe(2);
  expect(log.get("delivery-0")?.map(({ status }) => status)).toEqual([503, 202]);
});

test("treats a refusal as an answer", async () => {
  const { url, ids } = await receiver((response) => response.writeHead(401).end("{}"));
  const log = await senderTo(url).send();
  expect(ids).toHaveLength(1);
  expect(log.get("delivery-0")?.map(({ status }) => status)).toEqual([401]);
});

test("gives up on a delivery that is never accepted", async () => {
  const { url } = await receiver(...Array.from({ length: 100 }, () => unavailable));
  await expect(senderTo(url).send()).rejects.toThrow(/delivery-0 is not taken: .*starting/);
});

test("sends duplicates at once and later, and the first delivery in a burst", async () => {
  const { url, ids } = await receiver();
  const sender = senderTo(url, { deliveries: 3, duplicateShare: 1, burst: 4 });
  await sender.send();
  expect(ids).toHaveLength(sender.planned);
  const counts = Map.groupBy(ids, (id) => id);
  expect([...counts].map(([id, sent]) => [id, sent.length])).toEqual([
    ["delivery-0", 5],
    ["delivery-1", 3],
    ["delivery-2", 3],
  ]);
  expect(ids.slice(0, 5)).toEqual(["delivery-0", "delivery-0", "delivery-0", "delivery-0", "delivery-1"]);
});

test("signs the bytes of the body", async () => {
  const { url, bodies, signatures } = await receiver();
  await senderTo(url, { deliveries: 2 }).send();
  expect(new Set(bodies).size).toBe(2);
  const expected = bodies.map((body) => `sha256=${createHmac("sha256", "s").update(body).digest("hex")}`);
  expect(signatures).toEqual(expected);
});

test("sends nothing until the service is up", async () => {
  const { url, ids } = await receiver();
  const up = Promise.withResolvers<void>();
  const sender = senderTo(url, { whenUp: () => up.promise });
  const sent = sender.send();
  const other = await receiver();
  // The other sender's whole exchange is over, and this one has not begun.
  await senderTo(other.url).send();
  expect(ids).toEqual([]);
  up.resolve();
  await sender.reached(1);
  await sent;
  expect(ids).toHaveLength(1);
});
