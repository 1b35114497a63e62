/** Cron triggers from manifest to session, on every port's twin and a test clock (spec 6 "Cron fires"). */
import { assert, describe, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { Fires } from "../../../src/store/ports/triggers/fires.ts";
import { Projects } from "../../../src/store/ports/projects/projects.ts";
import { Sessions } from "../../../src/store/ports/sessions/sessions.ts";
import {
  PROJECT,
  everything,
  fired,
  manifest,
  overService,
  projectWith,
  push,
  rows,
} from "../../support/world/service.ts";
import { advance } from "../../support/world/clock.ts";

describe("a cron trigger", () => {
  it.effect("fires each due instant once, with its instant and the previous one in the prompt [C13]", () =>
    Effect.gen(function* () {
      yield* projectWith(manifest("0 * * * * *"));
      yield* advance(150);
      assert.deepStrictEqual(yield* fired, [60, 120]);
      const { items } = yield* (yield* Sessions).list(PROJECT, everything);
      assert.deepStrictEqual(items.map(({ initialPrompt }) => initialPrompt).toReversed(), [
        "at 1970-01-01T00:01:00.000Z, before ",
        "at 1970-01-01T00:02:00.000Z, before 1970-01-01T00:01:00.000Z",
      ]);
      assert.deepStrictEqual([...new Set(items.map(({ origin }) => origin))], ["trigger"]);
    }).pipe(overService),
  );

  it.effect("continues to fire after it left memory between its instants", () =>
    Effect.gen(function* () {
      // Idle actors leave memory after a minute; this one is due every three.
      yield* projectWith(manifest("0 */3 * * * *"));
      yield* advance(10 * 60);
      assert.deepStrictEqual(yield* fired, [180, 360, 540]);
    }).pipe(overService),
  );

  it.effect("fires several instants within one poll exactly when they are due", () =>
    Effect.gen(function* () {
      yield* projectWith(manifest("*/15 * * * * *"));
      yield* advance(46);
      assert.deepStrictEqual(yield* fired, [15, 30, 45]);
    }).pipe(overService),
  );

  it.effect("follows a changed schedule at once and fires no instant twice [C17]", () =>
    Effect.gen(function* () {
      yield* projectWith(manifest("0 * * * * *"));
      yield* advance(61);
      yield* push(manifest("30 * * * * *"));
      yield* advance(100);
      assert.deepStrictEqual(yield* fired, [60, 90, 150]);
    }).pipe(overService),
  );

  for (const [name, text] of [
    ["is disabled", manifest("0 * * * * *", "enabled = false")],
    ["is removed", ""],
    [
      "has become a webhook [M21]",
      manifest("0 * * * * *").replace(/type = .*\ncron = .*/, 'type = "webhook"\nsecret_env = "S"'),
    ],
  ] as const) {
    it.effect(`stops at once when it ${name}`, () =>
      Effect.gen(function* () {
        yield* projectWith(manifest("0 * * * * *"));
        yield* advance(61);
        yield* push(text);
        yield* advance(300);
        assert.deepStrictEqual(yield* fired, [60]);
      }).pipe(overService),
    );
  }

  it.effect(
    "of a paused project gets a row with that reason for each due instant, and fires again after the pause",
    () =>
      Effect.gen(function* () {
        yield* projectWith(manifest("0 * * * * *"));
        yield* (yield* Projects).update(PROJECT, { triggersPaused: true }, 0);
        yield* advance(150);
        yield* (yield* Projects).update(PROJECT, { triggersPaused: false }, 0);
        yield* advance(60);
        assert.deepStrictEqual(yield* rows, [
          [60, "skipped", "paused"],
          [120, "skipped", "paused"],
          [180, "fired", null],
        ]);
      }).pipe(overService),
  );

  for (const [name, away, back] of [
    ["disabled and enabled again", manifest("0 * * * * *", "enabled = false"), manifest("0 * * * * *")],
    ["renamed and back [M20]", manifest("0 * * * * *").replace("tick", "tock"), manifest("0 * * * * *")],
  ] as const) {
    it.effect(`counts from the present again after it was ${name}`, () =>
      Effect.gen(function* () {
        yield* projectWith(manifest("0 * * * * *"));
        yield* advance(61);
        yield* push(away);
        yield* advance(300);
        yield* push(back);
        yield* advance(60);
        const { items } = yield* (yield* Fires).list(PROJECT, { ...everything, slug: "tick" });
        assert.deepStrictEqual(
          items.map(({ scheduledFor, status }) => [(scheduledFor ?? 0) / 1000, status]).toReversed(),
          [
            [60, "fired"],
            [420, "fired"],
          ],
        );
      }).pipe(overService),
    );
  }

  it.effect("counts from the present again if its project was archived meanwhile", () =>
    Effect.gen(function* () {
      yield* projectWith(manifest("0 * * * * *"));
      yield* advance(61);
      yield* (yield* Projects).update(PROJECT, { status: "archived" }, 0);
      yield* advance(300);
      yield* (yield* Projects).update(PROJECT, { status: "active" }, 0);
      yield* advance(60);
      assert.deepStrictEqual(yield* rows, [
        [60, "fired", null],
        [420, "fired", null],
      ]);
    }).pipe(overService),
  );
});
