/** Conformance: limits of spend, what was spent, and reservations of calls under way. */
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import { describe, expect } from "vitest";
import { contentText } from "../../../../src/domain/conversation/conversation.ts";
import { limitReached, NANO } from "../../../../src/domain/sandbox/spend.ts";
import { ModelUsage } from "../../../../src/features/model-providers/ports/model-usage.ts";
import { type LimitWish, RESERVED_MS, Spend } from "../../../../src/features/spend/ports/spend.ts";
import { Conversations } from "../../../../src/store/ports/sessions/conversations.ts";
import { Sandboxes } from "../../../../src/store/ports/sessions/sandboxes.ts";
import { admitOne, admitSession, fired, openSandbox } from "../../../support/world/sessions.ts";
import { makeWorld, NOON, type World } from "../../../support/world/world.ts";
import { reserveFor } from "../../../support/world/spend.ts";
import type { Check } from "../fixture.ts";

const limit = (world: World, fields: Partial<LimitWish> = {}): LimitWish => ({
  id: randomUUID(),
  accountId: world.accountId,
  scope: "account",
  subject: "",
  projectId: null,
  unit: "tokens",
  amount: 1000,
  now: NOON,
  ...fields,
});

const session = (world: World, id: string, fields: { readonly triggerSlug?: string } = {}) => ({
  id,
  accountId: world.accountId,
  projectId: world.projectId,
  createdBy: world.userId,
  triggerSlug: null,
  parentSessionId: null,
  ...fields,
});

const call = (
  sessionId: string,
  fields: {
    readonly tokens?: number;
    readonly cost?: number | null;
    readonly isOwn?: boolean;
    readonly isLimited?: boolean;
  } = {},
) => ({
  id: randomUUID(),
  sessionId,
  model: "acme/large",
  tokens: 100,
  cost: 1,
  isOwn: false,
  isLimited: true,
  now: NOON,
  ...fields,
});

const counted = (input: number, cost: number) => ({
  model: "acme/large",
  tokens: { input, cached: 0, output: 0 },
  estimated: 0,
  cost,
});

/** A call that passes is counted with what it reserved. */
const spendOf = Effect.fnUntraced(function* (wanted: ReturnType<typeof call>) {
  const { settle } = yield* Spend;
  const refusal = yield* reserveFor(wanted);
  if (refusal === null) yield* settle({ ...wanted, counted: counted(wanted.tokens, wanted.cost ?? 0) });
  return refusal;
});

const notes = Effect.fnUntraced(function* (sessionId: string) {
  const page = yield* (yield* Conversations).page(sessionId, { before: null, limit: 50 });
  return (page?.items ?? []).filter(({ kind }) => kind === "note").map(({ content }) => contentText(content));
});

const amounts = (states: readonly { readonly amount: number }[]) => states.map(({ amount }) => amount);

