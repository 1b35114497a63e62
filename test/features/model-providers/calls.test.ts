/** Calls of sandboxes to the account's providers, through the sandbox's real way out, over the store's twin. */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { text } from "node:stream/consumers";
import type * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Layer from "effect/Layer";
import * as Scope from "effect/Scope";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import type { Store } from "../../../src/database.ts";
import { modelCalls } from "../../../src/features/model-providers/calls.ts";
import { sealKey } from "../../../src/features/model-providers/keys.ts";
import { ModelProviders } from "../../../src/features/model-providers/ports/model-providers.ts";
import { ModelUsage } from "../../../src/features/model-providers/ports/model-usage.ts";
import { ModelServers } from "../../../src/features/model-providers/ports/model-servers.ts";
import { makeModelServers } from "../../../src/features/model-providers/sender.ts";
import type { ProviderKind } from "../../../src/domain/sandbox/account-provider.ts";
import { type Egress, openEgress } from "../../../src/sandbox/egress.ts";
import { ModelDoor } from "../../../src/sandbox/model-door.ts";
import { type Keyring, keyringLayer } from "../../../src/services/keyring.ts";
import { admitSession, openSandbox, tellSandbox } from "../../support/world/sessions.ts";
import { makeWorld, NOON, type World } from "../../support/world/world.ts";
import { memoryStore } from "../../twins/store/layer.ts";

const KEY = "sk-canary-of-the-account";
const HOST = "http://llm.platform.internal";
const keys = keyringLayer({ current: { version: 1, bytes: new Uint8Array(32) }, former: [] });

let server: Server;
let port: number;
const asked: { readonly incoming: IncomingMessage; readonly body: string }[] = [];
/** The answer of the provider to a call. */
let answer: (response: ServerResponse) => void | Promise<void>;

