/**
 * The shapes in which calls of models are spent, in each wire format, on two nodes with one Postgres: what is counted equals the script to
 * the token. docs/operate/spend-shapes.md has the same list, with the tests of each shape with real programs.
 */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Layer from "effect/Layer";
import * as Scope from "effect/Scope";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Store } from "../../../src/assembly/database.ts";
import type { CountedTokens } from "../../../src/domain/model/prices.ts";
import type { ProviderKind } from "../../../src/domain/sandbox/account-provider.ts";
import { modelCalls } from "../../../src/features/model-providers/calls.ts";
import { sealKey } from "../../../src/features/model-providers/keys.ts";
import { ModelProviders } from "../../../src/features/model-providers/ports/model-providers.ts";
import { ModelServers } from "../../../src/features/model-providers/ports/model-servers.ts";
import { ModelUsage } from "../../../src/features/model-providers/ports/model-usage.ts";
import { accountSpendLayer } from "../../../src/features/spend/account-spend.ts";
import { RESERVED_MS, Spend } from "../../../src/features/spend/ports/spend.ts";
import { ModelDoor } from "../../../src/sandbox/model-door.ts";
import { type Keyring, keyringLayer } from "../../../src/services/keyring.ts";
import { nodesOfFile } from "../../support/postgres/postgres.ts";
import { admitSession, openSandbox } from "../../support/world/sessions.ts";
import { makeWorld, NOON, type World } from "../../support/world/world.ts";

const PLAIN: CountedTokens = { input: 1000, cached: 0, output: 100 };
const CACHED: CountedTokens = { input: 1000, cached: 400, output: 100 };
/** 40 characters, which are estimated as ten tokens. */
const TEXT = "x".repeat(40);
const WRITTEN = 10;
/** The most tokens that a request asks for. They are reserved for its answer. */
const ROOM = 2000;

/** A wire format. Its events name these tokens. */
interface Format {
  readonly kind: ProviderKind;
  readonly path: (model: string, streams: boolean) => string;
  readonly limit: object;
  readonly begin: (tokens: CountedTokens) => object;
  readonly text: object;
  readonly end: (tokens: CountedTokens) => object;
  /** An answer that is no stream. */
  readonly whole: (tokens: CountedTokens) => object;
  /** Whether the beginning of a stream names the prompt's tokens, and one of the answer. */
  readonly namesFirst: boolean;
}

const messages = ({ input, cached, output }: CountedTokens) => ({
  usage: { input_tokens: input - cached, cache_read_input_tokens: cached, output_tokens: output },
});
const response = ({ input, cached, output }: CountedTokens) => ({
  usage: {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cached },
    output_tokens: output,
  },
});
const completion = ({ input, cached, output }: CountedTokens) => ({
  usage: {
    prompt_tokens: input,
    prompt_tokens_details: { cached_tokens: cached },
    completion_tokens: output,
  },
});
/** A part of the answer is thoughts. */
const generation = ({ input, cached, output }: CountedTokens, thoughts: number) => ({
  usageMetadata: {
    promptTokenCount: input,
    cachedContentTokenCount: cached,
    candidatesTokenCount: output - thoughts,
    thoughtsTokenCount: thoughts,
  },
});

