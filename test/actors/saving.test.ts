/** A running session's work is saved before its sandbox is torn down (api.md 3 "Saving"), even if something fails on the way. */
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as TestClock from "effect/testing/TestClock";
import { describe, expect } from "vitest";
import type { Saved } from "../../src/domain/saved.ts";
import { DaemonUnreachable } from "../../src/sandbox/daemon.ts";
import {
  answered,
  openActorsWorld,
  SAVE_TIMEOUT_MS,
  until,
  type WorldOptions,
} from "../support/world/actors.ts";
import { admitSession, tellSession } from "../support/world/sessions.ts";

const STOP = { type: "stop.requested" } as const;
const WORK: Saved = {
  wip: "c0ffee",
  skipped: [{ path: "node_modules", reason: "ignored by git" }],
  error: null,
};
const failure = { code: "sandbox_lost", message: "it is gone", at: 0 } as const;
const FRESH = "01890000-0000-7000-8000-000000000001";

/** A running session whose daemon is asked to save, and answers when the test lets it. */
const begunWith = Effect.fnUntraced(function* (options: WorldOptions) {
  const world = yield* openActorsWorld(options);
  const { actors, end } = yield* world.begin;
  const id = yield* world.admit;
  yield* actors.wake("session", id);
  yield* world.untilSession(id, "running");
  let asked = 0;
  const answers: { saved: Effect.Effect<Saved, DaemonUnreachable> } = { saved: Effect.succeed(WORK) };
  world.script.saved = Effect.suspend(() => {
    asked += 1;
    return answers.saved;
  });
  const untilAsked = (times: number) => until(Effect.sync(() => asked >= times));
  return { ...world, actors, end, id, answers, untilAsked, asked: () => asked };
});
const begun = begunWith({});

