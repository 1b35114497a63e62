/** The sender of outbound webhooks, against real servers. */
import { createServer as createTcpServer, type AddressInfo, type Server, type Socket } from "node:net";
import { once } from "node:events";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Fiber from "effect/Fiber";
import * as Scope from "effect/Scope";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ANSWER_KEPT } from "../../../src/features/notifications/rules/outbound-tries.ts";
import { makeSender, type SenderOptions } from "../../../src/features/notifications/sender.ts";
import { NetworkDouble } from "../../support/network.ts";
import { answering, ReceiverServer } from "../../support/servers/receiver.ts";

const scope = Effect.runSync(Scope.make());
let receiver: ReceiverServer;
/** Speaks no HTTP: it does with a connection what a test wants. */
let raw: Server;
let onConnection: (socket: Socket) => void = () => undefined;

beforeAll(async () => {
  receiver = await ReceiverServer.open();
  raw = createTcpServer((socket) => {
    socket.on("error", () => undefined);
    onConnection(socket);
  });
  raw.listen(0, "127.0.0.1");
  await once(raw, "listening");
});
afterAll(async () => {
  await Effect.runPromise(Scope.close(scope, Exit.void));
  await receiver.close();
  raw.close();
});

const sender = (options: Partial<SenderOptions> = {}) =>
  Effect.runSync(Scope.provide(makeSender({ allowHosts: ["127.0.0.1"], ...options }), scope));
const request = (url: string) => ({ url, headers: { "x-own": "1" }, body: '{"a":1}' });
const send = (url: string, options: Partial<SenderOptions> = {}) =>
  Effect.runPromise(sender(options)(request(url)));
const textOf = ({ body }: { readonly body: Uint8Array }): string => Buffer.from(body).toString();
const rawUrl = () => `http://127.0.0.1:${(raw.address() as AddressInfo).port}/`;

describe("a request to a receiver", () => {
  it("is a POST with body and headers as given, whose answer is returned", async () => {
    receiver.behaviour = answering(202, "thanks");
    const answer = await send(`${receiver.url}/in?x=1`);
    expect(answer).toMatchObject({ status: 202, error: null, retryAfter: null });
    expect(textOf(answer)).toBe("thanks");
    expect(receiver.received.at(-1)).toMatchObject({
      path: "/in?x=1",
      body: '{"a":1}',
      headers: { "x-own": "1", "accept-encoding": "identity" },
    });
  });

  it.each([400, 410, 429, 500])("that is answered with %i is no error of the sender", async (status) => {
    receiver.behaviour = answering(status, "no", { "retry-after": "120" });
    expect(await send(receiver.url)).toMatchObject({ status, error: null, retryAfter: "120" });
  });

  it("follows no redirect [O01]", async () => {
    receiver.behaviour = answering(302, "", { location: `${receiver.url}/inside` });
    const before = receiver.received.length;
    expect(await send(`${receiver.url}/out`)).toMatchObject({ status: 302 });
    expect(receiver.received.slice(before).map(({ path }) => path)).toEqual(["/out"]);
  });

  it("reads a kilobyte of an endless answer, and ends the connection", async () => {
    const closed = Promise.withResolvers<void>();
    receiver.behaviour = (response) => {
      response.on("close", closed.resolve);
      response.writeHead(200);
      const more = () => {
        while (!response.destroyed && response.write("x".repeat(1000)));
      };
      response.on("drain", more);
      more();
    };
    const answer = await send(receiver.url);
    expect([answer.status, answer.body.length]).toEqual([200, ANSWER_KEPT]);
    await closed.promise;
  });

  it("counts a status whose body never ends, with the part of it that came", async () => {
    receiver.behaviour = (response) => {
      response.writeHead(200);
      response.write("part");
    };
    const answer = await send(receiver.url, { timeoutMs: 300 });
    expect([answer.status, textOf(answer)]).toEqual([200, "part"]);
  });

  it.each([
    ["hangs", () => undefined, "The receiver did not answer within 0.5 s."],
    [
      "drips its head",
      (socket: Socket) => {
        socket.write("HTTP/1.1 200 OK\r\nx-slow: ");
      },
      "The receiver did not answer within 0.5 s.",
    ],
    [
      "closes the connection",
      (socket: Socket) => {
        socket.destroy();
      },
      "The receiver closed the connection.",
    ],
    [
      "speaks no HTTP",
      (socket: Socket) => {
        socket.end("SSH-2.0-OpenSSH\r\n");
      },
      /^The receiver did not answer in valid HTTP(?: \(HPE_INVALID_CONSTANT\))?\.$/,
    ],
  ] as const)("to a server that %s has no answer, and a sentence why", async (_, behaviour, sentence) => {
    onConnection = behaviour;
    const answer = await send(rawUrl(), { timeoutMs: 500 });
    expect(answer).toMatchObject({ status: null, error: expect.stringMatching(sentence) as string });
  });

  it("ends with its caller", async () => {
    const [connected, closed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    onConnection = (socket) => {
      socket.on("data", () => connected.resolve()).on("close", () => closed.resolve());
    };
    const fiber = Effect.runFork(sender()(request(rawUrl())));
    await connected.promise;
    await Effect.runPromise(Fiber.interrupt(fiber));
    await closed.promise;
  });
});

describe("the address of a receiver", () => {
  it("of this machine is refused, also if it is public [O01]", async () => {
    const network = new NetworkDouble([["93.184.216.34"]]);
    const answer = await send("https://me.example.org/", {
      allowHosts: [],
      network,
      own: () => ["93.184.216.34"],
    });
    expect(answer.error).toBe(
      "The receiver has an address of this machine (93.184.216.34). The operator can allow it: add me.example.org to the hosts of PLATFORM_WEBHOOK_ALLOW_HOSTS, and restart the service.",
    );
    expect(network.dialled).toEqual([]);
  });

  it("is dialled under the host's name, and the next one if it refuses [O01]", async () => {
    receiver.behaviour = answering(204);
    const network = new NetworkDouble([["fd00::1", "10.0.0.1"]], (address) =>
      address === "10.0.0.1" ? receiver.port : "refuses",
    );
    const answer = await send("http://Hooks.Internal:8080/", { allowHosts: ["hooks.internal"], network });
    expect([answer.status, network.dialled]).toEqual([204, ["fd00::1:8080", "10.0.0.1:8080"]]);
    expect(receiver.received.at(-1)?.headers).toMatchObject({ host: "hooks.internal:8080" });
  });
});