const FORMATS: readonly Format[] = [
  {
    kind: "anthropic",
    path: () => "/v1/messages",
    limit: { max_tokens: ROOM },
    begin: (tokens) => ({ type: "message_start", message: messages({ ...tokens, output: 1 }) }),
    text: { type: "content_block_delta", delta: { type: "text_delta", text: TEXT } },
    end: ({ output }) => ({ type: "message_delta", usage: { output_tokens: output } }),
    whole: (tokens) => ({ content: [{ type: "text", text: TEXT }], ...messages(tokens) }),
    namesFirst: true,
  },
  {
    kind: "openai",
    path: () => "/responses",
    limit: { max_output_tokens: ROOM },
    begin: () => ({ type: "response.created", response: { usage: null } }),
    text: { type: "response.output_text.delta", delta: TEXT },
    end: (tokens) => ({ type: "response.completed", response: response(tokens) }),
    whole: (tokens) => ({ output: [{ content: [{ text: TEXT }] }], ...response(tokens) }),
    namesFirst: false,
  },
  {
    kind: "openai-compatible",
    path: () => "/chat/completions",
    limit: { max_completion_tokens: ROOM },
    begin: () => ({ choices: [{ delta: { role: "assistant" } }], usage: null }),
    text: { choices: [{ delta: { content: TEXT } }], usage: null },
    end: (tokens) => ({ choices: [], ...completion(tokens) }),
    whole: (tokens) => ({ choices: [{ message: { content: TEXT } }], ...completion(tokens) }),
    namesFirst: false,
  },
  {
    kind: "gemini",
    path: (model, streams) =>
      `/v1beta/models/${model}:${streams ? "streamGenerateContent" : "generateContent"}`,
    limit: { generationConfig: { maxOutputTokens: ROOM } },
    begin: (tokens) => generation({ ...tokens, output: 1 }, 0),
    text: { candidates: [{ content: { parts: [{ text: TEXT }] } }] },
    end: (tokens) => generation(tokens, 30),
    whole: (tokens) => ({
      candidates: [{ content: { parts: [{ text: TEXT }] } }],
      ...generation(tokens, 30),
    }),
    namesFirst: true,
  },
];

/** The model's name in a request says how its answer goes. */
const MODELS = ["stream", "small", "whole", "cached", "cut", "silent", "endless", "again", "held"] as const;
type Model = (typeof MODELS)[number];

const event = (value: object): Buffer => Buffer.from(`data: ${JSON.stringify(value)}\n\n`);

/** Resolves when the provider may answer a call of `held`. */
let held = Promise.withResolvers<void>();
/** How many calls of each session's script have reached the provider. */
let reached: Model[] = [];

async function* answer(
  { begin, text, end, whole }: Format,
  model: Model,
  left: AbortSignal,
): AsyncGenerator<Buffer, void> {
  switch (model) {
    case "stream":
    case "small":
    case "again":
      return yield* [event(begin(PLAIN)), event(text), event(end(PLAIN))];
    case "whole":
      return yield Buffer.from(JSON.stringify(whole(PLAIN)));
    case "cached":
      return yield* [event(begin(CACHED)), event(text), event(end(CACHED))];
    case "cut":
      yield* [event(begin(PLAIN)), event(text)];
      throw new Error("cut");
    case "silent":
      return yield event(text);
    case "endless":
      yield* [event(begin(PLAIN)), event(text)];
      if (!left.aborted) await once(left, "abort");
      throw new Error("left");
    case "held":
      await held.promise;
      return yield* [event(begin(PLAIN)), event(text), event(end(PLAIN))];
  }
}

const servers = Layer.succeed(ModelServers, {
  call: ({ path, body, base, left }) =>
    Effect.promise(async () => {
      const format = FORMATS.find(({ kind }) => base.hostname === `${kind}.example.org`);
      const request = body === null ? "" : (await buffer(body)).toString();
      const model = MODELS.find((one) => new RegExp(`\\b${one}\\b`).test(`${path} ${request}`));
      if (format === undefined || model === undefined) throw new Error(`${base.href}${path}`);
      const isFirst = !reached.includes(model);
      reached.push(model);
      return model === "again" && isFirst
        ? { status: 529, headers: {}, body: Readable.from([Buffer.from("{}")]) }
        : { status: 200, headers: {}, body: Readable.from(answer(format, model, left)) };
    }),
  check: () => Effect.die("not asked"),
  read: () => Effect.die("not asked"),
});

const layers = nodesOfFile();
const doors = [new ModelDoor(), new ModelDoor()] as const;
const scope = Effect.runSync(Scope.make());
/** The two nodes. */
let nodes: readonly Context.Context<Store | Keyring>[];
let world: World;

const inside = <A, E>(use: Effect.Effect<A, E, Store | Keyring>, node = 0): Promise<A> => {
  const context = nodes[node];
  if (context === undefined) throw new Error("two nodes");
  return Effect.runPromise(Effect.provideContext(use, context));
};

