/** When calls of models are reserved and counted, beside what their callers see of them. */
import { randomUUID } from "node:crypto";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { setImmediate as turnEnd } from "node:timers/promises";
import type * as Context from "effect/Context";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Layer from "effect/Layer";
import * as Scope from "effect/Scope";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Store } from "../../../src/assembly/database.ts";
import { modelCalls } from "../../../src/features/model-providers/calls.ts";
import { sealKey } from "../../../src/features/model-providers/keys.ts";
import { ModelProviders } from "../../../src/features/model-providers/ports/model-providers.ts";
import { ModelServers, type Unreached } from "../../../src/features/model-providers/ports/model-servers.ts";
import { ModelUsage } from "../../../src/features/model-providers/ports/model-usage.ts";
import type { CallEstimate } from "../../../src/domain/sandbox/spend.ts";
import { accountSpendLayer } from "../../../src/features/spend/account-spend.ts";
import { RESERVED_MS, Spend } from "../../../src/features/spend/ports/spend.ts";
import { ModelDoor } from "../../../src/sandbox/model-door.ts";
import { type Keyring, keyringLayer } from "../../../src/services/keyring.ts";
import { AccountSpend } from "../../../src/services/projects/account-spend.ts";
import { StoreError } from "../../../src/store/ports/journal.ts";
import { admitSession, openSandbox } from "../../support/world/sessions.ts";
import { makeWorld, NOON, type World } from "../../support/world/world.ts";
import { memoryStore } from "../../twins/store/layer.ts";

/** So long a call waits for a database that is away: enough for a few tries. */
const OUTAGE_MS = 1000;
const ANSWER = `data: ${JSON.stringify({ type: "message_delta", usage: { input_tokens: 1000, output_tokens: 100 } })}\n\n`;
/** What a call reserves: its prompt of 17 bytes, and the room of an answer. */
const ESTIMATE = 5 + 8192;
const KEYS = keyringLayer({ current: { version: 1, bytes: new Uint8Array(32) }, former: [] });

const gates: (() => void)[] = [];
/** Opens once, at the latest after the test. */
const gate = () => {
  const { promise: isOpen, resolve: open } = Promise.withResolvers<void>();
  gates.push(open);
  return { isOpen, passed: Effect.promise(() => isOpen), open };
};
const AWAY: Effect.Effect<void, StoreError> = Effect.fail(
  new StoreError({ operation: "spend", cause: "away", isDiskFull: false }),
);
const DONE: Effect.Effect<void, StoreError> = Effect.void;
const UNREACHED = Effect.fail({
  why: "has gone",
  discreetWhy: "has gone",
  isLate: false,
} satisfies Unreached);

/** The work before the store is asked. */
let before: Readonly<Record<"callerIn" | "reserve" | "settle", typeof DONE>>;
/** The work after the store has reserved a call. */
let afterReserve: typeof DONE;
const held =
  <I, A>(of: keyof typeof before, ask: (input: I) => Effect.Effect<A, StoreError>) =>
  (input: I) =>
    Effect.andThen(
      Effect.suspend(() => before[of]),
      ask(input),
    );
const heldSpend = Layer.effect(
  AccountSpend,
  Effect.map(AccountSpend, (spend) => ({
    ...spend,
    callerIn: held("callerIn", spend.callerIn),
    reserve: (wanted: CallEstimate) => Effect.tap(held("reserve", spend.reserve)(wanted), () => afterReserve),
    settle: held("settle", spend.settle),
  })),
).pipe(Layer.provide(accountSpendLayer));

/** The signals of the calls that reached the provider. */
let reached: AbortSignal[];
/** What happens before the provider answers. */
let beforeAnswer: Effect.Effect<void, Unreached>;
const servers = Layer.succeed(ModelServers, {
  call: ({ left }) =>
    Effect.suspend(() => {
      reached.push(left);
      return Effect.as(beforeAnswer, {
        status: 200,
        headers: {},
        body: Readable.from([Buffer.from(ANSWER)]),
      });
    }),
  check: () => Effect.die("not asked"),
  read: () => Effect.die("not asked"),
});

