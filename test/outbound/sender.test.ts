/** The sender of outbound webhooks, against real servers. */
import { createServer as createTcpServer, type AddressInfo, type Server, type Socket } from "node:net";
import { once } from "node:events";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Fiber from "effect/Fiber";
import * as Scope from "effect/Scope";
import { buildConnector } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ANSWER_KEPT } from "../../src/domain/outbound-tries.ts";
import { makeSender, type SenderOptions } from "../../src/outbound/sender.ts";
import { answering, ReceiverServer } from "../support/servers/receiver.ts";

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
    ["hangs", () => undefined, "The receiver did not answer in time."],
    [
      "drips its head",
      (socket: Socket) => {
        socket.write("HTTP/1.1 200 OK\r\nx-slow: ");
      },
      "The receiver did not answer in time.",
    ],
    [
      "closes the connection",
      (socket: Socket) => {
        socket.destroy();
      },
      "The receiver closed the connection without an answer.",
    ],
    [
      "speaks no HTTP",
      (socket: Socket) => {
        socket.end("SSH-2.0-OpenSSH\r\n");
      },
      /^The (?:request failed \(HPE_INVALID_CONSTANT\)|answer is not valid HTTP)\.$/,
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

const ownAddress = () => ["93.184.216.34"];
const resolvesNothing = () => Promise.reject(new Error("ENOTFOUND"));
const addressed = async (url: string, addresses: readonly string[], options: Partial<SenderOptions> = {}) => {
  const dialled: string[] = [];
  const real = buildConnector({});
  const answer = await send(url, {
    allowHosts: [],
    resolve: () => Promise.resolve(addresses),
    dial: (wanted, connected) => {
      dialled.push(`${wanted.hostname}:${wanted.port} ${wanted.servername ?? ""}`.trim());
      real({ ...wanted, protocol: "http:", hostname: "127.0.0.1", port: String(receiver.port) }, connected);
    },
    ...options,
  });
  return { answer, dialled };
};

describe("the address of a receiver", () => {
  const PRIVATE =
    "The host has a private address. The operator can allow it in PLATFORM_WEBHOOK_ALLOW_HOSTS.";

  it("that was checked is the one that is dialled, under the host's name [O01]", async () => {
    receiver.behaviour = answering(204);
    const resolved: string[] = [];
    const rebinding = [["93.184.216.34"], ["127.0.0.1"]];
    const { answer, dialled } = await addressed("https://hooks.example.org/x", [], {
      resolve: (host) => {
        resolved.push(host);
        return Promise.resolve(rebinding[resolved.length - 1] ?? []);
      },
    });
    expect(answer.status).toBe(204);
    expect(resolved).toEqual(["hooks.example.org"]);
    expect(dialled).toEqual(["93.184.216.34: hooks.example.org"]);
  });

  it.each([
    ["https://127.0.0.1/", []],
    ["https://2130706433/", []],
    ["https://0x7f.1/", []],
    ["https://[::1]/", []],
    ["https://[::ffff:127.0.0.1]/", []],
    ["https://[::ffff:7f00:1]/", []],
    ["https://[64:ff9b::7f00:1]/", []],
    ["https://[2002:7f00:1::]/", []],
    ["https://169.254.169.254/latest/meta-data", []],
    ["https://rebinds.example.org/", ["127.0.0.1"]],
    ["https://mixed.example.org/", ["93.184.216.34", "10.0.0.1"]],
    ["https://mapped.example.org/", ["::ffff:10.0.0.1"]],
    ["https://linked.example.org/", ["fe80::1%eth0"]],
  ])("%s is refused if it leads to %j [O01]", async (url, addresses) => {
    const { answer, dialled } = await addressed(url, addresses);
    expect(answer).toMatchObject({ status: null, error: PRIVATE });
    expect(dialled).toEqual([]);
  });

  it("of this machine is refused, also if it is public [O01]", async () => {
    const { answer, dialled } = await addressed("https://me.example.org/", ["93.184.216.34"], {
      own: ownAddress,
    });
    expect([answer.error, dialled]).toEqual([PRIVATE, []]);
  });

  it("may be private for hosts that the operator allows, and for no others [O01]", async () => {
    receiver.behaviour = answering(204);
    const options = { allowHosts: ["hooks.internal"] };
    const allowed = await addressed("http://Hooks.Internal:8080/", ["10.0.0.1"], options);
    expect([allowed.answer.status, allowed.dialled]).toEqual([204, ["10.0.0.1:8080 hooks.internal"]]);
    const other = await addressed("http://x.hooks.internal:8080/", ["10.0.0.1"], options);
    expect([other.answer.error, other.dialled]).toEqual([PRIVATE, []]);
  });

  it("that does not exist is an answer for the people of the project", async () => {
    const { answer } = await addressed("https://nowhere.example.org/", [], { resolve: resolvesNothing });
    expect(answer.error).toBe("The host's name cannot be resolved.");
  });
});
