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
import type { Store } from "../../../src/assembly/database.ts";
import { modelCalls } from "../../../src/features/model-providers/calls.ts";
import { sealKey } from "../../../src/features/model-providers/keys.ts";
import type { Prices } from "../../../src/domain/model/prices.ts";
import { ModelProviders } from "../../../src/features/model-providers/ports/model-providers.ts";
import { ModelUsage } from "../../../src/features/model-providers/ports/model-usage.ts";
import { GatewayServer, ModelServers } from "../../../src/features/model-providers/ports/model-servers.ts";
import { makeModelServers } from "../../../src/features/model-providers/sender.ts";
import type { ProviderKind, ProviderOwner } from "../../../src/domain/sandbox/account-provider.ts";
import { accountSpendLayer } from "../../../src/features/spend/account-spend.ts";
import { Spend } from "../../../src/features/spend/ports/spend.ts";
import { NANO, spendRefusalIn } from "../../../src/domain/sandbox/spend.ts";
import { type Egress, openEgress } from "../../../src/sandbox/egress.ts";
import { ModelDoor } from "../../../src/sandbox/model-door.ts";
import { Suspensions } from "../../../src/store/ports/connectors/suspensions.ts";
import { Accounts } from "../../../src/store/ports/people/accounts.ts";
import { type Keyring, keyringLayer } from "../../../src/services/keyring.ts";
import { freePort } from "../../support/machine/free-port.ts";
import { admitOne, admitSession, fired, openSandbox, tellSandbox } from "../../support/world/sessions.ts";
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

/** The way out of a sandbox. @param llmUpstream of the managed gateway @returns its socket */
const wayOut = async (id: string, llmUpstream: string | null = null): Promise<string> => {
  const socket = path.join(directory, `${egresses.length}.sock`);
  const policy = { allow: [], secretNames: [], serviceUrl: null, llmUpstream };
  egresses.push(await openEgress(socket, { policy, models: door.serve(id) }));
  return socket;
};

