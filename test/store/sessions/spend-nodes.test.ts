/** Calls of models on two nodes with one Postgres: what is counted equals the script to the token, and a limit of spend holds. */
import { randomUUID } from "node:crypto";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Layer from "effect/Layer";
import * as Scope from "effect/Scope";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Store } from "../../../src/assembly/database.ts";
import { NANO } from "../../../src/domain/sandbox/spend.ts";
import { modelCalls } from "../../../src/features/model-providers/calls.ts";
import { sealKey } from "../../../src/features/model-providers/keys.ts";
import { ModelProviders } from "../../../src/features/model-providers/ports/model-providers.ts";
import { ModelServers } from "../../../src/features/model-providers/ports/model-servers.ts";
import { ModelUsage } from "../../../src/features/model-providers/ports/model-usage.ts";
import { accountSpendLayer } from "../../../src/features/spend/account-spend.ts";
import { RESERVED_MS, Spend } from "../../../src/features/spend/ports/spend.ts";
import { ModelDoor } from "../../../src/sandbox/model-door.ts";
import { type Keyring, keyringLayer } from "../../../src/services/keyring.ts";
import { Sessions } from "../../../src/store/ports/sessions/sessions.ts";
import { nodesOfFile } from "../../support/postgres/postgres.ts";
import { admitSession, openSandbox } from "../../support/world/sessions.ts";
import { makeWorld, NOON, type World } from "../../support/world/world.ts";
import { reserveFor } from "../../support/world/spend.ts";

/** What a scripted answer says and costs: 600 tokens at 2, 400 at 1 and 100 at 10 dollars a million. */
const WHOLE = { input: 1000, cached: 400, output: 100, cost: 0.0026 * NANO };
const ROOM = WHOLE.input + WHOLE.output;
const event = (value: object): Buffer => Buffer.from(`data: ${JSON.stringify(value)}\n\n`);
const begin = event({
  type: "message_start",
  message: { usage: { input_tokens: 600, cache_read_input_tokens: 400, output_tokens: 1 } },
});
/** 40 characters, which are estimated as ten tokens. */
const text = event({ type: "content_block_delta", delta: { text: "x".repeat(40) } });
const end = event({ type: "message_delta", usage: { output_tokens: 100 } });

/** The model's name in a request says how its answer goes. */
const SCRIPT = {
  whole: async function* () {
    yield* [begin, text, end];
  },
  cut: async function* () {
    yield* [begin, text];
    throw new Error("cut");
  },
  untold: async function* () {
    yield text;
  },
} satisfies Readonly<Record<string, () => AsyncGenerator<Buffer>>>;
type Kind = keyof typeof SCRIPT | "refused";

/** How many calls of each kind reached the provider. */
const reached = new Map<string, number>();

const servers = Layer.succeed(ModelServers, {
  call: ({ body }) =>
    Effect.promise(async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of body ?? []) chunks.push(chunk as Buffer);
      const { model } = JSON.parse(Buffer.concat(chunks).toString()) as { readonly model: Kind };
      reached.set(model, (reached.get(model) ?? 0) + 1);
      return model === "refused"
        ? { status: 429, headers: {}, body: Readable.from([]) }
        : { status: 200, headers: {}, body: Readable.from(SCRIPT[model]()) };
    }),
  check: () => Effect.die("not asked"),
  read: () => Effect.die("not asked"),
});

const layers = nodesOfFile();
const doors = [new ModelDoor(), new ModelDoor()] as const;
const scope = Effect.runSync(Scope.make());
let context: Context.Context<Store | Keyring>;
/** The other node. */
let second: Context.Context<Store | Keyring>;
let world: World;
/** A session, and one that its agent started. */
let sessions: readonly string[];
let sandboxes: readonly string[];

const inside = <A, E>(use: Effect.Effect<A, E, Store | Keyring>): Promise<A> =>
  Effect.runPromise(Effect.provideContext(use, context));

beforeAll(async () => {
  const keys = keyringLayer({ current: { version: 1, bytes: new Uint8Array(32) }, former: [] });
  const built = layers.map((store, index) => {
    const asks = Layer.merge(servers, accountSpendLayer);
    const door = doors[index] ?? doors[0];
    return Layer.fresh(
      Layer.provideMerge(Layer.provide(modelCalls(door), asks), Layer.merge(Layer.orDie(store), keys)),
    );
  });
  const [first, other] = built;
  if (first === undefined || other === undefined) throw new Error("two nodes");
  context = await Effect.runPromise(Layer.buildWithScope(first, scope));
  second = await Effect.runPromise(Layer.buildWithScope(other, scope));
  await inside(
    Effect.gen(function* () {
      world = yield* makeWorld(5);
      const parent = yield* admitSession(world);
      sessions = [parent, yield* admitSession(world, { parentSessionId: parent })];
      sandboxes = yield* Effect.forEach(sessions, (id) => Effect.map(openSandbox(id), (made) => made.id));
      const place = { id: randomUUID(), accountId: world.accountId, projectId: null, userId: null };
      yield* (yield* ModelProviders).create({
        ...place,
        name: "acme",
        kind: "anthropic",
        baseUrl: "https://acme.example.org",
        models: ["whole"],
        hasKey: true,
        prices: Object.fromEntries(
          ["whole", "cut", "untold"].map((model) => [model, { input: 2, cached: 1, output: 10 }]),
        ),
        sealed: yield* sealKey(place, "key", 1),
        triedAt: null,
        now: NOON,
      });
    }),
  );
});
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)));

