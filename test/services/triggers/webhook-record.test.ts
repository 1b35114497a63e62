/** The record of refused webhooks: bounded in memory and in writes, and late rather than lost while the database is away. */
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Ref from "effect/Ref";
import { TestClock } from "effect/testing";
import { describe, expect } from "vitest";
import { Directory, directoryLayer } from "../../../src/services/directory.ts";
import { keyringLayer } from "../../../src/services/keyring.ts";
import {
  WebhookRecord,
  webhookRecordLayer,
  type NewRefusal,
} from "../../../src/services/triggers/webhook-record.ts";
import { StoreError } from "../../../src/store/ports/journal.ts";
import { memoryStore } from "../../twins/store/layer.ts";
import { WebhookRefusals } from "../../../src/store/ports/triggers/webhook-refusals.ts";
import { addProject, makeWorld } from "../../support/world/world.ts";

const refusal = (projectId: string, slug = "push"): NewRefusal => ({
  projectId,
  slug,
  status: 404,
  code: "not_found",
  reason: "unknown_trigger",
  deliveryId: null,
  event: null,
  declaredBytes: 2,
  bodyBytes: null,
  address: "::1",
  forwardedFor: null,
});

/** How often rows were added, and whether the database can be reached. */
const state = Effect.gen(function* () {
  return { writes: yield* Ref.make(0), isAway: yield* Ref.make(false) };
});
type State = Effect.Success<typeof state>;

const overStore = ({ writes, isAway }: State) => {
  const refusals = Layer.effect(
    WebhookRefusals,
    Effect.map(WebhookRefusals, (store) =>
      WebhookRefusals.of({
        ...store,
        add: Effect.fnUntraced(function* (rows) {
          if (yield* Ref.get(isAway))
            return yield* new StoreError({ operation: "add", cause: new Error("away") });
          yield* Ref.update(writes, (count) => count + 1);
          return yield* store.add(rows);
        }),
      }),
    ),
  );
  return webhookRecordLayer.pipe(
    Layer.provideMerge(refusals),
    Layer.provideMerge(directoryLayer),
    Layer.provideMerge(memoryStore),
    Layer.provideMerge(keyringLayer({ current: { version: 1, bytes: new Uint8Array(32) }, former: [] })),
  );
};

const begin = Effect.gen(function* () {
  const world = yield* makeWorld(1);
  yield* (yield* Directory).refresh(world.projectId);
  const record = yield* WebhookRecord;
  const refusals = yield* WebhookRefusals;
  const slugs = Effect.map(refusals.list(world.projectId, { limit: 1000, cursor: null }), ({ items }) =>
    items.map(({ slug }) => slug),
  );
  return { world, record, slugs };
});

const check = (
  name: string,
  test: (state: State) => Effect.Effect<void, unknown, Layer.Success<ReturnType<typeof overStore>>>,
) => {
  it.effect(name, () =>
    Effect.flatMap(state, (own) => Effect.provide(test(own), overStore(own), { local: true })),
  );
};

describe("the record of refused webhooks", () => {
  check("writes 20 of a project at once, drops and counts the rest [W38]", ({ writes }) =>
    Effect.gen(function* () {
      const { world, record, slugs } = yield* begin;
      for (let n = 0; n < 10_000; n += 1) record.refused(refusal(world.projectId, `s-${n}`));
      expect(yield* slugs).toEqual([]);
      yield* TestClock.adjust("1 second");
      expect(yield* slugs).toHaveLength(20);
      expect(record.counts().dropped).toBe(9_980);
      yield* TestClock.adjust("1 minute");
      expect(yield* Ref.get(writes)).toBe(1);
      record.refused(refusal(world.projectId, "after"));
      yield* TestClock.adjust("1 second");
      expect(yield* slugs).toContain("after");
    }),
  );

  check("writes 200 in total at once, however many projects exist [W38]", ({ writes }) =>
    Effect.gen(function* () {
      const { world, record } = yield* begin;
      const directory = yield* Directory;
      for (let n = 0; n < 30; n += 1) {
        const id = yield* addProject(world);
        yield* directory.refresh(id);
        for (let sent = 0; sent < 20; sent += 1) record.refused(refusal(id));
      }
      yield* TestClock.adjust("1 second");
      expect(record.counts().dropped).toBe(400);
      expect(yield* Ref.get(writes)).toBe(1);
    }),
  );

  check("stores nothing for an unknown project", ({ writes }) =>
    Effect.gen(function* () {
      const { record } = yield* begin;
      for (let n = 0; n < 1_000; n += 1)
        record.refused(refusal(`00000000-0000-7000-8000-${String(n).padStart(12, "0")}`));
      yield* TestClock.adjust("1 minute");
      expect(record.counts().dropped).toBe(0);
      expect(yield* Ref.get(writes)).toBe(0);
    }),
  );

  check("writes later the records that the database refused, within the same limits", ({ isAway }) =>
    Effect.gen(function* () {
      const { world, record, slugs } = yield* begin;
      yield* Ref.set(isAway, true);
      for (let n = 0; n < 15; n += 1) record.refused(refusal(world.projectId, `early-${n}`));
      yield* TestClock.adjust("2 seconds");
      for (let n = 0; n < 15; n += 1) record.refused(refusal(world.projectId, `late-${n}`));
      yield* TestClock.adjust("1 minute");
      expect(yield* slugs).toEqual([]);
      yield* Ref.set(isAway, false);
      yield* TestClock.adjust("10 seconds");
      expect(yield* slugs).toHaveLength(20);
      expect(record.counts().dropped).toBe(10);
    }),
  );

  check("counts answers by status and code", () =>
    Effect.gen(function* () {
      const { record } = yield* begin;
      record.answered(202, "fired");
      record.answered(404, "not_found");
      record.answered(202, "fired");
      expect(record.counts().answers).toEqual([
        { status: 202, answer: "fired", count: 2 },
        { status: 404, answer: "not_found", count: 1 },
      ]);
    }),
  );
});
