/** Requests for sign-ins to connectors, over real connections to servers that are slow or send too much. */
import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { NetClient } from "../../src/ground/net/client.ts";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ANSWER_MAX_BYTES, makeAsk, type Ask } from "../../src/connectors/asking.ts";
import { clientOptions } from "../../src/connectors/wire.ts";

const PATIENCE_MS = 300;

let client: NetClient;
let server: Server;
let ask: Ask;
let answer: RequestListener;
beforeEach(async () => {
  client = new NetClient(clientOptions(["127.0.0.1"]));
  ask = makeAsk({ client, answerMs: PATIENCE_MS });
  server = createServer((request, response) => answer(request, response)).listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await client.close();
});

const asked = () => ask(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
const ended = () =>
  new Promise<void>(
    (resolve) => void server.once("connection", (socket) => void socket.once("close", () => resolve())),
  );

describe("a server that is asked for a sign-in", () => {
  it.each<{ readonly what: string; readonly slow: RequestListener }>([
    { what: "never answers", slow: () => undefined },
    { what: "stops in the middle of its answer", slow: (_, response) => void response.write("{") },
    {
      what: "sends a byte now and then",
      slow: (_, response) => {
        const more = setInterval(() => response.write("x"), 20);
        response.once("close", () => clearInterval(more));
      },
    },
  ])("and $what is given up after its time, and its connection closed", async ({ slow }) => {
    answer = slow;
    const closed = ended();
    await expect(asked()).rejects.toMatchObject({ why: `did not answer within ${PATIENCE_MS / 1000} s` });
    await closed;
  });

  it("and sends more than the limit is given up, and its connection closed", async () => {
    answer = (_, response) => {
      const piece = "x".repeat(64 * 1024);
      const pour = (): void => {
        while (!response.destroyed && response.write(piece));
        response.once("drain", pour);
      };
      pour();
    };
    ask = makeAsk({ client });
    const closed = ended();
    await expect(asked()).rejects.toMatchObject({ why: `answered with more than ${ANSWER_MAX_BYTES} bytes` });
    await closed;
  });

  it("is not asked again at another address that it names", async () => {
    answer = (_, response) => response.writeHead(302, { location: "/elsewhere" }).end();
    await expect(asked()).rejects.toMatchObject({ why: "redirects (status 302), which is not followed" });
  });
});
