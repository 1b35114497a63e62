/** Conformance: how requests of one batch affect each other, and how a waiting fire affects the next one. */
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import { Admissions } from "../../../../src/store/ports/triggers/admissions.ts";
import { Fires, type FirePrompt, type NewFire } from "../../../../src/store/ports/triggers/fires.ts";
import { Identity } from "../../../../src/store/ports/people/identity.ts";
import { type Check } from "../fixture.ts";
import { fired, tellSession } from "../../../support/world/sessions.ts";
import { BOOT_MS, makeWorld, NOON, type World } from "../../../support/world/world.ts";

const admit = Effect.fnUntraced(function* (world: World, fires: readonly Partial<NewFire>[]) {
  const { admit: decide } = yield* Admissions;
  return yield* decide(
    world.accountId,
    fires.map((fire) => fired(world, fire)),
  );
});

const rowsOf = Effect.fnUntraced(function* (world: World) {
  const { list } = yield* Fires;
  return (yield* list(world.projectId, { limit: 50, cursor: null, slug: null, status: null })).items;
});

const tooLarge: FirePrompt = { is: "too_large" };

const nightly = (scheduledFor: number, prompt = "tick") =>
  ({
    kind: "cron",
    triggerSlug: "nightly",
    scheduledFor,
    prompt: {
      is: "cron",
      template: { prompt, slug: "nightly", schedule: "0 0 0 * * *", timezone: "UTC", dueAtMs: scheduledFor },
    },
  }) as const;

export const checkBatches = (check: Check): void => {
  describe("deliveries of one id in one batch", () => {
    check(
      "that fail leave one row, which counts them [I4]",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const failing = { deliveryId: "d-1", prompt: tooLarge };
        const answers = yield* admit(world, [failing, failing]);
        expect(answers.map(({ outcome }) => outcome)).toEqual(["failed", "failed"]);
        expect(yield* rowsOf(world)).toMatchObject([{ status: "failed", attempts: 2 }]);
        expect(yield* admit(world, [{ deliveryId: "d-1" }])).toMatchObject([{ outcome: "admitted" }]);
        expect(yield* rowsOf(world)).toMatchObject([{ status: "fired", attempts: 3 }]);
      }),
    );
  });

  describe("a cron fire that waits", () => {
    check(
      "gives its place in the queue to a later instant, so that a busy project never starves the trigger [I13]",
      Effect.gen(function* () {
        const world = yield* makeWorld(0);
        const { queue } = yield* Fires;
        const { account } = yield* Identity;
        const slugs = Effect.map(queue({ accountId: world.accountId, userId: null }), (waiting) =>
          waiting.map(({ triggerSlug }) => triggerSlug),
        );
        yield* admit(world, [nightly(NOON), { triggerSlug: "before" }]);
        yield* admit(world, [nightly(NOON + 1), { triggerSlug: "after" }, nightly(NOON + 2)]);
        expect(yield* slugs).toEqual(["nightly", "before", "after"]);
        expect((yield* account(world.accountId))?.queuedFires).toBe(3);
        yield* admit(world, [{ ...nightly(NOON), triggerSlug: "other" }, { triggerSlug: "last" }]);
        yield* admit(world, [{ ...nightly(NOON + 1), triggerSlug: "other" }]);
        expect(yield* slugs).toEqual(["nightly", "before", "after", "other", "last"]);
        const statuses = (yield* rowsOf(world)).map(({ status }) => status).toSorted();
        expect(statuses).toEqual([...Array(5).fill("queued"), ...Array(3).fill("skipped")]);
      }),
    );

    check(
      "starts with the newest instant's prompt [spec 6]",
      Effect.gen(function* () {
        const world = yield* makeWorld(0);
        const { prompt } = yield* Fires;
        const { setTier } = yield* Identity;
        const { drain } = yield* Admissions;
        yield* admit(world, [nightly(NOON)]);
        yield* admit(world, [nightly(NOON + 1000, "{{ cron.fired_at }}")]);
        yield* setTier(world.accountId, "free", 1);
        const { admitted } = yield* drain(world.accountId, {
          sessionIds: ["018f4d9c-0000-7000-8000-000000000001"],
          now: NOON + 5000,
          bootTimeoutMs: BOOT_MS,
        });
        expect(yield* prompt(admitted[0]?.fireId ?? "")).toBe(new Date(NOON + 1000).toISOString());
        yield* tellSession(admitted[0]?.sessionId ?? "", { type: "stop.requested" });
      }),
    );

    check(
      "also waits if its template contains a NUL, which no row can hold [P09]",
      Effect.gen(function* () {
        const world = yield* makeWorld(0);
        const answers = yield* admit(world, [{}, nightly(NOON, "a\0b")]);
        expect(answers.map(({ outcome }) => outcome)).toEqual(["queued", "queued"]);
      }),
    );
  });
};
