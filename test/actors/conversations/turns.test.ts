import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Logger from "effect/Logger";
import * as Queue from "effect/Queue";
import { describe, expect } from "vitest";
import { TURN_MESSAGE_MAX, type NumberedTurn } from "../../../src/domain/session/last-turn.ts";
import { DaemonUnreachable } from "../../../src/sandbox/daemon.ts";
import { Events } from "../../../src/store/ports/events.ts";
import { openActorsWorld, until } from "../../support/world/actors.ts";

const AT = "2026-11-20T06:52:05.618Z";
const FAILED: NumberedTurn = {
  number: 1,
  state: "failed",
  error: { code: "model_unauthorized", message: "The provider refused the key." },
  at: AT,
};

/** A running session whose daemon answers what is put into `answers`, one for each question. */
const running = Effect.gen(function* () {
  const world = yield* openActorsWorld();
  const answers = yield* Queue.unbounded<Effect.Effect<NumberedTurn | null, DaemonUnreachable>>();
  world.script.turn = Effect.flatten(Queue.take(answers));
  const life = yield* world.begin;
  const id = yield* world.admit;
  yield* life.actors.wake("session", id);
  yield* world.untilSession(id, "running");
  const lastTurn = Effect.map(world.session(id), (row) => row?.lastTurn ?? null);
  const { after } = yield* Events.pipe(world.inPorts);
  const request = { projectId: world.world.projectId, sessionId: id, limit: 100 };
  const start = (yield* after({ ...request, cursor: null })).cursor;
  const turnEvents = Effect.map(after({ ...request, cursor: start }), ({ events }) =>
    events.filter(({ type }) => type === "session.turn").map(({ data }) => data),
  );
  const answer = (turn: NumberedTurn | null) => Queue.offer(answers, Effect.succeed(turn));
  const lose = Queue.offer(
    answers,
    Effect.fail(new DaemonUnreachable({ message: "the daemon closed the connection" })),
  );
  return { ...world, ...life, id, lastTurn, turnEvents, answer, lose };
});

describe("the end of a turn", () => {
  it.effect("is written to the session and reported once", () =>
    Effect.gen(function* () {
      const { answer, lastTurn, turnEvents, id, newestSandbox } = yield* running;
      expect(yield* lastTurn).toBeNull();
      yield* answer(FAILED);
      yield* until(Effect.map(lastTurn, (turn) => turn !== null));
      const sandboxId = (yield* newestSandbox(id))?.id;
      expect(yield* lastTurn).toEqual({ ...FAILED, sandboxId, conversation: null });
      // The same answer again, then one that is later.
      yield* answer(FAILED);
      yield* answer(null);
      yield* answer({ number: 3, state: "completed", error: null, at: AT });
      yield* until(Effect.map(lastTurn, (turn) => turn?.number === 3));
      const { number: _number, ...told } = FAILED;
      expect(yield* turnEvents).toEqual([told, { state: "completed", error: null, at: AT }]);
    }),
  );

  it.effect("is learned from the next answer if one was lost, and in another life of the service", () =>
    Effect.gen(function* () {
      const { answer, lose, lastTurn, turnEvents, end, begin } = yield* running;
      yield* lose;
      yield* lose;
      yield* answer(FAILED);
      yield* until(Effect.map(lastTurn, (turn) => turn?.number === 1));
      yield* end;
      yield* begin;
      yield* answer(FAILED);
      yield* answer({ ...FAILED, number: 2 });
      yield* until(Effect.map(lastTurn, (turn) => turn?.number === 2));
      expect(yield* turnEvents).toHaveLength(2);
    }),
  );

  it.effect("is stored in a form that a row can hold, whatever the sandbox sends", () =>
    Effect.gen(function* () {
      const { answer, lastTurn } = yield* running;
      yield* answer({ ...FAILED, at: "never" });
      const error = { code: "DROP TABLE", message: `a\0b\ud800${"x".repeat(5000)}` };
      yield* answer({ ...FAILED, number: 2, error });
      yield* until(Effect.map(lastTurn, (turn) => turn !== null));
      const turn = yield* lastTurn;
      expect(turn?.error?.code).toBe("turn_failed");
      expect(turn?.error?.message).toHaveLength(TURN_MESSAGE_MAX);
      expect(turn?.error?.message.startsWith("ab\ufffdxxx")).toBe(true);
    }),
  );
});

/** Lines of it: level, what happened, and its particulars. */
const recorded = (lines: (readonly [string, string, Readonly<Record<string, unknown>>])[]) =>
  Logger.layer([
    Logger.make(({ logLevel, message }) => {
      const [what, fields] = message as readonly [string, Readonly<Record<string, unknown>>];
      lines.push([logLevel, what, fields]);
    }),
  ]);

const found = (lines: Parameters<typeof recorded>[0], what: string) =>
  lines.filter(([, text]) => text === what);

describe("the operator's log", () => {
  it.effect("has one line for a failed turn, and no line for a successful one", () => {
    const lines: Parameters<typeof recorded>[0] = [];
    return Effect.gen(function* () {
      const { answer, lastTurn, id, world, newestSandbox } = yield* running;
      yield* answer({ number: 1, state: "completed", error: null, at: AT });
      yield* answer({ ...FAILED, number: 2 });
      yield* until(Effect.map(lastTurn, (turn) => turn?.number === 2));
      yield* answer({ number: 3, state: "interrupted", error: null, at: AT });
      yield* until(Effect.map(lastTurn, (turn) => turn?.number === 3));
      const { projectId: project } = world;
      const sandbox = (yield* newestSandbox(id))?.id;
      expect(found(lines, "a turn failed")).toEqual([
        ["Warn", "a turn failed", { project, session: id, sandbox, ...FAILED.error }],
      ]);
    }).pipe(Effect.provide(recorded(lines)));
  });

  it.effect("has one line for a failed boot, with what to do", () => {
    const lines: Parameters<typeof recorded>[0] = [];
    return Effect.gen(function* () {
      const world = yield* openActorsWorld();
      world.script.health = null;
      const { actors } = yield* world.begin;
      const id = yield* world.admit;
      yield* actors.wake("session", id);
      yield* world.untilSession(id, "failed");
      const sandbox = (yield* world.newestSandbox(id))?.id;
      expect(found(lines, "a boot failed")).toMatchObject([
        [
          "Error",
          "a boot failed",
          {
            project: world.world.projectId,
            session: id,
            sandbox,
            code: "boot_timeout",
            todo: expect.stringContaining("PLATFORM_BOOT_TIMEOUT_MS"),
          },
        ],
      ]);
    }).pipe(Effect.provide(recorded(lines)));
  });

  it.effect("has one line for a lost sandbox", () => {
    const lines: Parameters<typeof recorded>[0] = [];
    return Effect.gen(function* () {
      const { id, sandboxes: provider, newestSandbox, untilSession } = yield* running;
      const sandbox = (yield* newestSandbox(id))?.id ?? "";
      yield* provider.end(sandbox, { code: "exited", message: "killed by signal 9" });
      yield* untilSession(id, "failed");
      expect(found(lines, "a running session failed")).toMatchObject([
        ["Error", "a running session failed", { session: id, sandbox, code: "sandbox_lost" }],
      ]);
    }).pipe(Effect.provide(recorded(lines)));
  });
});