const checkLimits = (check: Check): void => {
  check(
    "have one amount for each subject, and are listed with what is spent",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const { set, list, remove, hasLimits } = yield* Spend;
      const sessionId = yield* admitSession(world, { name: "Docs" });
      expect(yield* hasLimits(world.accountId)).toBe(false);
      const first = yield* set(limit(world));
      const second = yield* set(limit(world, { unit: "usd", amount: 5 * NANO }));
      expect(second).toEqual({ ...first, unit: "usd", amount: 5 * NANO });
      yield* set(limit(world, { scope: "each_session" }));
      const place = { scope: "session", subject: sessionId, projectId: world.projectId } as const;
      yield* set(limit(world, place));
      yield* set(limit(world, { scope: "person", subject: world.userId }));
      yield* spendOf(call(sessionId));
      const spent = { tokens: 100, cost: 1 };
      expect((yield* list(world.accountId, NOON)).map(({ scope, spent: sum }) => [scope, sum])).toEqual([
        ["account", spent],
        ["person", spent],
        ["each_session", null],
        ["session", spent],
      ]);
      expect((yield* list(world.accountId, NOON)).at(-1)).toMatchObject({ name: "Docs", subject: sessionId });
      expect(yield* hasLimits(world.accountId)).toBe(true);
      expect(yield* hasLimits(randomUUID())).toBe(false);
      expect(yield* remove({ accountId: world.accountId, ...place })).toBe(true);
      expect(yield* remove({ accountId: world.accountId, ...place })).toBe(false);
    }),
  );

  check(
    "apply by session, trigger, person, project and account, a session's own before the one for each",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const { set, ofSession } = yield* Spend;
      const mine = yield* admitSession(world);
      const run = yield* admitOne(world, fired(world));
      const triggered = run.outcome === "admitted" ? run.sessionId : "";
      yield* set(limit(world, { scope: "each_session", amount: 10 }));
      yield* set(limit(world, { scope: "session", subject: mine, amount: 20 }));
      yield* set(limit(world, { scope: "person", subject: world.userId, amount: 30 }));
      yield* set(limit(world, { scope: "trigger", subject: `${world.projectId}/on-push`, amount: 40 }));
      yield* set(limit(world, { scope: "project", subject: world.projectId, amount: 50 }));
      yield* set(limit(world, { amount: 60 }));
      yield* set(limit(world, { scope: "session", subject: randomUUID(), amount: 1 }));
      expect(amounts(yield* ofSession(session(world, mine), NOON))).toEqual([20, 30, 50, 60]);
      expect(amounts(yield* ofSession(session(world, triggered, { triggerSlug: "on-push" }), NOON))).toEqual([
        10, 40, 50, 60,
      ]);
      const wanted = session(world, randomUUID());
      expect(amounts(yield* ofSession(wanted, NOON))).toEqual([10, 30, 50, 60]);
      const child = { ...wanted, parentSessionId: mine };
      expect(amounts(yield* ofSession(child, NOON))).toEqual([10, 20, 30, 50, 60]);
    }),
  );
};

const checkRunning = (check: Check): void => {
  check(
    "know the sessions that run, with those above them and the secrets that they got",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const { running } = yield* Spend;
      const parent = yield* admitSession(world, { name: "Docs" });
      const { id: sandboxId } = yield* openSandbox(parent);
      yield* (yield* Sandboxes).noteSecrets(sandboxId, null, { revision: 1, versions: { B: 1, A: 2 } });
      const child = yield* admitSession(world, { parentSessionId: parent });
      yield* openSandbox(child);
      yield* admitSession(world);
      const rows = yield* running(world.accountId);
      expect(rows).toHaveLength(2);
      expect(rows.find(({ id }) => id === parent)).toMatchObject({
        ...session(world, parent),
        name: "Docs",
        origin: "session",
        above: [],
        secretNames: ["A", "B"],
      });
      expect(rows.find(({ id }) => id === child)).toMatchObject({
        above: [{ id: parent, createdBy: world.userId }],
        secretNames: [],
      });
      expect(yield* running(randomUUID())).toEqual([]);
    }),
  );
};