beforeAll(async () => {
  const keys = keyringLayer({ current: { version: 1, bytes: new Uint8Array(32) }, former: [] });
  const asks = Layer.merge(servers, accountSpendLayer);
  nodes = await Promise.all(
    layers.map((store, node) => {
      const calls = Layer.provide(modelCalls(doors[node] ?? doors[0]), asks);
      const whole = Layer.fresh(Layer.provideMerge(calls, Layer.merge(Layer.orDie(store), keys)));
      return Effect.runPromise(Layer.buildWithScope(whole, scope));
    }),
  );
  await inside(
    Effect.gen(function* () {
      world = yield* makeWorld(200);
      for (const { kind } of FORMATS) {
        const place = { id: randomUUID(), accountId: world.accountId, projectId: null, userId: null };
        yield* (yield* ModelProviders).create({
          ...place,
          name: kind,
          kind,
          baseUrl: `https://${kind}.example.org`,
          models: MODELS,
          hasKey: true,
          prices: {},
          sealed: yield* sealKey(place, "key", 1),
          triedAt: null,
          now: NOON,
        });
      }
    }),
  );
});
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)));

/** What one session's calls of one model sum up to. */
type Sums = CountedTokens & { readonly calls: number; readonly estimated: number };
const NOTHING: Sums = { calls: 0, input: 0, cached: 0, output: 0, estimated: 0 };
const named = (tokens: CountedTokens, calls = 1): Sums => ({
  calls,
  input: tokens.input * calls,
  cached: tokens.cached * calls,
  output: tokens.output * calls,
  estimated: 0,
});

/** One session with its calls in one format. */
class Caller {
  readonly id: string;
  readonly #format: Format;
  readonly #sandbox: string;

  private constructor(id: string, sandbox: string, format: Format) {
    this.id = id;
    this.#sandbox = sandbox;
    this.#format = format;
  }

  /** @param parent the session whose agent starts it */
  static async start(format: Format, parent?: Caller): Promise<Caller> {
    const more = parent === undefined ? {} : { parentSessionId: parent.id };
    const id = await inside(admitSession(world, more));
    return new Caller(id, (await inside(openSandbox(id))).id, format);
  }

