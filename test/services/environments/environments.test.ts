/** What sandboxes boot on, and which builds that begins (services/environments/environments.ts W1 to W3). */
import { randomUUID } from "node:crypto";
import { describe, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as TestClock from "effect/testing/TestClock";
import { expect } from "vitest";
import { buildImageName } from "../../../src/domain/environment/image.ts";
import type { BuildFailure } from "../../../src/domain/environment/build-failure.ts";
import { TRIES_MAX } from "../../../src/features/environments/environment-build-actor.ts";
import { RETRY_PAUSE_MS } from "../../../src/services/environments/environments.ts";
import { BUILT, endedBuild } from "../../support/world/environment-builds.ts";
import { manifestOf, openEnvironments, REFRESH_MS } from "../../support/world/environments.ts";
import { answered, until } from "../../support/world/actors.ts";
import { NOON } from "../../support/world/world.ts";

/** Longer than all boots of a test that do not wait for it. */
const LONG_MS = 120_000;

const stepFailed: BuildFailure = {
  code: "step_failed",
  step: 2,
  line: 3,
  exit: 127,
  tail: `${Array.from({ length: 40 }, (_, index) => `line ${index + 1}`).join("\n")}\n`,
};
const timeout: BuildFailure = { code: "timeout", seconds: 60 };

/** A node with a project, in its first life. */
const living = Effect.gen(function* () {
  const node = yield* openEnvironments();
  return { ...node, ...(yield* node.begin) };
});

describe("a sandbox of a project without a Dockerfile", () => {
  it.effect("boots on the node's own files, also before its manifest was read", () =>
    Effect.gen(function* () {
      const { booting, boot, count, site } = yield* living;
      expect(yield* boot(null)).toEqual({ image: null, message: null, environment: null });
      const { fiber } = yield* booting(null);
      expect(yield* Fiber.join(fiber)).toMatchObject({ success: { image: null, variables: {} } });
      expect([yield* count, site.images.size]).toEqual([0, 0]);
    }),
  );

  it.effect.each(["[environment]", String.raw`["\u0065nvironment"]`])(
    "boots on the operator's image that the manifest names in %s",
    (table) =>
      Effect.gen(function* () {
        const { booting, count } = yield* living;
        const manifest = manifestOf(null, `${table}\nimage = "node-tools"\n`);
        const { fiber, record } = yield* booting(manifest);
        expect(yield* Fiber.join(fiber)).toMatchObject({ success: { image: "node-tools" } });
        expect(yield* record).toMatchObject({ image: "node-tools", environment: null });
        expect(yield* count).toBe(0);
      }),
  );
});

describe("a sandbox of a project with a Dockerfile", () => {
  it.effect("boots on the node's own files if nothing is built there, and only then", () =>
    Effect.gen(function* () {
      const { begin, commit, count, world } = yield* openEnvironments({ builds: false });
      const { boot, environments } = yield* begin;
      const source = yield* commit("one");
      yield* environments.prepare(world.projectId, manifestOf(source));
      expect(environments.builder).toBe(null);
      expect(yield* boot(source)).toEqual({ image: null, message: null, environment: null });
      expect(yield* count).toBe(0);
    }),
  );

  it.effect("waits for its project's first build, which all boots share", () =>
    Effect.gen(function* () {
      const { booting, commit, count, newest, plan, untilStatus, uses } = yield* living;
      plan({ stepsMs: LONG_MS });
      const manifest = manifestOf(yield* commit("one"));
      const boots = [yield* booting(manifest), yield* booting(manifest)];
      const build = yield* newest;
      const id = build?.id ?? "";
      expect(build).toMatchObject({
        cause: "session",
        requestedBy: null,
        nodeId: "node-1",
        source: { key: "one" },
      });
      yield* untilStatus(id, "building");
      for (const { fiber, noted } of boots) {
        expect(yield* noted).toEqual({ buildId: id, isStale: false });
        expect(fiber.pollUnsafe()).toBe(undefined);
      }
      expect(uses).toEqual([]);
      yield* TestClock.adjust(LONG_MS);
      for (const { fiber, noted } of boots) {
        expect(yield* answered(Fiber.join(fiber))).toMatchObject({ success: { image: buildImageName(id) } });
        expect(yield* noted).toEqual({ buildId: id, isStale: false });
      }
      expect([yield* count, uses]).toEqual([1, [id, id]]);
    }),
  );

  it.effect("does not wait for a later build: it takes the newest image, marked stale", () =>
    Effect.gen(function* () {
      const { boot, built, commit, count, newest, plan, untilStatus, uses } = yield* living;
      yield* built(yield* commit("one"));
      // The second image is made before a sandbox needs it.
      const second = yield* commit("two");
      plan({ stepsMs: 1000 });
      expect(yield* boot(second)).toMatchObject({ environment: { isStale: true } });
      const id = (yield* newest)?.id ?? "";
      yield* untilStatus(id, "ready");
      plan({ stepsMs: LONG_MS });
      const third = yield* commit("three");
      const stale = { image: buildImageName(id), message: null, environment: { buildId: id, isStale: true } };
      expect(yield* boot(third)).toEqual(stale);
      expect(yield* boot(third)).toEqual(stale);
      const build = yield* newest;
      expect(build).toMatchObject({ cause: "session", source: { key: "three" }, endedAt: null });
      expect([yield* count, uses.slice(-2)]).toEqual([3, [id, id]]);
      yield* TestClock.adjust(LONG_MS);
      yield* untilStatus(build?.id ?? "", "ready");
      const environment = { buildId: build?.id, isStale: false };
      expect(yield* boot(third)).toEqual({
        image: buildImageName(build?.id ?? ""),
        message: null,
        environment,
      });
      // The former Dockerfile comes back: its image is still there.
      const fresh = { ...stale, environment: { buildId: id, isStale: false } };
      expect(yield* boot(second)).toEqual(fresh);
      expect(yield* count).toBe(3);
    }),
  );

  it.effect("keeps its project's last image while a changed Dockerfile cannot be built", () =>
    Effect.gen(function* () {
      const { boot, built, commit, count, newest, plan, untilStatus } = yield* living;
      const id = yield* built(yield* commit("one"));
      plan({ failure: stepFailed });
      const source = yield* commit("two");
      const stale = { image: buildImageName(id), message: null, environment: { buildId: id, isStale: true } };
      expect(yield* boot(source)).toEqual(stale);
      yield* untilStatus((yield* newest)?.id ?? "", "failed");
      yield* TestClock.adjust(REFRESH_MS * 2);
      expect(yield* boot(source)).toEqual(stale);
      expect(yield* count).toBe(2);
      plan({ failure: timeout });
      const other = yield* commit("three");
      expect(yield* boot(other)).toEqual(stale);
      yield* untilStatus((yield* newest)?.id ?? "", "failed");
      expect(yield* boot(other)).toEqual(stale);
      expect(yield* count).toBe(3);
      yield* TestClock.adjust(RETRY_PAUSE_MS + 1);
      expect(yield* boot(other)).toEqual(stale);
      expect(yield* count).toBe(4);
    }),
  );

  it.effect("uses images of its own node only", () =>
    Effect.gen(function* () {
      const { booting, built, commit, inPorts, newest, site, uses, world } = yield* living;
      const source = yield* commit("one");
      const here = yield* built(source);
      const fields = { nodeId: "node-2", source };
      const there = yield* inPorts(endedBuild(world.projectId, BUILT, { ...fields, now: NOON + LONG_MS }));
      const { fiber, noted } = yield* booting(manifestOf(source), "node-2");
      // This node's disk has no image of that build, and is not asked for it.
      expect(site.images.has(there)).toBe(false);
      expect(yield* Fiber.join(fiber)).toMatchObject({ success: { image: buildImageName(there) } });
      expect(yield* noted).toEqual({ buildId: there, isStale: false });
      expect([(yield* newest)?.id, uses]).toEqual([there, [here]]);
      const own = yield* booting(manifestOf(source));
      expect(yield* Fiber.join(own.fiber)).toMatchObject({ success: { image: buildImageName(here) } });
    }),
  );
});

describe("a sandbox of a project with a devcontainer.json", () => {
  const said = { path: "p", image: null, variables: { A: "1" }, commands: [], setup: null, ignored: [] };

  it.effect("gets the variables of the manifest in force, also on an older image", () =>
    Effect.gen(function* () {
      const { booting, built, commit, plan } = yield* living;
      const source = yield* commit("one");
      const id = yield* built({ ...source, devcontainer: said });
      const image = buildImageName(id);
      const boot = Effect.fnUntraced(function* (key: string, A: string) {
        const devcontainer = { ...said, variables: { A } };
        const { fiber, noted } = yield* booting(manifestOf({ ...source, key, devcontainer }));
        return { result: yield* answered(Fiber.join(fiber)), noted: yield* noted };
      });
      expect(yield* boot("one", "2")).toMatchObject({
        result: { success: { image, variables: { A: "2" } } },
        noted: { buildId: id, isStale: false },
      });
      plan({ stepsMs: LONG_MS });
      expect(yield* boot("two", "3")).toMatchObject({
        result: { success: { image, variables: { A: "3" } } },
        noted: { buildId: id, isStale: true },
      });
    }),
  );

  it.effect("gets them on the node's own files, too, if nothing is built there", () =>
    Effect.gen(function* () {
      const { begin, commit } = yield* openEnvironments({ builds: false });
      const { booting } = yield* begin;
      const source = yield* commit("one");
      const { fiber } = yield* booting(manifestOf({ ...source, devcontainer: said }));
      expect(yield* Fiber.join(fiber)).toMatchObject({ success: { image: null, variables: { A: "1" } } });
    }),
  );
});

describe("a build that failed", () => {
  it.effect("ends the boots that wait for it, with the reason and the end of the step's output", () =>
    Effect.gen(function* () {
      const { boot, commit, count, newest, plan, uses } = yield* living;
      plan({ failure: stepFailed, stepsMs: 5000 });
      const source = yield* commit("one");
      const lines = Array.from({ length: 12 }, (_, index) => `line ${index + 29}`).join("\n");
      const message =
        "The project's environment could not be built: step 2 on line 3 failed with exit code 127. " +
        `The end of its output:\n${lines}`;
      const failed = yield* boot(source);
      const environment = { buildId: (yield* newest)?.id, isStale: false };
      expect(failed).toEqual({ image: null, message, environment });
      // The same files would fail again: only people begin the next build.
      yield* TestClock.adjust(REFRESH_MS * 2);
      expect(yield* boot(source)).toEqual(failed);
      expect([yield* count, uses]).toEqual([1, []]);
    }),
  );

  it.effect("is followed by the next one of a boot if its failure may pass, after a minute", () =>
    Effect.gen(function* () {
      for (const failure of [
        timeout,
        { code: "base_unavailable", reference: "debian:13", line: 1, tail: "no route to host\n" },
        { code: "builder_unavailable", problem: "install buildah" },
      ] as const) {
        const { boot, commit, count, newest, plan } = yield* living;
        plan({ failure });
        const source = yield* commit("one");
        const { message } = yield* boot(source);
        const endedAt = (yield* newest)?.endedAt ?? 0;
        expect(yield* boot(source)).toMatchObject({ message });
        yield* TestClock.setTime(endedAt + RETRY_PAUSE_MS);
        expect(yield* boot(source)).toMatchObject({ image: null, message });
        expect(yield* count).toBe(1);
        plan({});
        yield* TestClock.setTime(endedAt + RETRY_PAUSE_MS + 1);
        const { image } = yield* boot(source);
        const next = yield* newest;
        expect(next).toMatchObject({ status: "ready", cause: "session" });
        expect([yield* count, image]).toEqual([2, buildImageName(next?.id ?? "")]);
      }
    }),
  );

  it.effect("is followed by the one that somebody asks for, and boots wait for that", () =>
    Effect.gen(function* () {
      const { boot, commit, environments, plan, world } = yield* living;
      const { projectId, userId } = world;
      plan({ failure: stepFailed });
      const source = yield* commit("one");
      expect((yield* boot(source)).message).not.toBe(null);
      plan({ stepsMs: 5000 });
      const asked = { cause: "asked", requestedBy: userId } as const;
      const build = yield* environments.begin(projectId, source, asked);
      expect(build).toMatchObject({ ...asked, status: "queued", nodeId: "node-1" });
      expect(yield* environments.begin(projectId, source, asked)).toMatchObject({ id: build?.id });
      expect(yield* boot(source)).toMatchObject({
        environment: { buildId: build?.id, isStale: false },
        message: null,
      });
      expect(yield* environments.begin(randomUUID(), source, asked)).toBe(null);
    }),
  );

  it.effect("says so if it was cancelled while a boot waited", () =>
    Effect.gen(function* () {
      const { actors, booting, commit, newest, plan, site, untilStatus } = yield* living;
      plan({ stepsMs: LONG_MS });
      const { fiber } = yield* booting(manifestOf(yield* commit("one")));
      const id = (yield* newest)?.id ?? "";
      yield* untilStatus(id, "building");
      yield* answered(actors.environmentBuild(id, { type: "cancel.requested" }));
      const message = "The project's environment could not be built: the build was cancelled.";
      expect(yield* answered(Fiber.join(fiber))).toMatchObject({ failure: { message } });
      yield* until(Effect.sync(() => site.running.size === 0));
      expect(site.images.size).toBe(0);
    }),
  );

  it.effect("is one during which the service ended too often", () =>
    Effect.gen(function* () {
      const { begin, commit, ledger, newest, plan, untilStatus } = yield* openEnvironments();
      plan({ stepsMs: LONG_MS });
      const source = yield* commit("one");
      const first = yield* begin;
      yield* first.booting(manifestOf(source));
      const id = (yield* newest)?.id ?? "";
      yield* untilStatus(id, "building");
      yield* first.end;
      for (let tries = 2; tries <= TRIES_MAX; tries += 1) {
        const next = yield* begin;
        yield* next.actors.wake("environmentBuild", id);
        yield* until(Effect.map(ledger.get(id), (row) => row?.tries === tries && row.status === "building"));
        yield* next.end;
      }
      const last = yield* begin;
      yield* last.actors.wake("environmentBuild", id);
      const { message } = yield* last.boot(source);
      expect(message).toMatch(/the service ended 3 times during the build\.$/);
      expect(yield* ledger.get(id)).toMatchObject({ failure: { code: "interrupted", times: TRIES_MAX } });
    }),
  );
});

describe("a new manifest", () => {
  it.effect("begins the build of its Dockerfile, unless a node has built it before", () =>
    Effect.gen(function* () {
      const { boot, commit, count, environments, ledger, newest, plan, untilStatus, world } = yield* living;
      const prepare = (source: Parameters<typeof manifestOf>[0]) =>
        environments.prepare(world.projectId, manifestOf(source));
      yield* prepare(null);
      expect(yield* count).toBe(0);
      const source = yield* commit("one");
      yield* prepare(source);
      yield* prepare({ ...source, commit: "d".repeat(40) });
      const build = yield* newest;
      expect(build).toMatchObject({ cause: "manifest", requestedBy: null, source, nodeId: "node-1" });
      yield* untilStatus(build?.id ?? "", "ready");
      expect(yield* boot(source)).toMatchObject({ environment: { buildId: build?.id, isStale: false } });
      plan({ failure: timeout });
      const second = yield* commit("two");
      yield* prepare(second);
      yield* untilStatus((yield* newest)?.id ?? "", "failed");
      yield* TestClock.adjust(REFRESH_MS * 2);
      yield* prepare(second);
      yield* prepare(source);
      expect(yield* count).toBe(2);
      const elsewhere = yield* commit("three");
      const { projectId } = world;
      const asked = { cause: "manifest", requestedBy: null, now: 0 } as const;
      yield* ledger.open({ id: randomUUID(), projectId, nodeId: "node-2", source: elsewhere, ...asked });
      yield* prepare(elsewhere);
      expect(yield* count).toBe(3);
    }),
  );
});