const door = new ModelDoor();
let scope: Scope.Closeable;
let context: Context.Context<Store | Keyring>;
let world: World;
let sessionId: string;
let sandboxId: string;

const inside = <A, E>(use: Effect.Effect<A, E, Store | Keyring>): Promise<A> =>
  Effect.runPromise(Effect.provideContext(use, context));
const stop = () => Effect.runPromise(Scope.close(scope, Exit.void));

beforeEach(async () => {
  before = { callerIn: DONE, reserve: DONE, settle: DONE };
  afterReserve = DONE;
  beforeAnswer = Effect.void;
  reached = [];
  scope = await Effect.runPromise(Scope.make());
  const asks = Layer.merge(servers, heldSpend);
  const whole = Layer.provideMerge(
    Layer.provide(modelCalls(door, OUTAGE_MS), asks),
    Layer.merge(memoryStore, KEYS),
  );
  context = await Effect.runPromise(Layer.buildWithScope(whole, scope));
  await inside(
    Effect.gen(function* () {
      world = yield* makeWorld(5);
      sessionId = yield* admitSession(world);
      sandboxId = (yield* openSandbox(sessionId)).id;
      const place = { id: randomUUID(), accountId: world.accountId, projectId: null, userId: null };
      yield* (yield* ModelProviders).create({
        ...place,
        name: "acme",
        kind: "anthropic",
        baseUrl: "https://acme.example.org",
        models: ["large"],
        hasKey: true,
        prices: {},
        sealed: yield* sealKey(place, "key", 1),
        triedAt: null,
        now: NOON,
      });
    }),
  );
});
afterEach(async () => {
  for (const open of gates.splice(0)) open();
  await stop();
});

/** One call, as the sandbox's way out makes it. @returns its status, and the answer's text */
const call = async (left = new AbortController().signal): Promise<readonly [number, string]> => {
  const reply = await door.serve(sandboxId)({
    method: "POST",
    path: "/acme/v1/messages",
    headers: {},
    gateway: null,
    body: Readable.from([Buffer.from('{"model":"large"}')]),
    left,
  });
  if (reply === null || "refused" in reply) return [reply?.refused ?? 404, ""];
  return [reply.status, (await buffer(reply.body)).toString()];
};
const limit = (amount: number) =>
  inside(
    Effect.flatMap(Spend, ({ set }) => {
      const { accountId, projectId } = world;
      const place = { accountId, scope: "session", subject: sessionId, projectId } as const;
      return set({ ...place, id: randomUUID(), unit: "tokens", amount, now: NOON });
    }),
  );
const counted = () => inside(Effect.flatMap(ModelUsage, ({ ofSession }) => ofSession(sessionId)));
/** The reservations that no node renews. @returns how many there were */
const lapse = () =>
  inside(
    Effect.gen(function* () {
      return yield* (yield* Spend).lapse((yield* Clock.currentTimeMillis) + RESERVED_MS + 1);
    }),
  );
const COUNTED = { calls: 1, untoldCalls: 0, input: 1000, output: 100, estimated: 0 };

