/** Images of builds that were removed, or that are old, and the sandboxes that boot on them (services/environments/environments.ts W1, W2). */
import { describe, it } from "@effect/vitest";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as TestClock from "effect/testing/TestClock";
import { expect } from "vitest";
import { buildImageName } from "../../../src/domain/environment/image.ts";
import type { BuildFailure } from "../../../src/domain/environment/build-failure.ts";
import { openEnvironments, REFRESH_MS } from "../../support/world/environments.ts";

/** Longer than all boots of a test that do not wait for it. */
const LONG_MS = 120_000;

const stepFailed: BuildFailure = { code: "step_failed", step: 2, line: 3, exit: 127, tail: "not found\n" };
const timeout: BuildFailure = { code: "timeout", seconds: 60 };

/** A node with a project, in its first life. */
const living = Effect.gen(function* () {
  const node = yield* openEnvironments();
  return { ...node, ...(yield* node.begin) };
});

describe("an image that is not on the disk any more", () => {
  it.effect("is built again, and the boot waits for it", () =>
    Effect.gen(function* () {
      const { boot, built, commit, count, ledger, plan, site, world } = yield* living;
      const source = yield* commit("one");
      const lost = yield* built(source);
      site.images.delete(lost);
      plan({ stepsMs: 5000 });
      const { image, environment } = yield* boot(source);
      expect(environment).toEqual({ buildId: expect.any(String) as string, isStale: false });
      expect(environment?.buildId).not.toBe(lost);
      expect(image).toBe(buildImageName(environment?.buildId ?? ""));
      const ready = yield* ledger.ready({ projectId: world.projectId, nodeId: "node-1", limit: 10 });
      expect(ready.map(({ id }) => id)).toEqual([environment?.buildId]);
      expect(yield* count).toBe(2);
    }),
  );

  it.effect("is replaced by an older one of the project, marked stale, until it is built again", () =>
    Effect.gen(function* () {
      const { boot, built, commit, newest, plan, site, untilStatus } = yield* living;
      const older = yield* built(yield* commit("one"));
      const source = yield* commit("two");
      yield* boot(source);
      const lost = (yield* newest)?.id ?? "";
      yield* untilStatus(lost, "ready");
      expect(yield* boot(source)).toMatchObject({ environment: { buildId: lost, isStale: false } });
      site.images.delete(lost);
      plan({ stepsMs: LONG_MS });
      expect(yield* boot(source)).toMatchObject({ environment: { buildId: older, isStale: true } });
      const again = yield* newest;
      expect(again).toMatchObject({ source: { key: "two" }, endedAt: null });
      expect(again?.id).not.toBe(lost);
    }),
  );

  it.effect("fails the boot, with the reason, if it cannot be built again", () =>
    Effect.gen(function* () {
      const { boot, built, commit, plan, site } = yield* living;
      const source = yield* commit("one");
      site.images.delete(yield* built(source));
      plan({ failure: stepFailed });
      const failed = yield* boot(source);
      expect(failed).toMatchObject({ image: null, environment: { isStale: false } });
      expect(failed.message).toMatch(/exit code 127/);
    }),
  );
});

describe("an image whose base images may be old", () => {
  it.effect("is built again with newer ones, and no boot waits for that", () =>
    Effect.gen(function* () {
      const { boot, built, commit, count, newest, site, untilStatus } = yield* living;
      const pulls: string[] = [];
      site.plan = ({ pull }) => {
        pulls.push(pull);
        return { stepsMs: pull === "newer" ? LONG_MS : 0, exportMs: 0, failure: null };
      };
      const source = yield* commit("one");
      const id = yield* built(source);
      const used = { image: buildImageName(id), message: null, environment: { buildId: id, isStale: false } };
      const { createdAt = 0 } = (yield* newest) ?? {};
      yield* TestClock.setTime(createdAt + REFRESH_MS);
      expect(yield* boot(source)).toEqual(used);
      expect(yield* count).toBe(1);
      yield* TestClock.setTime(createdAt + REFRESH_MS + 1);
      for (let boots = 0; boots < 3; boots += 1) expect(yield* boot(source)).toEqual(used);
      const refresh = yield* newest;
      const refreshed = refresh?.id ?? "";
      expect(refresh).toMatchObject({ cause: "refresh", requestedBy: null, source, endedAt: null });
      yield* untilStatus(refreshed, "building");
      expect([yield* count, pulls]).toEqual([2, ["missing", "newer"]]);
      yield* TestClock.adjust(LONG_MS);
      yield* untilStatus(refreshed, "ready");
      const environment = { buildId: refreshed, isStale: false };
      expect(yield* boot(source)).toEqual({ ...used, image: buildImageName(refreshed), environment });
      expect(yield* count).toBe(2);
    }),
  );

  it.effect("stays in use if the newer one cannot be built, and is tried again when it is old again", () =>
    Effect.gen(function* () {
      const { boot, built, commit, count, newest, plan, untilStatus } = yield* living;
      const source = yield* commit("one");
      const id = yield* built(source);
      const used = { image: buildImageName(id), environment: { buildId: id, isStale: false } };
      plan({ failure: timeout });
      for (const builds of [2, 3]) {
        yield* TestClock.setTime((yield* Clock.currentTimeMillis) + REFRESH_MS + LONG_MS);
        expect(yield* boot(source)).toMatchObject(used);
        yield* untilStatus((yield* newest)?.id ?? "", "failed");
        expect(yield* boot(source)).toMatchObject(used);
        expect(yield* count).toBe(builds);
      }
    }),
  );
});