  #body(model: Model): Buffer {
    return Buffer.from(JSON.stringify({ model, ...this.#format.limit }));
  }

  /** The estimate of the request: a token for four bytes. */
  prompt(model: Model): number {
    return Math.ceil(this.#body(model).length / 4);
  }

  /** What an answer sums up to that broke off after its text. */
  broken(model: Model): Sums {
    return this.#format.namesFirst
      ? { calls: 1, ...PLAIN, output: 1, estimated: WRITTEN - 1 }
      : { ...NOTHING, calls: 1, estimated: this.prompt(model) + WRITTEN };
  }

  /** @param leaves after it has the first two pieces of the answer. @returns the status */
  async call(model: Model, { node = 0, leaves = false } = {}): Promise<number> {
    const left = new AbortController();
    const reply = await (doors[node] ?? doors[0]).serve(this.#sandbox)({
      method: "POST",
      path: `/${this.#format.kind}${this.#format.path(model, model !== "whole")}`,
      headers: {},
      gateway: null,
      body: Readable.from([this.#body(model)]),
      left: left.signal,
    });
    if (reply === null || "refused" in reply) return reply?.refused ?? 404;
    const pieces = reply.body[Symbol.asyncIterator]();
    try {
      if (leaves) {
        await pieces.next();
        await pieces.next();
        left.abort();
        await pieces.return?.();
      } else for (let piece = await pieces.next(); piece.done !== true; piece = await pieces.next());
    } catch {
      // A cut answer.
    }
    return reply.status;
  }
}

/** By the session's id and the model: what is expected, or what is counted. */
type Books = Readonly<Record<string, Readonly<Record<string, Sums>>>>;

interface Shape {
  readonly name: string;
  /** Makes the calls. @returns what the script costs */
  readonly run: (caller: Caller, format: Format) => Promise<Books>;
}

/** A shape of one call. */
const single = (
  name: string,
  model: Model,
  expected: Sums | ((caller: Caller) => Sums),
  more: { readonly leaves?: boolean } = {},
): Shape => ({
  name,
  run: async (caller) => {
    await caller.call(model, more);
    return { [caller.id]: { [model]: typeof expected === "function" ? expected(caller) : expected } };
  },
});

const SHAPES: readonly Shape[] = [
  single("a stream", "stream", named(PLAIN)),
  single("an answer as a whole", "whole", named(PLAIN)),
  single("a prompt that the provider had cached", "cached", named(CACHED)),
  single("a stream that the provider cuts", "cut", (caller) => caller.broken("cut")),
  single("a stream whose caller aborts it", "endless", (caller) => caller.broken("endless"), {
    leaves: true,
  }),
  single("an answer that names no usage", "silent", (caller) => ({
    ...NOTHING,
    calls: 1,
    estimated: caller.prompt("silent") + WRITTEN,
  })),
  {
    name: "a call that is refused and retried",
    run: async (caller) => {
      expect([await caller.call("again"), await caller.call("again")]).toEqual([529, 200]);
      return { [caller.id]: { again: named(PLAIN) } };
    },
  },
  {
    name: "parallel sub-agents of a session",
    run: async (caller) => {
      await Promise.all(
        Array.from({ length: 6 }, (_, at) => caller.call(at % 2 === 0 ? "stream" : "cached")),
      );
      return { [caller.id]: { stream: named(PLAIN, 3), cached: named(CACHED, 3) } };
    },
  },
  {
    name: "a session that the agent started, beside its own",
    run: async (caller, format) => {
      const child = await Caller.start(format, caller);
      await Promise.all([caller.call("stream"), child.call("stream"), child.call("cached")]);
      return {
        [caller.id]: { stream: named(PLAIN) },
        [child.id]: { stream: named(PLAIN), cached: named(CACHED) },
      };
    },
  },
  {
    name: "titles and summaries of another model",
    run: async (caller) => {
      await Promise.all([caller.call("stream"), caller.call("small"), caller.call("small")]);
      return { [caller.id]: { stream: named(PLAIN), small: named(PLAIN, 2) } };
    },
  },
  {
    name: "calls on two nodes at the same time",
    run: async (caller) => {
      await Promise.all(Array.from({ length: 8 }, (_, at) => caller.call("stream", { node: at % 2 })));
      return { [caller.id]: { stream: named(PLAIN, 8) } };
    },
  },
  {
    name: "a service that is killed during a call",
    run: async (caller) => {
      held = Promise.withResolvers();
      const call = caller.call("held");
      await expect.poll(() => reached).toContain("held");
      // The other node finds the call without a renewal. Then the first one was not dead.
      const lapse = Effect.gen(function* () {
        return yield* (yield* Spend).lapse((yield* Clock.currentTimeMillis) + RESERVED_MS + 1);
      });
      await expect.poll(() => inside(lapse, 1)).toBe(1);
      held.resolve();
      expect(await call).toBe(200);
      return { [caller.id]: { held: { ...NOTHING, calls: 1, estimated: caller.prompt("held") + ROOM } } };
    },
  },
];

const counted = async (books: Books, { kind }: Format): Promise<Books> =>
  Object.fromEntries(
    await Promise.all(
      Object.keys(books).map(async (id) => {
        const rows = await inside(Effect.flatMap(ModelUsage, ({ ofSession }) => ofSession(id)));
        const sums = rows.map(({ model, calls, input, cached, output, estimated }) => [
          model.replace(`${kind}/`, ""),
          { calls, input, cached, output, estimated },
        ]);
        return [id, Object.fromEntries(sums)];
      }),
    ),
  );

describe.each(FORMATS)("in the format of $kind", (format) => {
  it.each(SHAPES)("counts $name to the token", async ({ run }) => {
    reached = [];
    const caller = await Caller.start(format);
    const books = await run(caller, format);
    await expect.poll(() => counted(books, format)).toEqual(books);
    // The sums of limits are the same.
    const all = Object.values(books).flatMap((models) => Object.values(models));
    const tokens = all.reduce((sum, { input, output, estimated }) => sum + input + output + estimated, 0);
    const spent = inside(Effect.flatMap(Spend, ({ spentBySession }) => spentBySession(caller.id)));
    expect((await spent).tokens).toBe(tokens);
  });
});

it("has twelve shapes in four formats", () => {
  expect([SHAPES.length, FORMATS.length]).toEqual([12, 4]);
});