describe("a call where its account has no limit of spend", () => {
  it("is sent before it is reserved, and its answer waits for that", async () => {
    const { passed, open } = gate();
    before = { ...before, reserve: passed };
    let isAnswered = false;
    const answer = call().finally(() => {
      isAnswered = true;
    });
    await expect.poll(() => reached).toHaveLength(1);
    expect(isAnswered).toBe(false);
    open();
    expect(await answer).toEqual([200, ANSWER]);
    await expect.poll(counted).toMatchObject([COUNTED]);
  });

  it("that cannot be reserved is ended, and passes no part of its answer", async () => {
    before = { ...before, reserve: AWAY };
    expect(await call()).toEqual([502, ""]);
    expect(reached.map(({ aborted }) => aborted)).toEqual([true]);
    expect(await lapse()).toBe(0);
  });

  it("that may have been reserved counts as its estimate, because the provider may have begun", async () => {
    afterReserve = AWAY;
    expect(await call()).toEqual([502, ""]);
    const estimated = { calls: 1, untoldCalls: 1, input: 0, output: 0, estimated: 5 };
    await expect.poll(counted).toMatchObject([estimated]);
  });

  it("whose caller leaves before its answer counts as its estimate, because the provider may have begun", async () => {
    const caller = new AbortController();
    beforeAnswer = Effect.andThen(
      Effect.sync(() => caller.abort()),
      UNREACHED,
    );
    expect(await call(caller.signal)).toEqual([502, ""]);
    const estimated = { calls: 1, untoldCalls: 1, input: 0, output: 0, estimated: 5 };
    await expect.poll(counted).toMatchObject([estimated]);
  });

  it("that did not reach the provider costs nothing", async () => {
    beforeAnswer = UNREACHED;
    expect(await call()).toEqual([502, ""]);
    await stop();
    expect([await counted(), await lapse()]).toEqual([[], 0]);
  });

  it("is not sent if its session cannot be read", async () => {
    before = { ...before, callerIn: AWAY };
    expect(await call()).toEqual([502, ""]);
    expect(reached).toEqual([]);
  });

  it("waits for a database that is away for a moment", async () => {
    let tries = 0;
    before = { ...before, callerIn: Effect.suspend(() => ((tries += 1) < 3 ? AWAY : DONE)) };
    expect(await call()).toEqual([200, ANSWER]);
    expect([tries, reached.length]).toEqual([3, 1]);
  });
});

describe("a call under a limit of spend", () => {
  it("is sent after it is reserved, and not at all if that fails", async () => {
    await limit(ESTIMATE);
    before = { ...before, reserve: AWAY };
    expect(await call()).toEqual([502, ""]);
    const { passed, open } = gate();
    const { isOpen: isAsked, open: asked } = gate();
    before = { ...before, reserve: Effect.andThen(Effect.sync(asked), passed) };
    const answer = call();
    await isAsked;
    expect(reached).toEqual([]);
    open();
    expect(await answer).toEqual([200, ANSWER]);
  });

  it("is not refused for one that has ended here and is not yet counted", async () => {
    await limit(ESTIMATE);
    const { passed, open } = gate();
    before = { ...before, settle: passed };
    expect(await call()).toEqual([200, ANSWER]);
    let asked = 0;
    before = { ...before, reserve: Effect.sync(() => void (asked += 1)) };
    // The first one is refused. A call that does not wait for the settlement comes before this turn's end.
    afterReserve = Effect.sync(() => void turnEnd().then(open));
    expect(await call()).toEqual([200, ANSWER]);
    expect([asked, reached.length]).toEqual([2, 2]);
  });
});

describe("a reservation whose answer was lost", () => {
  it("ends, because its call was not sent", async () => {
    await limit(ESTIMATE);
    afterReserve = AWAY;
    expect(await call()).toEqual([502, ""]);
    expect(reached).toEqual([]);
    afterReserve = DONE;
    expect(await call()).toEqual([200, ANSWER]);
  });
});

describe("the settlement of a call", () => {
  it("is awaited by no caller, but by a service that stops", async () => {
    const { passed, open } = gate();
    before = { ...before, settle: passed };
    expect(await call()).toEqual([200, ANSWER]);
    expect(await counted()).toEqual([]);
    let isStopped = false;
    const stopped = stop().then(() => {
      isStopped = true;
    });
    // The door shuts first.
    await expect.poll(() => call()).toEqual([502, ""]);
    expect([isStopped, reached.length]).toEqual([false, 1]);
    open();
    await stopped;
    expect(await counted()).toMatchObject([COUNTED]);
  });

  it("is the estimate of the call, once, if the service dies before it", async () => {
    const { passed, open } = gate();
    before = { ...before, settle: passed };
    expect(await call()).toEqual([200, ANSWER]);
    // Another node's duty, ten minutes later. Then the first one was not dead.
    expect(await lapse()).toBe(1);
    open();
    await stop();
    const estimated = { calls: 1, untoldCalls: 1, input: 0, output: 0, estimated: ESTIMATE };
    expect(await counted()).toMatchObject([estimated]);
  });
});
