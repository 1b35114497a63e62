/** A sandbox's log is kept before the sandbox is destroyed, even if something fails on the way. */
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as TestClock from "effect/testing/TestClock";
import { describe, expect } from "vitest";
import { answered, openActorsWorld, until } from "../../support/world/actors.ts";

/** A running session whose sandbox has written a line. */
const running = Effect.gen(function* () {
  const world = yield* openActorsWorld();
  const { actors, end } = yield* world.begin;
  const id = yield* world.admit;
  yield* actors.wake("session", id);
  yield* world.untilSession(id, "running");
  const sandboxId = (yield* world.newestSandbox(id))?.id ?? "";
  yield* world.sandboxes.write(sandboxId, "a line of its life\n");
  const gone = until(Effect.map(world.running, (ids) => !ids.includes(sandboxId)));
  return { ...world, actors, end, id, sandboxId, gone };
});

const STOP = { type: "stop.requested" } as const;
const LOG = "simulated sandbox\na line of its life\n";

describe("the log of a sandbox", () => {
  it.effect("is kept when its session is stopped, and the next boot's log is kept beside it", () =>
    Effect.gen(function* () {
      const { actors, id, gone, keptLogs, untilSession, newestSandbox, running: left } = yield* running;
      yield* answered(actors.session(id, STOP));
      yield* gone;
      expect(yield* keptLogs(id)).toEqual([LOG]);
      yield* answered(actors.session(id, { type: "restart.requested", sandboxId: crypto.randomUUID() }));
      yield* untilSession(id, "running");
      expect((yield* left).length).toBe(1);
      expect(yield* newestSandbox(id)).toMatchObject({ status: "active" });
      yield* answered(actors.session(id, STOP));
      yield* until(Effect.map(left, (ids) => ids.length === 0));
      expect(yield* keptLogs(id)).toEqual([LOG, "simulated sandbox\n"]);
    }),
  );

  it.effect("is kept when the sandbox is lost", () =>
    Effect.gen(function* () {
      const { id, sandboxId, sandboxes, gone, keptLogs, untilSession, session } = yield* running;
      yield* sandboxes.end(sandboxId, { code: "exited", message: "its PID 1 ended with SIGKILL" });
      yield* untilSession(id, "failed");
      expect((yield* session(id))?.failure).toMatchObject({ code: "sandbox_lost" });
      yield* gone;
      expect(yield* keptLogs(id)).toEqual([LOG]);
    }),
  );

  it.effect("is complete: it includes output during the shutdown", () =>
    Effect.gen(function* () {
      const { actors, id, sandboxId, sandboxes, gone, keptLogs } = yield* running;
      yield* sandboxes.fault("end", { kind: "slow", milliseconds: 5_000 });
      yield* answered(actors.session(id, STOP));
      yield* TestClock.adjust("1 second");
      yield* sandboxes.write(sandboxId, "its last words\n");
      yield* gone;
      expect(yield* keptLogs(id)).toEqual([`${LOG}its last words\n`]);
    }),
  );

  it.effect("is kept by the service's next life if the first one died before it kept the log", () =>
    Effect.gen(function* () {
      const { actors, end, begin, id, sandboxes, gone, keptLogs, running: left } = yield* running;
      yield* sandboxes.fault("logs", { kind: "hang" });
      yield* answered(actors.session(id, STOP));
      yield* TestClock.adjust("10 seconds");
      yield* end;
      expect([(yield* left).length, yield* keptLogs(id)]).toEqual([1, []]);
      yield* begin;
      yield* gone;
      expect(yield* keptLogs(id)).toEqual([LOG]);
    }),
  );

  it.effect("stays unchanged if the service died between the sandbox's destruction and its record", () =>
    Effect.gen(function* () {
      const { actors, end, begin, id, sandboxes, gone, keptLogs, inPorts } = yield* running;
      // It is destroyed, and no answer tells that to this life.
      yield* sandboxes.fault("destroy", { kind: "lost", message: "the answer was lost" });
      yield* sandboxes.fault("destroy", { kind: "hang" });
      yield* answered(actors.session(id, STOP));
      yield* gone;
      yield* end;
      yield* begin;
      yield* inPorts(TestClock.adjust("5 seconds"));
      expect(yield* keptLogs(id)).toEqual([LOG]);
    }),
  );

  it.effect("that cannot be read does not prevent the destruction of its sandbox [I9]", () =>
    Effect.gen(function* () {
      const { actors, id, sandboxes, gone, keptLogs } = yield* running;
      for (let attempt = 0; attempt < 5; attempt += 1)
        yield* sandboxes.fault("logs", { kind: "error", message: "no such device" });
      yield* answered(actors.session(id, STOP));
      yield* gone;
      expect(yield* keptLogs(id)).toEqual([]);
    }),
  );

  it.effect("of a deleted session is not kept", () =>
    Effect.gen(function* () {
      const { actors, id, gone, keptLogs } = yield* running;
      yield* answered(actors.session(id, { type: "delete.requested" }));
      yield* gone;
      expect(yield* keptLogs(id)).toEqual([]);
    }),
  );
});
