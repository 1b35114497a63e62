/** Conformance: what a project's agents used, by day and model. */
import { randomUUID } from "node:crypto";
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import { NO_USAGE, type NativeItem } from "../../../../src/domain/conversation/conversation.ts";
import { Conversations } from "../../../../src/store/ports/sessions/conversations.ts";
import { MODELS_PER_DAY_MAX, ProjectUsage } from "../../../../src/store/ports/projects/project-usage.ts";
import { Sessions } from "../../../../src/store/ports/sessions/sessions.ts";
import { type Check } from "../fixture.ts";
import { converse, nativeItem, report, tokens } from "../../../support/world/conversations.ts";
import { tellSession } from "../../../support/world/sessions.ts";
import { addProject, makeAccount, makeWorld, NOON } from "../../../support/world/world.ts";

const DAY_MS = 86_400_000;
const dayOf = (instant: number) => new Date(instant).toISOString().slice(0, 10);
const [TODAY, TOMORROW] = [dayOf(NOON), dayOf(NOON + DAY_MS)];
const always = { from: "2000-01-01", to: "2999-12-31" };

/** A closed item of a model. */
const used = (id: string, rev: number, [model, count, cost]: readonly [string | null, number, number]) =>
  nativeItem(id, rev, { model, usage: tokens(count, cost) });

/** Notes a report of one sandbox after the other, each with the next number. */
const noting = Effect.fnUntraced(function* (world: Parameters<typeof converse>[0]) {
  const { note } = yield* Conversations;
  const { sessionId, sandboxId } = yield* converse(world);
  let rev = 10;
  const say = (items: readonly NativeItem[], now = NOON) => {
    rev += 10;
    return note(sessionId, {
      ...report(sandboxId, rev, { items: items.map((item, n) => ({ ...item, rev: rev - 9 + n })) }),
      now,
    });
  };
  return { sessionId, sandboxId, say };
});

export const checkProjectUsage = (check: Check): void => {
  describe("a project's usage", () => {
    check(
      "adds up by day and model what its conversations report, each item once",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { days, totals } = yield* ProjectUsage;
        const [one, other] = [yield* noting(world), yield* noting(world)];
        expect([yield* days(world.projectId, always), yield* totals(world.accountId)]).toEqual([[], []]);
        yield* one.say([used("a", 1, ["b/fast", 10, 0.1]), used("b", 2, ["a/wise", 5, 0.2])]);
        yield* one.say([used("a", 3, ["b/fast", 15, 0.3])]);
        yield* other.say([used("a", 1, ["b/fast", 1, 0.01])]);
        yield* one.say([used("c", 4, [null, 7, 0]), used("a", 5, ["b/fast", 25, 0.4])], NOON + DAY_MS);
        yield* one.say([used("a", 6, ["b/fast", 25, 0.4])], NOON + DAY_MS);
        const rows = [
          { day: TOMORROW, model: "b/fast", usage: tokens(10, 0.1) },
          { day: TOMORROW, model: "unknown", usage: tokens(7, 0) },
          { day: TODAY, model: "a/wise", usage: tokens(5, 0.2) },
          { day: TODAY, model: "b/fast", usage: tokens(16, 0.31) },
        ];
        expect(yield* days(world.projectId, always)).toEqual(rows);
        expect(yield* days(world.projectId, { from: TODAY, to: TODAY })).toEqual(rows.slice(2));
        expect(yield* days(world.projectId, { from: TOMORROW, to: TOMORROW })).toEqual(rows.slice(0, 2));
        expect(yield* totals(world.accountId)).toEqual([
          { projectId: world.projectId, usage: tokens(38, 0.61) },
        ]);
        const states = yield* (yield* Conversations).states([one.sessionId, other.sessionId]);
        expect([...states.values()].map(({ usage }) => usage.input_tokens).toSorted()).toEqual([1, 37]);
      }),
    );

    check(
      "is read by its project and account only",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const stranger = yield* makeAccount({ cap: 5 });
        const other = yield* addProject(world);
        const { days, totals } = yield* ProjectUsage;
        yield* (yield* noting(world)).say([used("a", 1, ["m", 1, 0])]);
        expect([yield* days(other, always), yield* totals(stranger.accountId)]).toEqual([[], []]);
        expect(yield* days(randomUUID(), always)).toEqual([]);
      }),
    );

    check(
      "stays when a session is deleted, and does not grow by a sandbox that is not current",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { totals } = yield* ProjectUsage;
        const { sessionId, say } = yield* noting(world);
        yield* say([used("a", 1, ["m", 3, 0.5])]);
        const total = [{ projectId: world.projectId, usage: tokens(3, 0.5) }];
        yield* tellSession(sessionId, { type: "stop.requested" });
        yield* tellSession(sessionId, { type: "delete.requested" });
        expect(yield* (yield* Sessions).get(sessionId)).toMatchObject({ deletedAt: expect.any(Number) });
        yield* say([used("b", 2, ["m", 100, 9])]);
        expect(yield* totals(world.accountId)).toEqual(total);
      }),
    );

    check(
      "has a limited number of rows a day, however many models a sandbox names",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { days } = yield* ProjectUsage;
        const { say } = yield* noting(world);
        const models = Array.from({ length: MODELS_PER_DAY_MAX + 30 }, (_, n) => `model ${n}`);
        for (const model of models) yield* say([used(model, 1, [model, 1, 0])]);
        yield* say(["more", "and more"].map((model, n) => used(model, n, [model, 1, 0])));
        yield* say([used("again", 1, ["model 0", 5, 0])]);
        const rows = yield* days(world.projectId, always);
        const of = (name: string) => rows.find(({ model }) => model === name)?.usage ?? NO_USAGE;
        expect(rows).toHaveLength(MODELS_PER_DAY_MAX + 1);
        expect([of("other"), of("model 0")]).toEqual([tokens(32, 0), tokens(6, 0)]);
      }),
    );
  });
};