/** One call, by a node and a session. @returns its status */
const call = async (kind: Kind, turn: number): Promise<number> => {
  const left = new AbortController();
  const reply = await (doors[turn % 2] ?? doors[0]).serve(sandboxes[(turn >> 1) % 2] ?? "")({
    method: "POST",
    path: "/acme/v1/messages",
    headers: {},
    gateway: null,
    body: Readable.from([Buffer.from(JSON.stringify({ model: kind, max_tokens: 2000 }))]),
    left: left.signal,
  });
  if (reply === null || "refused" in reply) return reply?.refused ?? 404;
  try {
    await buffer(reply.body);
  } catch {
    // A cut answer.
  }
  return reply.status;
};

const KINDS: readonly Kind[] = ["whole", "cut", "whole", "untold", "refused", "whole"];

/** What the script cost so far. */
const scripted = () => {
  const [whole = 0, cut = 0, untold = 0] = (["whole", "cut", "untold"] as const).map((kind) =>
    reached.get(kind),
  );
  const named = { input: 1000 * (whole + cut), cached: 400 * (whole + cut), output: 100 * whole + cut };
  // Ten tokens of the text, one of which a cut answer named; and nine of the prompt's 34 bytes.
  return { ...named, estimated: 9 * cut + 19 * untold };
};

/** The calls that have ended are counted. @param sessionId of a session under a limit */
const settled = (sessionId: string) =>
  expect
    .poll(() =>
      inside(
        Effect.gen(function* () {
          const session = yield* (yield* Sessions).get(sessionId);
          return session && (yield* (yield* Spend).ofSession(session, NOON)).map(({ reserved }) => reserved);
        }),
      ),
    )
    .toEqual([0]);

const counted = async () => {
  const rows = await inside(
    Effect.flatMap(ModelUsage, ({ ofSession }) => Effect.forEach(sessions, ofSession)),
  );
  const sum = (field: "input" | "cached" | "output" | "estimated") =>
    rows.flat().reduce((all, row) => all + row[field], 0);
  return {
    input: sum("input"),
    cached: sum("cached"),
    output: sum("output"),
    estimated: sum("estimated"),
  };
};

describe("two nodes", () => {
  it("count a call whose node died once, as its estimate, and an end that is told again not at all", async () => {
    const spends = [Context.get(context, Spend), Context.get(second, Spend)] as const;
    const sessionId = await inside(admitSession(world));
    const wanted = {
      sessionId,
      model: "acme/whole",
      tokens: 700,
      cost: 9,
      isOwn: false,
      isLimited: true,
      now: NOON,
    };
    const [lost, ended] = [randomUUID(), randomUUID()];
    const run = Effect.runPromise;
    await inside(Effect.all([lost, ended].map((id) => reserveFor({ ...wanted, id }))));
    const tokens = { input: 1000, cached: 0, output: 100 };
    const told = { model: "acme/whole", tokens, estimated: 0, cost: 5 };
    // The answer to the first is lost, and the other node's duty comes between.
    await run(spends[0].settle({ id: ended, counted: told, now: NOON }));
    const late = NOON + RESERVED_MS;
    const lapses = await run(
      Effect.all(
        spends.map(({ lapse }) => lapse(late)),
        { concurrency: 2 },
      ),
    );
    expect(lapses.toSorted()).toEqual([0, 1]);
    await run(spends[0].settle({ id: ended, counted: told, now: late }));
    await run(spends[0].settle({ id: lost, counted: told, now: late }));
    const rows = await inside(Effect.flatMap(ModelUsage, ({ ofSession }) => ofSession(sessionId)));
    expect(rows).toEqual([
      {
        model: "acme/whole",
        calls: 2,
        untoldCalls: 1,
        input: 1000,
        cached: 0,
        output: 100,
        estimated: 700,
        cost: 14,
      },
    ]);
    expect(await run(spends[1].spentBySession(sessionId))).toEqual({ tokens: 1800, cost: 14 });
  });

  it("count calls of parallel sessions to the token, and pass a limit by no more than a call", async () => {
    const limit = { scope: "session", subject: sessions[0] ?? "", unit: "tokens" } as const;
    const amount = 40_000;
    const { accountId, projectId } = world;
    await inside(
      Effect.flatMap(Spend, ({ set }) =>
        set({ ...limit, id: randomUUID(), accountId, projectId, amount, now: NOON }),
      ),
    );
    const statuses: number[] = [];
    for (let wave = 0; wave < 4; wave += 1) {
      const calls = Array.from({ length: 24 }, (_, turn) =>
        call(KINDS[turn % KINDS.length] ?? "whole", turn),
      );
      // oxlint-disable-next-line no-await-in-loop -- each wave finds what the one before has spent
      statuses.push(...(await Promise.all(calls)));
    }
    await settled(sessions[0] ?? "");
    // Alone, a call is refused only by what is spent.
    for (let [turn, last] = [0, 0]; last !== 402; turn += 1) {
      /* oxlint-disable no-await-in-loop -- until the limit is reached */
      last = await call("whole", turn);
      await settled(sessions[0] ?? "");
      /* oxlint-enable no-await-in-loop */
      statuses.push(last);
    }
    expect(new Set(statuses)).toEqual(new Set([200, 402, 429]));
    expect(await counted()).toEqual(scripted());
    const { tokens } = await inside(
      Effect.flatMap(Spend, ({ spentBySession }) => spentBySession(sessions[0] ?? "")),
    );
    const { input, output, estimated } = scripted();
    expect(tokens).toBe(input + output + estimated);
    expect(tokens).toBeGreaterThanOrEqual(amount);
    expect(tokens).toBeLessThan(amount + ROOM);
  });
});
