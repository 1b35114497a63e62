/** A running session's work is saved before its sandbox is torn down (api.md 3 "Saving"), even if something fails on the way. */
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as TestClock from "effect/testing/TestClock";
import { describe, expect } from "vitest";
import { LONG_SAVE_MS } from "../../../src/domain/save/order.ts";
import { NOTHING_TO_SAVE, notSaved, unfinishedSave, type Saved } from "../../../src/domain/save/saved.ts";
import { LOST_WORK, SKIPPED } from "../../../src/domain/save/shown.ts";
import {
  answered,
  openActorsWorld,
  SAVE_TIMEOUT_MS,
  until,
  type WorldOptions,
} from "../../support/world/actors.ts";
import { Sessions } from "../../../src/store/ports/sessions/sessions.ts";
import { admitSession, tellSession } from "../../support/world/sessions.ts";

const STOP = { type: "stop.requested" } as const;
const WORK: Saved = {
  ...NOTHING_TO_SAVE,
  at: "2026-02-01T12:00:00.000Z",
  wip: "c0ffee",
  files: 3,
  skipped: [{ path: "node_modules", reason: "ignored by git" }],
};
const PART = {
  ...WORK,
  state: "partial" as const,
  pending: [{ path: "big.bin", reason: "limit" }],
  error: "The limit is reached.",
};
const failure = { code: "sandbox_lost", message: "it is gone", at: 0 } as const;
const FRESH = "01890000-0000-7000-8000-000000000001";

