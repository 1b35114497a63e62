import { it } from "@effect/vitest";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as TestClock from "effect/testing/TestClock";
import { describe, expect } from "vitest";
import { GitError } from "../../src/git/port.ts";
import { Pause, PauseSwitch } from "../../src/ground/pause.ts";
import { Events } from "../../src/store/ports/events.ts";
import { admitSession } from "../support/world/sessions.ts";
import { BOOT_MS, NOON } from "../support/world/world.ts";
import { answered, CREATE_MS, openActorsWorld, READY, STARTING, until } from "../support/world/actors.ts";

/** A session that was admitted and woken. */
const begun = Effect.gen(function* () {
  const world = yield* openActorsWorld();
  const { actors, end } = yield* world.begin;
  const id = yield* world.admit;
  yield* actors.wake("session", id);
  return { ...world, actors, end, id };
});

const HOUR_MS = 3_600_000;
const STOP = { type: "stop.requested" } as const;

const paused = (since: number) => Effect.provideService(Pause, Object.assign(new PauseSwitch(), { since }));

describe("a session's actors", () => {
  it.effect("take it from creation to running, on its own branch", () =>
    Effect.gen(function* () {
      const { id, untilSession, newestSandbox, running, session, inPorts, world } = yield* begun;
      const events = yield* Events.pipe(inPorts);
      const { cursor } = yield* events.after({
        projectId: world.projectId,
        sessionId: id,
        cursor: null,
        limit: 10,
      });
      yield* untilSession(id, "running");
      const sandbox = yield* newestSandbox(id);
      expect(sandbox).toMatchObject({ status: "active", provider: "simulated", nodeId: "node-1" });
      expect(yield* running).toEqual([sandbox?.id]);
      const row = yield* session(id);
      expect(row?.sandboxId).toBe(sandbox?.id);
      expect(row?.baseCommit).toMatch(/^[0-9a-f]{40}$/);
      expect(row?.bootstrapAcceptedAt).not.toBeNull();
      const after = yield* events.after({ projectId: world.projectId, sessionId: id, cursor, limit: 10 });
      expect(after.events.map(({ type }) => type)).toEqual([
        "sandbox.status",
        "sandbox.boot_started",
        "sandbox.status",
        "session.status",
      ]);
    }),
  );

  it.effect("ask its daemon until the agent has its prompt, and no longer", () =>
    Effect.gen(function* () {
      const world = yield* openActorsWorld();
      const { actors } = yield* world.begin;
      const id = yield* world.admit;
      let asked = 0;
      let state: "pending" | "done" = "pending";
      Object.defineProperty(world.script, "health", {
        get: () => {
          asked += 1;
          return { ...READY, bootstrap: { state } };
        },
      });
      yield* actors.wake("session", id);
      yield* world.untilSession(id, "running");
      yield* TestClock.adjust("10 seconds");
      expect((yield* world.session(id))?.bootstrapAcceptedAt).toBeNull();
      state = "done";
      yield* TestClock.adjust("2 seconds");
      expect((yield* world.session(id))?.bootstrapAcceptedAt).not.toBeNull();
      const before = asked;
      yield* TestClock.adjust("1 hour");
      expect(asked).toBe(before);
    }),
  );

  it.effect("fail it with the reason when its branch cannot be created, and start no sandbox", () =>
    Effect.gen(function* () {
      const world = yield* openActorsWorld();
      const { actors } = yield* world.begin;
      const id = yield* world.inPorts(admitSession(world.world, { baseRef: "gone" }));
      yield* actors.wake("session", id);
      yield* world.untilSession(id, "failed");
      expect((yield* world.session(id))?.failure).toMatchObject({
        code: "branch_failed",
        message: expect.stringContaining("gone"),
      });
      expect(yield* world.newestSandbox(id)).toBeNull();
    }),
  );

  it.effect("do not start in a restored copy what was starting when the backup was made", () =>
    Effect.gen(function* () {
      const { id, untilSession, session, newestSandbox } = yield* begun;
      yield* untilSession(id, "failed");
      expect((yield* session(id))?.failure).toMatchObject({ code: "sandbox_lost" });
      expect(yield* newestSandbox(id)).toBeNull();
    }).pipe(paused(NOON + 1)),
  );

  it.effect("start in a restored copy what a person begins there", () =>
    Effect.gen(function* () {
      const { id, untilSession } = yield* begun;
      yield* untilSession(id, "running");
    }).pipe(paused(NOON)),
  );

  it.effect("do not go on in a restored copy with a boot that the original began", () =>
    Effect.gen(function* () {
      const { id, end, begin, script, untilSandbox, untilSession, session, running } = yield* begun;
      script.health = STARTING;
      yield* untilSandbox(id, "provisioning");
      yield* end;
      yield* Effect.gen(function* () {
        yield* begin;
        yield* untilSession(id, "failed");
        expect((yield* session(id))?.failure).toMatchObject({ code: "sandbox_lost" });
        yield* until(Effect.map(running, (ids) => ids.length === 0));
      }).pipe(paused(NOON + HOUR_MS));
    }),
  );

  it.effect(
    "fail it at the boot deadline when its daemon never becomes ready, and destroy the sandbox [R06]",
    () =>
      Effect.gen(function* () {
        const { id, script, untilSession, session, running, newestSandbox } = yield* begun;
        script.health = { ...STARTING, repo: { ...STARTING.repo, ready: true } };
        yield* untilSession(id, "failed");
        expect((yield* session(id))?.failure).toMatchObject({ code: "boot_timeout" });
        expect(yield* newestSandbox(id)).toMatchObject({
          status: "error",
          failure: { code: "boot_timeout" },
        });
        yield* until(Effect.map(running, (ids) => ids.length === 0));
      }),
  );

  it.effect(
    "fail a hanging boot in time, even if the clock was set back while the service was down [C14]",
    () =>
      Effect.gen(function* () {
        const { id, end, begin, script, untilSandbox, untilSession, session } = yield* begun;
        script.health = STARTING;
        yield* untilSandbox(id, "provisioning");
        yield* end;
        yield* TestClock.setTime(NOON - HOUR_MS);
        yield* begin;
        yield* TestClock.adjust(BOOT_MS + CREATE_MS);
        yield* untilSession(id, "failed");
        expect((yield* session(id))?.failure).toMatchObject({ code: "boot_timeout" });
      }),
  );

  it.effect(
    "fail it at the boot deadline when the provider says running and no daemon can be reached [R06]",
    () =>
      Effect.gen(function* () {
        const { id, script, untilSession, session, running } = yield* begun;
        script.health = null;
        yield* untilSession(id, "failed");
        expect((yield* session(id))?.failure).toMatchObject({
          code: "boot_timeout",
          message: "the boot deadline passed before the daemon answered",
        });
        yield* until(Effect.map(running, (ids) => ids.length === 0));
      }),
  );

  it.effect("fail it with the provider's words when no sandbox can be created", () =>
    Effect.gen(function* () {
      const world = yield* openActorsWorld();
      yield* world.sandboxes.fault("create", { kind: "error", message: "no room on this machine" });
      const { actors } = yield* world.begin;
      const id = yield* world.admit;
      yield* actors.wake("session", id);
      yield* world.untilSession(id, "failed");
      expect((yield* world.session(id))?.failure).toMatchObject({
        code: "sandbox_create_failed",
        message: "no room on this machine",
      });
    }),
  );

  it.effect("fail it with no_capacity when the provider has no room for its sandbox", () =>
    Effect.gen(function* () {
      const world = yield* openActorsWorld();
      const message = "no capacity: the namespace's quota is used up";
      yield* world.sandboxes.fault("create", { kind: "error", code: "no_capacity", message });
      const { actors } = yield* world.begin;
      const id = yield* world.admit;
      yield* actors.wake("session", id);
      yield* world.untilSession(id, "failed");
      expect((yield* world.session(id))?.failure).toMatchObject({ code: "no_capacity", message });
    }),
  );

  it.effect("fail it when its running sandbox is lost", () =>
    Effect.gen(function* () {
      const { id, sandboxes, untilSession, session, running, newestSandbox } = yield* begun;
      yield* untilSession(id, "running");
      const [sandboxId = ""] = yield* running;
      yield* sandboxes.end(sandboxId, { code: "memory_exceeded", message: "2 GiB were not enough" });
      yield* untilSession(id, "failed");
      expect((yield* session(id))?.failure).toMatchObject({ code: "memory_exceeded" });
      expect(yield* newestSandbox(id)).toMatchObject({ status: "error" });
      yield* until(Effect.map(running, (ids) => ids.length === 0));
    }),
  );

  it.effect("fail it when its sandbox can no longer be watched, and destroy the sandbox", () =>
    Effect.gen(function* () {
      const { id, script, untilSession, session, running } = yield* begun;
      script.health = { ...READY, bootstrap: { state: "pending" } };
      yield* untilSession(id, "running");
      Object.defineProperty(script, "health", {
        get: () => {
          throw new Error("a defect in the watch");
        },
      });
      yield* untilSession(id, "failed");
      expect((yield* session(id))?.failure).toMatchObject({
        code: "internal_error",
        message: "No save of its work was made. Reason: the service failed: a defect in the watch.",
      });
      yield* until(Effect.map(running, (ids) => ids.length === 0));
    }),
  );

  it.effect("stop it during provisioning: it never runs and its sandbox is removed [R02]", () =>
    Effect.gen(function* () {
      const { id, actors, script, untilSandbox, session, statusOf, running, newestSandbox } = yield* begun;
      script.health = STARTING;
      yield* until(Effect.map(running, (ids) => ids.length === 1));
      expect((yield* answered(actors.session(id, STOP))).snapshot.state).toBe("stopped");
      yield* untilSandbox(id, "stopped");
      yield* until(Effect.map(running, (ids) => ids.length === 0));
      script.health = { ...STARTING, status: "ready" };
      yield* TestClock.adjust("3 minutes");
      expect(yield* statusOf(id)).toBe("stopped");
      expect((yield* session(id))?.runningAt).toBeNull();
      expect(yield* newestSandbox(id)).toMatchObject({ status: "stopped", activeAt: null });
    }),
  );

  it.effect("stop it once for any number of concurrent requests [R03]", () =>
    Effect.gen(function* () {
      const { id, actors, untilSession, running } = yield* begun;
      yield* untilSession(id, "running");
      const asked = Array.from({ length: 10 }, () => actors.session(id, STOP));
      const told = yield* answered(Effect.all(asked, { concurrency: "unbounded" }));
      expect(told.filter(({ accepted }) => accepted)).toHaveLength(1);
      yield* untilSession(id, "stopped");
      yield* until(Effect.map(running, (ids) => ids.length === 0));
    }),
  );

  it.effect("restart it in a new sandbox, and messages of the former sandbox have no effect [R05]", () =>
    Effect.gen(function* () {
      const { id, actors, untilSession, untilSandbox, statusOf, running, newestSandbox } = yield* begun;
      yield* untilSession(id, "running");
      const [former = ""] = yield* running;
      yield* answered(actors.session(id, STOP));
      yield* untilSandbox(id, "stopped");
      yield* untilSession(id, "stopped");
      const fresh = "01890000-0000-7000-8000-000000000001";
      yield* answered(actors.session(id, { type: "restart.requested", sandboxId: fresh }));
      yield* untilSession(id, "running");
      expect(yield* running).toEqual([fresh]);
      const late = yield* answered(actors.session(id, { type: "sandbox.live", sandboxId: former }));
      expect(late.accepted).toBe(false);
      const failure = { code: "sandbox_lost", message: "long ago" } as const;
      yield* answered(actors.session(id, { type: "sandbox.lost", sandboxId: former, failure }));
      expect(yield* statusOf(id)).toBe("running");
      expect(yield* newestSandbox(id)).toMatchObject({ id: fresh, status: "active" });
    }),
  );

  it.effect("forget a branch creation of a former life when the session was stopped", () =>
    Effect.gen(function* () {
      const [asked, release] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()];
      const goOn = yield* Deferred.make<void>();
      let isFirst = true;
      const world = yield* openActorsWorld({
        git: (backend) => ({
          ...backend,
          createBranch: (repository, request) =>
            Effect.suspend(() => {
              if (!isFirst)
                return Effect.andThen(Deferred.await(goOn), backend.createBranch(repository, request));
              isFirst = false;
              const timeout = new GitError({ code: "timeout", message: "too slow" });
              const late = Effect.andThen(Deferred.await(release), Effect.fail(timeout));
              return Effect.andThen(Deferred.succeed(asked, undefined), late);
            }),
        }),
      });
      const { actors } = yield* world.begin;
      const id = yield* world.admit;
      yield* actors.wake("session", id);
      yield* answered(Deferred.await(asked));
      yield* answered(actors.session(id, STOP));
      const sandboxId = "01890000-0000-7000-8000-000000000001";
      yield* answered(actors.session(id, { type: "restart.requested", sandboxId }));
      yield* Deferred.succeed(release, undefined);
      yield* TestClock.adjust("1 second");
      expect(yield* world.statusOf(id)).toBe("provisioning");
      yield* Deferred.succeed(goOn, undefined);
      yield* world.untilSession(id, "running");
    }),
  );

  it.effect("destroy a sandbox that the provider created although its answer was lost [R05]", () =>
    Effect.gen(function* () {
      const world = yield* openActorsWorld();
      yield* world.sandboxes.fault("create", { kind: "lost", message: "the answer was lost" });
      const { actors } = yield* world.begin;
      const id = yield* world.admit;
      yield* actors.wake("session", id);
      yield* world.untilSession(id, "failed");
      yield* until(Effect.map(world.running, (ids) => ids.length === 0));
    }),
  );

  it.effect("restart it at once after a stop, while the former sandbox is still ending", () =>
    Effect.gen(function* () {
      const { id, actors, sandboxes, untilSession, running } = yield* begun;
      yield* untilSession(id, "running");
      yield* sandboxes.fault("destroy", { kind: "slow", milliseconds: 30_000 });
      const fresh = "01890000-0000-7000-8000-000000000001";
      yield* answered(actors.session(id, STOP));
      yield* untilSession(id, "stopped");
      yield* answered(actors.session(id, { type: "restart.requested", sandboxId: fresh }));
      yield* untilSession(id, "running");
      yield* until(Effect.map(running, (ids) => ids.length === 1));
      expect(yield* running).toEqual([fresh]);
    }),
  );

  it.effect("keep trying to destroy a sandbox that the provider does not release (I9)", () =>
    Effect.gen(function* () {
      const { id, actors, sandboxes, untilSession, running } = yield* begun;
      yield* untilSession(id, "running");
      for (let count = 0; count < 5; count += 1) {
        yield* sandboxes.fault("destroy", { kind: "error", message: "busy" });
      }
      yield* answered(actors.session(id, STOP));
      yield* until(Effect.map(running, (ids) => ids.length === 0));
    }),
  );

  it.effect("ask again if the provider never answers a destruction (I9)", () =>
    Effect.gen(function* () {
      const { id, actors, sandboxes, untilSession, running } = yield* begun;
      yield* untilSession(id, "running");
      yield* sandboxes.fault("destroy", { kind: "hang" });
      yield* answered(actors.session(id, STOP));
      yield* untilSession(id, "stopped");
      expect(yield* running).toHaveLength(1);
      yield* TestClock.adjust("1 minute");
      yield* until(Effect.map(running, (ids) => ids.length === 0));
    }),
  );

  /** From the moment a session is woken, in ms: in its branch, its sandbox's creation, its boot, its report. */
  const ENDS = [0, 50, 500, CREATE_MS - 50, CREATE_MS, CREATE_MS + 50, CREATE_MS + 100, CREATE_MS + 500];

  it.effect.each(ENDS)(
    "reach running in one sandbox when the service ends %i ms into it and starts again",
    (ms) =>
      Effect.gen(function* () {
        const { id, end, begin, untilSession, running, newestSandbox } = yield* begun;
        yield* TestClock.adjust(ms);
        yield* end;
        yield* begin;
        yield* untilSession(id, "running");
        expect(yield* running).toEqual([(yield* newestSandbox(id))?.id]);
      }),
  );

  it.effect("reach running after the service ended in the middle of the boot and started again", () =>
    Effect.gen(function* () {
      const { id, script, end, begin, untilSession, running } = yield* begun;
      script.health = STARTING;
      yield* until(Effect.map(running, (ids) => ids.length === 1));
      const [before] = yield* running;
      yield* end;
      script.health = READY;
      yield* begin;
      yield* untilSession(id, "running");
      expect(yield* running).toEqual([before]);
    }),
  );
});