const checkCalls = (check: Check): void => {
  check(
    "let calls pass that begin at the same time until their reservations reach the limit, and count each once",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const { set, settle, ofSession, spentBySession } = yield* Spend;
      const sessionId = yield* admitSession(world);
      yield* set(limit(world, { amount: 350 }));
      const calls = Array.from({ length: 12 }, () => call(sessionId));
      const answers = yield* Effect.forEach(calls, (one) => reserveFor(one), { concurrency: 12 });
      const passed = calls.filter((_, index) => answers[index] === null);
      expect(passed).toHaveLength(4);
      expect(answers.find((answer) => answer !== null)).toEqual({
        limit: { scope: "account", unit: "tokens", amount: 350, name: "", spent: 0, reserved: 400 },
        lacksPrice: false,
      });
      yield* Effect.forEach(passed, (one) => settle({ ...one, counted: counted(90, 7) }), {
        concurrency: 4,
      });
      const [state] = yield* ofSession(session(world, sessionId), NOON);
      expect(state).toMatchObject({ spent: 360, reserved: 0 });
      expect(yield* spentBySession(sessionId)).toEqual({ tokens: 360, cost: 28 });
      const refusal = yield* reserveFor(call(sessionId));
      expect(refusal && limitReached(refusal.limit)).toBe(
        "The limit of 350 tokens for the account this month is reached: 360 tokens. Raise it, then send a message.",
      );
      yield* set(limit(world, { amount: 400 }));
      expect(yield* reserveFor(call(sessionId))).toBe(null);
    }),
  );

  check(
    "end a reservation that cost nothing at once, and count the estimate of one that is not renewed, once and marked",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const { set, settle, ofSession } = yield* Spend;
      const sessionId = yield* admitSession(world);
      yield* set(limit(world, { amount: 100 }));
      const first = call(sessionId);
      expect(yield* reserveFor(first)).toBe(null);
      yield* settle({ ...first, counted: null });
      expect(yield* ofSession(session(world, sessionId), NOON)).toMatchObject([{ spent: 0, reserved: 0 }]);
      const lost = call(sessionId);
      expect(yield* reserveFor(lost)).toBe(null);
      expect(yield* reserveFor(call(sessionId))).not.toBe(null);
      const { lapse, renew, spentBySession } = yield* Spend;
      yield* renew([lost.id, randomUUID()], NOON + 1);
      expect(yield* lapse(NOON + RESERVED_MS)).toBe(0);
      expect(yield* ofSession(session(world, sessionId), NOON)).toMatchObject([{ spent: 0, reserved: 100 }]);
      const rounds = [lapse(NOON + RESERVED_MS + 1), lapse(NOON + RESERVED_MS + 1)];
      const lapsed = yield* Effect.all(rounds, { concurrency: 2 });
      expect(lapsed.toSorted()).toEqual([0, 1]);
      expect(yield* ofSession(session(world, sessionId), NOON)).toMatchObject([{ spent: 100, reserved: 0 }]);
      // Its node lives, and was only late.
      yield* settle({ ...lost, counted: counted(90, 7) });
      expect(yield* spentBySession(sessionId)).toEqual({ tokens: 100, cost: 1 });
      const usage = yield* (yield* ModelUsage).ofSession(sessionId);
      expect(usage).toMatchObject([{ calls: 1, untoldCalls: 1, input: 0, estimated: 100, cost: 1 }]);
    }),
  );

  check(
    "let a call pass that began before its account had limits, and reserve it for those that are set meanwhile",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const { set, callerIn, ofSession } = yield* Spend;
      const parent = yield* admitSession(world);
      const sessionId = yield* admitSession(world, { parentSessionId: parent });
      const sandboxId = (yield* openSandbox(sessionId)).id;
      const { accountId } = world;
      const before = yield* callerIn(sandboxId);
      expect(before).toMatchObject({ accountId, isLimited: false });
      expect(before?.sessions.map(({ id }) => id)).toEqual([sessionId, parent]);
      yield* set(limit(world, { amount: 50 }));
      expect(yield* callerIn(sandboxId)).toMatchObject({ isLimited: true });
      expect(yield* callerIn(randomUUID())).toBe(null);
      for (const isOwn of [false, true])
        expect(yield* reserveFor(call(sessionId, { isLimited: false, isOwn, cost: null }))).toBe(null);
      expect(yield* ofSession(session(world, sessionId), NOON)).toMatchObject([{ spent: 0, reserved: 100 }]);
      expect(yield* reserveFor(call(sessionId))).toMatchObject({ limit: { amount: 50 } });
    }),
  );

  check(
    "count a call once, however often its end is told",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const { settle, spentBySession } = yield* Spend;
      const sessionId = yield* admitSession(world);
      const one = call(sessionId);
      yield* reserveFor(one);
      // The answer to the first was lost, and the caller tries again.
      const end = settle({ ...one, counted: counted(90, 7) });
      yield* Effect.all([end, end, end], { concurrency: 3 });
      yield* settle({ ...call(sessionId), counted: counted(90, 7) });
      expect(yield* spentBySession(sessionId)).toEqual({ tokens: 90, cost: 7 });
      expect(yield* (yield* ModelUsage).ofSession(sessionId)).toMatchObject([
        { calls: 1, input: 90, cost: 7 },
      ]);
    }),
  );

  check(
    "count a call that a person pays for herself for her and for the session alone",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const { set, month } = yield* Spend;
      const sessionId = yield* admitSession(world);
      yield* set(limit(world, { amount: 50 }));
      yield* set(limit(world, { scope: "project", subject: world.projectId, amount: 50 }));
      yield* spendOf(call(sessionId, { isOwn: true }));
      const sums = yield* month(world.accountId, "2026-11");
      expect(sums.map(({ scope, tokens }) => [scope, tokens])).toEqual([["person", 100]]);
      yield* set(limit(world, { scope: "person", subject: world.userId, amount: 100 }));
      expect(yield* reserveFor(call(sessionId, { isOwn: true }))).toMatchObject({
        limit: { scope: "person" },
      });
      expect(yield* reserveFor(call(sessionId))).toMatchObject({ limit: { scope: "person" } });
      const run = yield* admitOne(world, fired(world));
      const runId = run.outcome === "admitted" ? run.sessionId : "";
      yield* set(limit(world, { scope: "trigger", subject: `${world.projectId}/on-push`, amount: 1 }));
      yield* set(limit(world, { scope: "person", subject: world.userId, amount: 1000 }));
      expect(yield* spendOf(call(runId, { isOwn: true }))).toBe(null);
    }),
  );

  check(
    "refuse a model without a price where dollars are limited, and only there",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const { set } = yield* Spend;
      const sessionId = yield* admitSession(world);
      yield* set(limit(world));
      expect(yield* reserveFor(call(sessionId, { cost: null }))).toBe(null);
      yield* set(limit(world, { unit: "usd", amount: 5 * NANO }));
      expect(yield* reserveFor(call(sessionId, { cost: null }))).toMatchObject({ lacksPrice: true });
      expect(yield* reserveFor(call(sessionId))).toBe(null);
    }),
  );

  check(
    "count a session that an agent started for the session of the agent, and a trigger's for no person",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const { month, spentBySession } = yield* Spend;
      const parent = yield* admitSession(world);
      const child = yield* admitSession(world, { parentSessionId: parent });
      const run = yield* admitOne(world, fired(world));
      yield* spendOf(call(parent));
      yield* spendOf(call(child));
      yield* spendOf(call(run.outcome === "admitted" ? run.sessionId : ""));
      expect((yield* spentBySession(parent)).tokens).toBe(200);
      expect((yield* spentBySession(child)).tokens).toBe(100);
      const sums = yield* month(world.accountId, "2026-11");
      expect(sums.map(({ scope, subject, period, tokens }) => [scope, subject, period, tokens])).toEqual([
        ["account", "", "2026-11-20", 300],
        ["account", "", "2026-11", 300],
        ["project", world.projectId, "2026-11", 300],
        ["person", world.userId, "2026-11", 200],
      ]);
      expect(yield* month(world.accountId, "2026-10")).toEqual([]);
    }),
  );

  check(
    "say in the conversation that four fifths are spent, once for an amount",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const { set } = yield* Spend;
      const sessionId = yield* admitSession(world);
      yield* (yield* Conversations).open(sessionId, NOON);
      const own = { scope: "session", subject: sessionId, unit: "usd" } as const;
      yield* set(limit(world, { ...own, amount: 5 * NANO }));
      yield* spendOf(call(sessionId, { cost: 3.9 * NANO }));
      expect(yield* notes(sessionId)).toEqual([]);
      yield* spendOf(call(sessionId, { cost: 0.3 * NANO }));
      yield* spendOf(call(sessionId, { cost: 0.1 * NANO }));
      const first = "84 % of the limit of $5 for this session is spent: $4.20.";
      expect(yield* notes(sessionId)).toEqual([first]);
      yield* set(limit(world, { ...own, amount: 6 * NANO }));
      yield* spendOf({ ...call(sessionId, { cost: 0.6 * NANO }), now: NOON + 1 });
      const second = "81 % of the limit of $6 for this session is spent: $4.90.";
      expect((yield* notes(sessionId)).toSorted()).toEqual([second, first]);
    }),
  );
};

export const checkSpend = (check: Check): void => {
  describe("limits of spend", () => {
    checkLimits(check);
    checkRunning(check);
  });
  describe("calls under limits of spend", () => checkCalls(check));
};