/** A running session whose work is saved when the test lets it. */
const begunWith = Effect.fnUntraced(function* (options: WorldOptions) {
  const world = yield* openActorsWorld(options);
  const { actors, end } = yield* world.begin;
  const id = yield* world.admit;
  yield* actors.wake("session", id);
  yield* world.untilSession(id, "running");
  let asked = 0;
  const answers: { saved: Effect.Effect<Saved> } = { saved: Effect.succeed(WORK) };
  world.saves.scripted = () =>
    Effect.suspend(() => {
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

  it.effect("has its agent's turn ended before the work is saved", () =>
    Effect.gen(function* () {
      const { id, actors, answers, script, untilSession } = yield* begun;
      const order: string[] = [];
      script.abort = Effect.delay(
        Effect.sync(() => order.push("turn") > 0),
        "1 second",
      );
      answers.saved = Effect.sync(() => {
        order.push("save");
        return WORK;
      });
      yield* answered(actors.session(id, STOP));
      yield* untilSession(id, "stopped");
      expect(order).toEqual(["turn", "save"]);
    }),
  );

  it.effect("takes back a restart that waits if it is stopped again, and goes on with the save", () =>
    Effect.gen(function* () {
      const { id, actors, answers, untilAsked, session, untilSession, asked } = yield* begun;
      answers.saved = Effect.delay(Effect.succeed(WORK), "10 seconds");
      yield* answered(actors.session(id, STOP));
      yield* untilAsked(1);
      const restart = { type: "restart.requested", sandboxId: FRESH } as const;
      expect(yield* answered(actors.session(id, restart))).toMatchObject({ accepted: true });
      yield* answered(actors.session(id, { ...STOP, save: "require" }));
      yield* untilSession(id, "stopped");
      expect(yield* session(id)).toMatchObject({ stopReason: "requested", saved: WORK });
      expect(asked()).toBe(1);
    }),
  );

  it.effect("ends at once if a second stop skips the save, and keeps what the last save has", () =>
    Effect.gen(function* () {
      const { id, actors, answers, untilAsked, session, untilSession, saves } = yield* begun;
      answers.saved = Effect.never;
      yield* answered(actors.session(id, STOP));
      yield* untilAsked(1);
      yield* answered(actors.session(id, { ...STOP, save: "skip" }));
      yield* untilSession(id, "stopped");
      expect(yield* session(id)).toMatchObject({ stopReason: "requested", saved: null });
      expect(saves.requests).toHaveLength(1);
    }),
  );

  it.effect("says of a stop without a save that changes since the last one are lost", () =>
    Effect.gen(function* () {
      const { id, actors, answers, session, untilSession } = yield* begun;
      answers.saved = Effect.succeed(PART);
      yield* answered(actors.session(id, { ...STOP, save: "require" }));
      yield* until(Effect.map(session(id), (row) => row?.saved?.state === "partial"));
      yield* answered(actors.session(id, { ...STOP, save: "skip" }));
      yield* untilSession(id, "stopped");
      expect(yield* session(id)).toMatchObject({ saved: { ...PART, error: SKIPPED } });
    }),
  );

  it.effect("runs on if everything has to be saved and is not, and says what is missing", () =>
    Effect.gen(function* () {
      const { id, actors, answers, session, statusOf, newestSandbox, untilSession } = yield* begun;
      answers.saved = Effect.succeed(PART);
      yield* answered(actors.session(id, { ...STOP, save: "require" }));
      yield* until(Effect.map(session(id), (row) => row?.saved?.state === "partial"));
      expect(yield* session(id)).toMatchObject({
        status: "running",
        ending: null,
        saved: PART,
        unsaved: null,
      });
      expect(yield* newestSandbox(id)).toMatchObject({ status: "active" });
      answers.saved = Effect.succeed(WORK);
      yield* answered(actors.session(id, { ...STOP, save: "require" }));
      yield* untilSession(id, "stopped");
      expect(yield* statusOf(id)).toBe("stopped");
    }),
  );

  it.effect("fails as any lost one if its sandbox is lost while everything has to be saved", () =>
    Effect.gen(function* () {
      const { id, actors, answers, untilAsked, sandboxes, newestSandbox, session, untilSession } =
        yield* begun;
      answers.saved = Effect.never;
      yield* answered(actors.session(id, { ...STOP, save: "require" }));
      yield* untilAsked(1);
      yield* sandboxes.end((yield* newestSandbox(id))?.id ?? "", { code: "exited", message: "it went down" });
      yield* untilSession(id, "failed");
      const message = expect.stringMatching(/No save of its work was made.*it went down/);
      expect(yield* session(id)).toMatchObject({ failure: { code: "sandbox_lost", message }, saved: null });
    }),
  );

  it.effect("says that later changes are lost if its sandbox is lost, and tells the next agent", () =>
    Effect.gen(function* () {
      const { id, actors, sandboxes, newestSandbox, session, untilSession, inPorts } = yield* begun;
      const sandboxId = (yield* newestSandbox(id))?.id ?? "";
      yield* inPorts(Effect.flatMap(Sessions, ({ noteSaved }) => noteSaved(id, { sandboxId, saved: WORK })));
      yield* sandboxes.end(sandboxId, { code: "exited", message: "it went down" });
      yield* untilSession(id, "failed");
      expect((yield* session(id))?.saved).toEqual({ ...WORK, state: "partial", error: LOST_WORK });
      yield* answered(actors.session(id, { type: "restart.requested", sandboxId: FRESH }));
      yield* untilSession(id, "running");
      expect((yield* sandboxes.all).get(FRESH)?.spec).toMatchObject({ wip: "c0ffee", wipLacks: LOST_WORK });
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
      answers.saved = Effect.succeed(notSaved("nothing listens"));
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
      const { id, actors, answers, untilAsked, sandboxes, newestSandbox, session, untilSession, inPorts } =
        yield* begun;
      const current = (yield* newestSandbox(id))?.id ?? "";
      const { noteSaved } = yield* inPorts(Sessions);
      yield* noteSaved(id, { sandboxId: current, saved: WORK });
      answers.saved = Effect.never;
      yield* answered(actors.session(id, STOP));
      yield* untilAsked(1);
      const sandboxId = (yield* newestSandbox(id))?.id ?? "";
      yield* sandboxes.end(sandboxId, { code: "exited", message: "the machine went down" });
      yield* untilSession(id, "stopped");
      const error = "the sandbox was lost before its work was saved";
      expect((yield* session(id))?.saved).toEqual(unfinishedSave(WORK, error));
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

  it.effect("names its saved work to the next sandbox, also while it has no commit", () =>
    Effect.gen(function* () {
      const { id, actors, answers, untilSession, sandboxes } = yield* begun;
      answers.saved = Effect.succeed({ ...WORK, wip: null });
      yield* answered(actors.session(id, STOP));
      yield* untilSession(id, "stopped");
      yield* answered(actors.session(id, { type: "restart.requested", sandboxId: FRESH }));
      yield* untilSession(id, "running");
      expect((yield* sandboxes.all).get(FRESH)?.spec).toMatchObject({ wip: "", restore: false });
    }),
  );
});

describe("an idle session", () => {
  it.effect("stays with its sandbox if its work cannot be saved whole, longer after each try", () =>
    Effect.gen(function* () {
      const { id, actors, answers, session, untilSession, newestSandbox, script } = yield* begun;
      answers.saved = Effect.succeed(PART);
      const pause = Effect.fnUntraced(function* (tries: number) {
        yield* answered(actors.session(id, { type: "idle.elapsed" }));
        yield* until(Effect.map(session(id), (row) => row?.unsaved?.tries === tries));
        return yield* session(id);
      });
      const first = yield* pause(1);
      const second = yield* pause(2);
      expect(second?.unsaved?.since).toBe(first?.unsaved?.since);
      expect(second).toMatchObject({ status: "running", ending: null, saved: PART });
      // Its daemon takes the next message.
      expect(new Set(script.released)).toEqual(new Set([(yield* newestSandbox(id))?.id]));
      expect(yield* newestSandbox(id)).toMatchObject({ status: "active" });
      yield* answered(actors.session(id, { type: "idle.elapsed", isLast: true }));
      yield* untilSession(id, "stopped");
      expect(yield* session(id)).toMatchObject({ stopReason: "idle", saved: PART, unsaved: null });
    }),
  );

  it.effect("may take ten minutes to save, and goes on if something waits for its agent meanwhile", () =>
    Effect.gen(function* () {
      const { id, actors, answers, untilAsked, session, saves, newestSandbox } = yield* begun;
      answers.saved = Effect.never;
      yield* answered(actors.session(id, { type: "idle.elapsed" }));
      yield* untilAsked(1);
      expect(saves.requests[0]?.limitMs).toBeGreaterThan(LONG_SAVE_MS * 0.9);
      const former = yield* newestSandbox(id);
      yield* answered(actors.session(id, { type: "restart.requested", sandboxId: FRESH }));
      yield* until(Effect.map(session(id), (row) => row?.ending === null));
      yield* TestClock.adjust(LONG_SAVE_MS);
      expect(yield* session(id)).toMatchObject({ status: "running", sandboxId: former?.id, unsaved: null });
    }),
  );
});

describe("a session whose person is deactivated", () => {
  it.effect("has its processes ended at once, and ten minutes to save", () =>
    Effect.gen(function* () {
      const { id, actors, answers, session, untilSession, saves, script, newestSandbox } = yield* begun;
      answers.saved = Effect.succeed(PART);
      yield* answered(actors.session(id, { type: "user.deactivated" }));
      yield* untilSession(id, "stopped");
      expect(script.retired).toEqual([(yield* newestSandbox(id))?.id]);
      expect(saves.requests[0]?.limitMs).toBeGreaterThan(LONG_SAVE_MS * 0.9);
      expect(yield* session(id)).toMatchObject({ stopReason: "user_deactivated", saved: PART });
    }),
  );
});

describe("a deleted session", () => {
  it.effect("ends at once without a save, and takes its saves along", () =>
    Effect.gen(function* () {
      const { id, actors, saves, untilSession } = yield* begun;
      saves.of(id);
      yield* answered(actors.session(id, { type: "delete.requested" }));
      yield* untilSession(id, "stopped");
      yield* until(Effect.sync(() => !saves.has(id)));
      expect(saves.requests).toEqual([]);
    }),
  );

  it.effect("has its saves deleted when the node that has them is back", () =>
    Effect.gen(function* () {
      const { id, actors, saves, untilSession } = yield* begun;
      saves.of(id);
      saves.isAway = true;
      yield* answered(actors.session(id, { type: "delete.requested" }));
      yield* untilSession(id, "stopped");
      yield* TestClock.adjust("1 hour");
      expect(saves.has(id)).toBe(true);
      saves.isAway = false;
      yield* TestClock.adjust("20 minutes");
      yield* until(Effect.sync(() => !saves.has(id)));
    }),
  );
});

describe("a session that is still being provisioned", () => {
  it.effect("is stopped at once: its agent has not started to work", () =>
    Effect.gen(function* () {
      const world = yield* openActorsWorld();
      let asked = 0;
      world.saves.scripted = () =>
        Effect.sync(() => {
          asked += 1;
          return WORK;
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