describe("a running session that is stopped", () => {
  it.effect("runs until its work is saved, and reports the saved and the unsaved parts", () =>
    Effect.gen(function* () {
      const { id, actors, answers, untilAsked, statusOf, newestSandbox, session, untilSession, running } =
        yield* begun;
      answers.saved = Effect.delay(Effect.succeed(WORK), "10 seconds");
      yield* answered(actors.session(id, STOP));
      yield* untilAsked(1);
      expect(yield* statusOf(id)).toBe("running");
      expect(yield* newestSandbox(id)).toMatchObject({ status: "active" });
      yield* untilSession(id, "stopped");
      expect(yield* session(id)).toMatchObject({ stopReason: "requested", saved: WORK });
      yield* until(Effect.map(running, (ids) => ids.length === 0));
    }),
  );

  it.effect(
    "takes back a restart that waits if it is stopped again, and one save serves all requests to end",
    () =>
      Effect.gen(function* () {
        const { id, actors, answers, untilAsked, session, untilSession, asked } = yield* begun;
        answers.saved = Effect.delay(Effect.succeed(WORK), "10 seconds");
        yield* answered(actors.session(id, { type: "idle.elapsed" }));
        yield* untilAsked(1);
        const restart = { type: "restart.requested", sandboxId: FRESH } as const;
        expect(yield* answered(actors.session(id, restart))).toMatchObject({ accepted: true });
        yield* answered(actors.session(id, STOP));
        yield* answered(actors.session(id, { type: "delete.requested" }));
        yield* untilSession(id, "stopped");
        expect(yield* session(id)).toMatchObject({ stopReason: "idle", saved: WORK });
        expect((yield* session(id))?.deletedAt).not.toBeNull();
        expect(asked()).toBe(1);
      }),
  );

  it.effect("begins a restart that waited for its stop when there is a slot, however late that is", () =>
    Effect.gen(function* () {
      const one = yield* begunWith({ cap: 1 });
      const { id, answers, inPorts, statusOf, untilSession } = one;
      answers.saved = Effect.never;
      yield* answered(one.actors.session(id, STOP));
      yield* one.untilAsked(1);
      yield* answered(one.actors.session(id, { type: "restart.requested", sandboxId: FRESH }));
      yield* one.end;
      answers.saved = Effect.succeed(WORK);
      // It stops, and another session takes its slot, before the service can restart it.
      const sandboxOf = (sid: string) => Effect.map(one.session(sid), (row) => row?.sandboxId ?? "");
      const ended = { type: "sandbox.ended", sandboxId: yield* sandboxOf(id), saved: WORK } as const;
      yield* inPorts(tellSession(id, ended));
      const other = yield* inPorts(admitSession(one.world));
      const full = yield* one.begin;
      yield* untilSession(other, "running");
      yield* TestClock.adjust("10 minutes");
      expect(yield* statusOf(id)).toBe("stopped");
      yield* full.end;
      yield* inPorts(
        tellSession(other, { type: "sandbox.lost", sandboxId: yield* sandboxOf(other), failure }),
      );
      yield* one.begin;
      yield* untilSession(id, "running");
      expect(yield* sandboxOf(id)).toBe(FRESH);
    }),
  );

  it.effect("ends in time even if its daemon hangs, and reports that nothing was saved", () =>
    Effect.gen(function* () {
      const { id, actors, answers, untilAsked, statusOf, session, untilSession } = yield* begun;
      answers.saved = Effect.never;
      yield* answered(actors.session(id, STOP));
      yield* untilAsked(1);
      yield* TestClock.adjust(SAVE_TIMEOUT_MS - 1000);
      expect(yield* statusOf(id)).toBe("running");
      yield* TestClock.adjust(1000);
      yield* untilSession(id, "stopped");
      expect((yield* session(id))?.saved).toMatchObject({
        wip: null,
        error: expect.stringContaining(`${SAVE_TIMEOUT_MS} ms`),
      });
    }),
  );

  it.effect("ends even if its daemon cannot be reached", () =>
    Effect.gen(function* () {
      const { id, actors, answers, session, untilSession } = yield* begun;
      answers.saved = Effect.fail(new DaemonUnreachable({ message: "nothing listens" }));
      yield* answered(actors.session(id, STOP));
      yield* untilSession(id, "stopped");
      expect((yield* session(id))?.saved?.error).toContain("nothing listens");
    }),
  );

  it.effect("has its work saved by the next life if the service ended during the save", () =>
    Effect.gen(function* () {
      const { id, actors, answers, untilAsked, begin, end, statusOf, session, untilSession, running } =
        yield* begun;
      answers.saved = Effect.never;
      yield* answered(actors.session(id, STOP));
      yield* untilAsked(1);
      yield* end;
      expect(yield* statusOf(id)).toBe("running");
      answers.saved = Effect.succeed(WORK);
      yield* begin;
      yield* untilSession(id, "stopped");
      expect(yield* session(id)).toMatchObject({ stopReason: "requested", saved: WORK });
      yield* until(Effect.map(running, (ids) => ids.length === 0));
    }),
  );

  it.effect("is stopped, and says so, if its sandbox was lost meanwhile", () =>
    Effect.gen(function* () {
      const { id, actors, answers, untilAsked, sandboxes, newestSandbox, session, untilSession } =
        yield* begun;
      answers.saved = Effect.never;
      yield* answered(actors.session(id, STOP));
      yield* untilAsked(1);
      const sandboxId = (yield* newestSandbox(id))?.id ?? "";
      yield* sandboxes.end(sandboxId, { code: "exited", message: "the machine went down" });
      yield* untilSession(id, "stopped");
      expect((yield* session(id))?.saved).toMatchObject({
        wip: null,
        error: expect.stringContaining("lost"),
      });
      expect(yield* newestSandbox(id)).toMatchObject({ status: "stopped" });
    }),
  );

  it.effect("keeps its saved work when it is restarted", () =>
    Effect.gen(function* () {
      const { id, actors, session, untilSession } = yield* begun;
      yield* answered(actors.session(id, STOP));
      yield* untilSession(id, "stopped");
      yield* answered(actors.session(id, { type: "restart.requested", sandboxId: FRESH }));
      yield* untilSession(id, "running");
      expect((yield* session(id))?.saved).toEqual(WORK);
    }),
  );
});

describe("a session that is still being provisioned", () => {
  it.effect("is stopped at once: its agent has not started to work", () =>
    Effect.gen(function* () {
      const world = yield* openActorsWorld();
      let asked = 0;
      world.script.saved = Effect.suspend(() => {
        asked += 1;
        return Effect.succeed(WORK);
      });
      const { actors } = yield* world.begin;
      const id = yield* world.admit;
      yield* actors.wake("session", id);
      yield* until(Effect.map(world.newestSandbox(id), (row) => row !== null));
      const told = yield* answered(actors.session(id, STOP));
      expect(told).toMatchObject({ accepted: true, snapshot: { state: "stopped" } });
      yield* until(Effect.map(world.running, (ids) => ids.length === 0));
      expect(asked).toBe(0);
    }),
  );
});
