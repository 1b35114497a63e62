/** The images on which sandboxes boot while a base image has changed (services/environments/environments.ts W2). */
import { describe, it } from "@effect/vitest";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as TestClock from "effect/testing/TestClock";
import { expect } from "vitest";
import { buildImageName } from "../../../src/domain/environment/image.ts";
import { EnvironmentBases } from "../../../src/store/ports/projects/environment-bases.ts";
import { openEnvironments, REFRESH_MS } from "../../support/world/environments.ts";

const A = "images.example.com/a:1";
const DOCKERFILE = `FROM ${A}\n`;
const D1 = `sha256:${"1".repeat(64)}`;
const D2 = `sha256:${"2".repeat(64)}`;

/** A node with an image that was made from the first of two digests. */
const living = Effect.gen(function* () {
  const node = yield* openEnvironments();
  const life = yield* node.begin;
  node.site.tags.set(A, D1);
  const source = yield* node.commit(DOCKERFILE);
  const id = yield* life.built(source);
  /** The tag moves, and somebody looks it up. */
  const move = Effect.gen(function* () {
    node.site.tags.set(A, D2);
    yield* TestClock.adjust(1000);
    const now = yield* Clock.currentTimeMillis;
    const answer = { reference: A, digest: D2, now, dueAt: now + REFRESH_MS };
    yield* node.inPorts(Effect.flatMap(EnvironmentBases, ({ found }) => found(answer)));
  });
  return { ...node, ...life, source, id, move };
});

describe("an image whose base image has changed", () => {
  it.effect("is used, marked stale, until the build that the change began is ready", () =>
    Effect.gen(function* () {
      const { boot, count, id, ledger, move, newest, source, untilStatus } = yield* living;
      expect(yield* ledger.get(id)).toMatchObject({ bases: [{ reference: A, digest: D1 }] });
      const fresh = { buildId: id, isStale: false };
      expect(yield* boot(source)).toMatchObject({ image: buildImageName(id), environment: fresh });
      yield* move;
      const stale = { buildId: id, isStale: true };
      expect(yield* boot(source)).toMatchObject({ image: buildImageName(id), environment: stale });
      const next = yield* newest;
      expect(next).toMatchObject({ cause: "refresh", source: { key: source.key } });
      yield* untilStatus(next?.id ?? "", "ready");
      expect(yield* ledger.get(next?.id ?? "")).toMatchObject({ bases: [{ reference: A, digest: D2 }] });
      const environment = { buildId: next?.id, isStale: false };
      expect(yield* boot(source)).toMatchObject({ environment });
      expect(yield* count).toBe(2);
    }),
  );

  it.effect("stays in use if the build fails, which is not begun again by each boot", () =>
    Effect.gen(function* () {
      const { boot, count, id, move, newest, plan, source, untilStatus } = yield* living;
      plan({ failure: { code: "step_failed", step: 1, line: 1, exit: 1, tail: "" } });
      yield* move;
      const stale = { buildId: id, isStale: true };
      expect(yield* boot(source)).toMatchObject({ environment: stale });
      yield* untilStatus((yield* newest)?.id ?? "", "failed");
      expect(yield* boot(source)).toMatchObject({ image: buildImageName(id), environment: stale });
      expect(yield* count).toBe(2);
    }),
  );

  it.effect("is built again once for each change, without a session", () =>
    Effect.gen(function* () {
      const { count, environments, move, plan, source, untilStatus, world } = yield* living;
      const renew = environments.renew(world.projectId, source);
      expect(yield* renew).toBeNull();
      yield* move;
      plan({ stepsMs: 60_000 });
      const build = yield* renew;
      expect(build).toMatchObject({ cause: "refresh", requestedBy: null });
      expect(yield* renew).toBeNull();
      yield* untilStatus(build?.id ?? "", "building");
      yield* TestClock.adjust(60_000);
      yield* untilStatus(build?.id ?? "", "ready");
      expect(yield* renew).toBeNull();
      expect(yield* count).toBe(2);
    }),
  );
});