beforeAll(async () => {
  server = createServer((incoming, response) => {
    void text(incoming).then((body) => {
      asked.push({ incoming, body });
      return answer(response);
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  port = (server.address() as AddressInfo).port;
});
afterAll(() => {
  server.close();
  server.closeAllConnections();
});

let scope: Scope.Closeable;
let context: Context.Context<Store | Keyring>;
let directory: string;
let world: World;
let sessionId: string;
let sandboxId: string;
const door = new ModelDoor();
const egresses: Egress[] = [];

const inside = <A, E>(use: Effect.Effect<A, E, Store | Keyring>): Promise<A> =>
  Effect.runPromise(Effect.provideContext(use, context));

/** The way out of a sandbox. @returns its socket */
const wayOut = async (id: string): Promise<string> => {
  const socket = path.join(directory, `${egresses.length}.sock`);
  const policy = { allow: [], secretNames: [], serviceUrl: null, llmUpstream: null };
  egresses.push(await openEgress(socket, { policy, models: door.of(id) }));
  return socket;
};

beforeEach(async () => {
  asked.length = 0;
  answer = (response) => void response.end("{}");
  directory = mkdtempSync(path.join(tmpdir(), "platform-calls-"));
  scope = await Effect.runPromise(Scope.make());
  const stores = Layer.merge(memoryStore, keys);
  const servers = Layer.effect(ModelServers, makeModelServers(["127.0.0.1"]));
  const whole = Layer.provideMerge(Layer.provide(modelCalls(door), servers), stores);
  context = await Effect.runPromise(Layer.buildWithScope(whole, scope));
  await inside(
    Effect.gen(function* () {
      world = yield* makeWorld(5);
      sessionId = yield* admitSession(world);
      sandboxId = (yield* openSandbox(sessionId)).id;
    }),
  );
});
afterEach(async () => {
  for (const egress of egresses.splice(0)) egress.close();
  await Effect.runPromise(Scope.close(scope, Exit.void));
  rmSync(directory, { recursive: true });
});

const addProvider = (name: string, kind: ProviderKind, below = "") =>
  inside(
    Effect.gen(function* () {
      const place = { id: randomUUID(), accountId: world.accountId };
      return yield* (yield* ModelProviders).create({
        ...place,
        name,
        kind,
        baseUrl: `http://127.0.0.1:${port}${below}`,
        models: ["large"],
        hasKey: true,
        sealed: yield* sealKey(place, KEY, 1),
        triedAt: null,
        now: NOON,
      });
    }),
  );

const call = (socketPath: string, target: string, body: object | null = { model: "large", stream: true }) => {
  const headers = { authorization: "Bearer placeholder", "x-api-key": "placeholder", "x-own": "1" };
  const method = body === null ? "GET" : "POST";
  const outgoing = request({ socketPath, path: `${HOST}${target}`, method, headers });
  outgoing.end(body === null ? undefined : JSON.stringify(body));
  return outgoing;
};
const answered = async (outgoing: ReturnType<typeof call>) => {
  const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
  return { status: incoming.statusCode, text: await text(incoming) };
};
const counted = () => inside(Effect.flatMap(ModelUsage, ({ ofSession }) => ofSession(sessionId)));

const event = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;
const STREAM =
  event({
    type: "message_start",
    message: {
      model: "large-1",
      usage: { input_tokens: 600, cache_read_input_tokens: 400, output_tokens: 1 },
    },
  }) +
  event({ type: "content_block_delta", delta: { text: "Grüße" } }) +
  event({ type: "message_delta", usage: { output_tokens: 100 } });
const whole = { model: "acme/large", calls: 1, untoldCalls: 0, input: 1000, cached: 400, output: 100 };

describe("a call of a sandbox", () => {
  it("reaches its account's provider with the kept key, unchanged both ways, and is counted when it ends", async () => {
    await addProvider("acme", "anthropic", "/base");
    answer = (response) => {
      response.writeHead(200, { "content-type": "text/event-stream", "x-theirs": "2" });
      // A piece ends within a character.
      const bytes = Buffer.from(STREAM);
      const at = bytes.indexOf(Buffer.from("ü")) + 1;
      response.write(bytes.subarray(0, at), () => response.end(bytes.subarray(at)));
    };
    const out = await wayOut(sandboxId);
    const body = { model: "large", messages: [{ role: "user", content: "Hi" }] };
    const said = await answered(call(out, "/acme/v1/messages?beta=true&key=x", body));
    expect(said).toEqual({ status: 200, text: STREAM });
    const { incoming, body: seen } = asked[0] ?? {};
    expect([incoming?.method, incoming?.url]).toEqual(["POST", "/base/v1/messages?beta=true"]);
    expect(incoming?.headers).toMatchObject({ "x-api-key": KEY, "x-own": "1", host: `127.0.0.1:${port}` });
    expect(incoming?.headers.authorization).toBe(undefined);
    expect(JSON.parse(seen ?? "")).toEqual(body);
    expect(await counted()).toEqual([whole]);
  });

  it("may come through a tunnel, as Node's own client does", async () => {
    await addProvider("acme", "openai");
    const connecting = request({
      socketPath: await wayOut(sandboxId),
      method: "CONNECT",
      path: "llm.platform.internal:80",
    });
    connecting.end();
    const [, socket] = (await once(connecting, "connect")) as [IncomingMessage, Socket];
    const outgoing = request({ createConnection: () => socket, path: "/acme/models" }).end();
    const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
    expect([incoming.statusCode, await text(incoming)]).toEqual([200, "{}"]);
    expect(asked[0]?.incoming.headers.authorization).toBe(`Bearer ${KEY}`);
    expect(await counted()).toEqual([]);
    socket.destroy();
  });

  it("opens no other path of the provider, and no provider of another name", async () => {
    await addProvider("acme", "anthropic");
    const out = await wayOut(sandboxId);
    for (const target of [
      "/acme/v1/files",
      "/acme/v1/messages/../files",
      "/other/v1/messages",
      "/v1/messages",
    ])
      expect((await answered(call(out, target))).status).toBe(403);
    expect((await answered(call(out, "/acme/v1/messages", null))).status).toBe(403);
    expect(asked).toEqual([]);
  });

  it("opens nothing to a sandbox without a session, and nothing once the sandbox or the provider is gone", async () => {
    const made = await addProvider("acme", "anthropic");
    expect((await answered(call(await wayOut(randomUUID()), "/acme/v1/messages"))).status).toBe(403);
    const out = await wayOut(sandboxId);
    expect((await answered(call(out, "/acme/v1/messages"))).status).toBe(200);
    await inside(
      Effect.gen(function* () {
        yield* tellSandbox(sandboxId, { type: "daemon.ready" }, NOON);
        yield* tellSandbox(
          sandboxId,
          { type: "sandbox.lost", failure: { code: "sandbox_lost", message: "" } },
          NOON,
        );
      }),
    );
    expect((await answered(call(out, "/acme/v1/messages"))).status).toBe(403);
    await inside(Effect.flatMap(ModelProviders, ({ remove }) => remove(world.accountId, made.id)));
    expect((await answered(call(out, "/acme/v1/messages"))).status).toBe(403);
    expect(asked).toHaveLength(1);
  });

  it("that is left ends at the provider too, and counts what was named before", async () => {
    await addProvider("acme", "anthropic");
    const ended = Promise.withResolvers<void>();
    answer = (response) => {
      response.on("close", () => ended.resolve());
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(STREAM.slice(0, STREAM.indexOf("data:", 9)));
    };
    const outgoing = call(await wayOut(sandboxId), "/acme/v1/messages");
    const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
    await once(incoming, "data");
    outgoing.destroy();
    await ended.promise;
    await vi.waitFor(async () => expect(await counted()).toEqual([{ ...whole, output: 1 }]));
  });

  it("whose answer breaks off breaks off for its caller, and counts without tokens if none were named", async () => {
    await addProvider("acme", "openai-compatible", "/v1");
    answer = (response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(event({ choices: [] }), () => response.destroy());
    };
    const outgoing = call(await wayOut(sandboxId), "/acme/chat/completions");
    await expect(answered(outgoing)).rejects.toThrow();
    expect(await counted()).toEqual([{ ...whole, untoldCalls: 1, input: 0, cached: 0, output: 0 }]);
  });

  it("that the provider refuses has the provider's own answer, and costs nothing", async () => {
    await addProvider("acme", "gemini");
    answer = (response) => void response.writeHead(429, { "retry-after": "7" }).end("slow down");
    const target = "/acme/v1beta/models/large:generateContent";
    const said = await answered(call(await wayOut(sandboxId), target, {}));
    expect(said).toEqual({ status: 429, text: "slow down" });
    answer = (response) =>
      void response.end(
        '{"usageMetadata":{"promptTokenCount":1000,"cachedContentTokenCount":400,"candidatesTokenCount":100}}',
      );
    await answered(call(await wayOut(sandboxId), target, {}));
    expect(await counted()).toEqual([whole]);
  });

  it("to a server that does not answer says so, without its address", async () => {
    await addProvider("acme", "anthropic");
    server.close();
    server.closeAllConnections();
    const said = await answered(call(await wayOut(sandboxId), "/acme/v1/messages"));
    expect(said.status).toBe(502);
    expect(said.text).toContain("the model provider acme could not be reached");
    expect(said.text).not.toContain("127.0.0.1");
  });
});