beforeEach(async () => {
  asked.length = 0;
  answer = (response) => void response.end("{}");
  directory = mkdtempSync(path.join(tmpdir(), "platform-calls-"));
  scope = await Effect.runPromise(Scope.make());
  const stores = Layer.merge(memoryStore, keys);
  const servers = Layer.effect(ModelServers, makeModelServers(["127.0.0.1"]));
  const gateway = Layer.effect(GatewayServer, makeModelServers(["127.0.0.1"]));
  const asks = Layer.mergeAll(servers, gateway, accountSpendLayer);
  const whole = Layer.provideMerge(Layer.provide(modelCalls(door), asks), stores);
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

interface Adding {
  readonly prices?: Prices;
  readonly owner?: ProviderOwner;
  readonly models?: readonly string[];
}

const addProvider = (
  name: string,
  kind: ProviderKind,
  below = "",
  { prices = {}, owner = "account", models = ["large"] }: Adding = {},
) =>
  inside(
    Effect.gen(function* () {
      const { accountId, projectId, userId } = world;
      const place = {
        id: randomUUID(),
        accountId,
        projectId: owner === "project" ? projectId : null,
        userId: owner === "person" ? userId : null,
      };
      return yield* (yield* ModelProviders).create({
        ...place,
        name,
        kind,
        baseUrl: `http://127.0.0.1:${port}${below}`,
        models,
        hasKey: true,
        prices,
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

/** A call is counted after its answer. */
const expectCounted = (rows: readonly object[]) =>
  vi.waitFor(async () => expect(await counted()).toEqual(rows));

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
const whole = {
  model: "acme/large",
  calls: 1,
  untoldCalls: 0,
  input: 1000,
  cached: 400,
  output: 100,
  estimated: 0,
  cost: 0,
};

/** What a gateway that cannot be reached answers. */
const gatewayRefusal = async (base: string): Promise<string> => {
  const said = await answered(call(await wayOut(sandboxId, base), "/v1/chat/completions"));
  expect([said.status, said.text.includes("127.0.0.1")]).toEqual([502, false]);
  return said.text;
};

describe("a call to the managed gateway", () => {
  it("has the sandbox's own key, is open below the gateway's path only, and is counted", async () => {
    answer = (response) => {
      response.end('{"model":"large-1","usage":{"prompt_tokens":1000,"completion_tokens":100}}');
    };
    const out = await wayOut(sandboxId, `http://127.0.0.1:${port}/v1`);
    expect((await answered(call(out, "/v1/chat/completions"))).status).toBe(200);
    expect((await answered(call(out, "/v2/chat/completions"))).status).toBe(403);
    const { incoming } = asked[0] ?? {};
    expect([incoming?.url, incoming?.headers.authorization]).toEqual([
      "/v1/chat/completions",
      "Bearer placeholder",
    ]);
    await expectCounted([{ ...whole, model: "managed/large", cached: 0 }]);
  });

  it("says why the gateway cannot be reached, without its address", async () => {
    expect(await gatewayRefusal(`https://127.0.0.1:${port}/v1`)).toContain(
      "the managed gateway to models cannot be reached over TLS (",
    );
    expect(await gatewayRefusal(`http://127.0.0.1:${await freePort()}/v1`)).toContain(
      "the managed gateway to models cannot be reached (it refuses connections): ask the operator",
    );
  });

  it("says that the gateway redirects, and passes no redirect on", async () => {
    answer = (response) => void response.writeHead(302, { location: "http://127.0.0.1/login" }).end("moved");
    expect(await gatewayRefusal(`http://127.0.0.1:${port}/v1`)).toContain(
      "the managed gateway to models answers with a redirect, which is not followed",
    );
    expect(await counted()).toEqual([]);
  });
});

const keyed = async (out: string) => {
  const reply = await answered(call(out, "/acme/v1/messages"));
  return reply.status === 200 ? asked.at(-1)?.incoming.url : [reply.status, reply.text];
};
const steer = (by: "suspend" | "end") =>
  inside(
    Effect.gen(function* () {
      const { suspend, end } = yield* Suspensions;
      if (by === "end") return void (yield* end(sessionId));
      const ben = randomUUID();
      const { accountId } = world;
      yield* (yield* Accounts).createUser({ id: ben, accountId, name: "Ben", role: "member", now: NOON });
      yield* suspend(sessionId, { userId: ben, act: "message", now: NOON });
    }),
  );

describe("a call where several owners have a provider of the name", () => {
  it("goes to that of the narrowest one, and to the person's own only while she alone steers", async () => {
    const out = await wayOut(sandboxId);
    await addProvider("acme", "anthropic", "/account");
    expect(await keyed(out)).toBe("/account/v1/messages");
    await addProvider("acme", "anthropic", "/project", { owner: "project" });
    expect(await keyed(out)).toBe("/project/v1/messages");
    await addProvider("acme", "anthropic", "/person", { owner: "person" });
    expect(await keyed(out)).toBe("/person/v1/messages");
    await steer("suspend");
    expect(await keyed(out)).toBe("/project/v1/messages");
    await steer("end");
    expect(await keyed(out)).toBe("/person/v1/messages");
  });

  it("is refused in words if only a suspended own one is left, and a trigger's session has none", async () => {
    await addProvider("acme", "anthropic", "", { owner: "person" });
    await steer("suspend");
    const reply = await keyed(await wayOut(sandboxId));
    expect(reply).toEqual([
      403,
      expect.stringContaining(
        `The model provider acme uses the own credential of the person who started this session. It is suspended here: Ben sent a message to the agent. She can give it back: platform sessions give-credentials ${sessionId}.`,
      ),
    ]);
    const other = await inside(
      Effect.gen(function* () {
        const run = yield* admitOne(world, fired(world));
        return (yield* openSandbox(run.outcome === "admitted" ? run.sessionId : "")).id;
      }),
    );
    expect(await keyed(await wayOut(other))).toEqual([403, expect.any(String)]);
    expect(asked).toHaveLength(0);
  });
});

const refusal = () =>
  inside(
    Effect.flatMap(ModelProviders, ({ list }) =>
      Effect.map(list({ ...world, projectId: null, userId: null }), ([row]) => row?.refusal?.text),
    ),
  );

describe("what a provider last refused", () => {
  it("is kept in its own words, without the key, until a call succeeds", async () => {
    await addProvider("acme", "anthropic");
    const out = await wayOut(sandboxId);
    const say = (status: number, message: string) => {
      answer = (response) => void response.writeHead(status).end(JSON.stringify({ error: { message } }));
      return answered(call(out, "/acme/v1/messages"));
    };
    await say(400, "prompt is too long");
    expect(await refusal()).toBe(undefined);
    await say(401, `no account has ${KEY}`);
    const host = `127.0.0.1:${port}`;
    expect(await refusal()).toBe(`${host} rejects the key (401). It says: no account has (key)`);
    await say(400, "Your credit balance is too low.");
    expect(await refusal()).toBe(`${host} refuses calls (400). It says: Your credit balance is too low.`);
    answer = (response) => void response.end(STREAM);
    await answered(call(out, "/acme/v1/messages"));
    expect(await refusal()).toBe(undefined);
  });
});

const limit = (unit: "usd" | "tokens", amount: number) =>
  inside(
    Effect.flatMap(Spend, ({ set }) =>
      set({
        id: randomUUID(),
        accountId: world.accountId,
        scope: "session",
        subject: sessionId,
        projectId: world.projectId,
        unit,
        amount,
        now: NOON,
      }),
    ),
  );

describe("a call under a limit of spend", () => {
  const price = { large: { input: 2, cached: 1, output: 10 } };
  /** 600 tokens at 2, 400 at 1 and 100 at 10 dollars a million. */
  const cost = 0.0026 * NANO;

  it("passes until the limit is reached, and is then refused as its API says it, with words", async () => {
    await addProvider("acme", "anthropic", "", { prices: price });
    await limit("usd", 0.005 * NANO);
    answer = (response) => void response.writeHead(200).end(STREAM);
    const out = await wayOut(sandboxId);
    expect((await answered(call(out, "/acme/v1/messages"))).status).toBe(200);
    expect((await answered(call(out, "/acme/v1/messages"))).status).toBe(200);
    const refused = await answered(call(out, "/acme/v1/messages"));
    expect(refused.status).toBe(402);
    const sentence =
      "The limit of $0.005 for this session is reached: $0.0052. Raise it, then send a message.";
    expect(JSON.parse(refused.text)).toEqual({
      type: "error",
      error: { type: "spend_limit", code: "spend_limit", message: sentence },
    });
    expect(spendRefusalIn(`API Error: 402 ${refused.text}`)?.message).toBe(sentence);
    expect(asked).toHaveLength(2);
    await expectCounted([{ ...whole, calls: 2, input: 2000, cached: 800, output: 200, cost: 2 * cost }]);
    await limit("usd", 0.05 * NANO);
    expect((await answered(call(out, "/acme/v1/messages"))).status).toBe(200);
  });

  it("waits for no other: those that begin together pass by what they reserve", async () => {
    await addProvider("acme", "anthropic");
    // A call reserves 8 tokens of its prompt, and 8,192 of its answer.
    await limit("tokens", 20_000);
    const hold = Promise.withResolvers<void>();
    answer = async (response) => {
      await hold.promise;
      response.end(STREAM);
    };
    const out = await wayOut(sandboxId);
    const refused: string[] = [];
    const calls = Array.from({ length: 6 }, async () => {
      const { status, text: said } = await answered(call(out, "/acme/v1/messages"));
      if (status === 402) refused.push(said);
      return { status };
    });
    await vi.waitFor(() => expect([asked.length, refused.length]).toEqual([3, 3]));
    expect(refused[2]).toContain("0 tokens, and 24,600 tokens reserved for calls under way.");
    hold.resolve();
    const statuses = (await Promise.all(calls)).map(({ status }) => status);
    expect(statuses.toSorted()).toEqual([200, 200, 200, 402, 402, 402]);
    await expectCounted([{ ...whole, calls: 3, input: 3000, cached: 1200, output: 300 }]);
  });

  it("of a model without a price is refused by name where dollars are limited", async () => {
    await addProvider("acme", "gemini");
    await limit("usd", NANO);
    const out = await wayOut(sandboxId);
    const refused = await answered(call(out, "/acme/v1beta/models/large:generateContent", {}));
    expect([refused.status, JSON.parse(refused.text)]).toEqual([
      402,
      {
        error: {
          code: 402,
          status: "SPEND_LIMIT",
          message:
            "The model acme/large has no known price, and a limit of $1 applies for this session. Set its price, or a limit in tokens.",
        },
      },
    ]);
    expect(asked).toEqual([]);
  });

  it("that costs nothing reserves nothing any longer, whether it was refused or not answered", async () => {
    await addProvider("acme", "anthropic");
    await limit("tokens", 9000);
    answer = (response) => void response.writeHead(429).end();
    const out = await wayOut(sandboxId);
    for (let count = 0; count < 3; count += 1)
      expect((await answered(call(out, "/acme/v1/messages"))).status).toBe(429);
    answer = (response) => void response.destroy();
    for (let count = 0; count < 3; count += 1)
      expect((await answered(call(out, "/acme/v1/messages"))).status).toBe(502);
  });
});

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
    await expectCounted([whole]);
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
    await inside(Effect.flatMap(ModelProviders, ({ remove }) => remove(made, made.id)));
    expect((await answered(call(out, "/acme/v1/messages"))).status).toBe(403);
    expect(asked).toHaveLength(1);
  });

  it("that is left ends at the provider too, and counts what was named before, and an estimate of the rest", async () => {
    await addProvider("acme", "anthropic");
    const ended = Promise.withResolvers<void>();
    answer = (response) => {
      response.on("close", () => ended.resolve());
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(STREAM.slice(0, STREAM.lastIndexOf("data:")));
    };
    const outgoing = call(await wayOut(sandboxId), "/acme/v1/messages");
    const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
    await once(incoming, "data");
    outgoing.destroy();
    await ended.promise;
    await expectCounted([{ ...whole, output: 1, estimated: 1 }]);
  });

  it("whose answer breaks off breaks off for its caller, and counts an estimate if none were named", async () => {
    await addProvider("acme", "openai-compatible", "/v1");
    answer = (response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(event({ choices: [{ delta: { content: "Hello, you" } }] }), () => response.destroy());
    };
    const outgoing = call(await wayOut(sandboxId), "/acme/chat/completions");
    await expect(answered(outgoing)).rejects.toThrow();
    await expectCounted([
      // 31 bytes of the request, and 10 characters of the answer.
      { ...whole, untoldCalls: 1, input: 0, cached: 0, output: 0, estimated: 8 + 3 },
    ]);
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
    await expectCounted([whole]);
  });

  it("to a server that does not answer says so, without its address", async () => {
    await addProvider("acme", "anthropic");
    server.close();
    server.closeAllConnections();
    const said = await answered(call(await wayOut(sandboxId), "/acme/v1/messages"));
    expect(said.status).toBe(502);
    expect(said.text).toContain("the model provider acme cannot be reached (it refuses connections)");
    expect(said.text).not.toContain("127.0.0.1");
  });
});
