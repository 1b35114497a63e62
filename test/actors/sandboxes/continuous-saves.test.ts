/** A running session is saved when a turn ends, and at intervals while one runs (actors/sandboxes/continuous-saves.ts). */
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Stream from "effect/Stream";
import * as TestClock from "effect/testing/TestClock";
import { describe, expect } from "vitest";
import type { ConversationReport } from "../../../src/domain/conversation/conversation.ts";
import { NOTHING_TO_SAVE, notSaved, type Saved } from "../../../src/domain/save/saved.ts";
import { answered, openActorsWorld, READY, SAVE_EVERY_MS, until } from "../../support/world/actors.ts";

const TURN = "0192d3a4-0000-7000-8000-0000000000aa";
const turn = (state: "running" | "idle", rev: number): ConversationReport => ({
  type: "turn",
  rev,
  turn: { state, waiting_for: null },
  ended: 0,
});

/** How its agent works. Each change is one report. */
const begun = Effect.fnUntraced(function* (protocol = 3) {
  const world = yield* openActorsWorld();
  const { script, saves } = world;
  script.health = { ...READY, protocol };
  const reports: ConversationReport[] = [];
  let sent = 0;
  const next = Effect.gen(function* () {
    yield* until(Effect.sync(() => reports.length > sent));
    return reports[(sent += 1) - 1] ?? turn("idle", 0);
  });
  script.conversation = () => Stream.fromEffectRepeat(next);
  let ended = 0;
  script.turn = Effect.gen(function* () {
    const before = ended;
    yield* until(Effect.sync(() => ended > before));
    const conversation = { number: 10 + ended, message_id: TURN };
    return {
      number: ended,
      state: "completed" as const,
      error: null,
      at: "2026-02-01T12:00:00.000Z",
      conversation,
    };
  });
  const answers: { saved: Effect.Effect<Saved> } = { saved: Effect.succeed(NOTHING_TO_SAVE) };
  saves.scripted = () => Effect.suspend(() => answers.saved);
  const { actors } = yield* world.begin;
  const id = yield* world.admit;
  yield* actors.wake("session", id);
  yield* world.untilSession(id, "running");
  const works = (isWorking: boolean) =>
    Effect.suspend(() => {
      reports.push(turn(isWorking ? "running" : "idle", reports.length + 1));
      return until(Effect.sync(() => sent === reports.length)).pipe(
        Effect.andThen(TestClock.adjust("1 second")),
      );
    });
  const endTurn = Effect.suspend(() => {
    ended += 1;
    return works(false);
  });
  const asked = (count: number) => until(Effect.sync(() => saves.requests.length >= count));
  return { ...world, id, actors, answers, works, endTurn, asked };
});

describe("a running session", () => {
  it.effect("is saved in the background when a turn ends, under the turn's id", () =>
    Effect.gen(function* () {
      const { works, endTurn, asked, saves, id } = yield* begun();
      yield* works(true);
      yield* endTurn;
      yield* asked(1);
      expect(saves.requests).toMatchObject([{ sessionId: id, isBackground: true, turn: TURN }]);
      yield* TestClock.adjust(SAVE_EVERY_MS * 2);
      expect(saves.requests).toHaveLength(1);
    }),
  );

  it.effect("is saved at intervals while a turn runs", () =>
    Effect.gen(function* () {
      const { works, saves } = yield* begun();
      yield* works(true);
      yield* TestClock.adjust(SAVE_EVERY_MS * 2);
      expect(saves.requests).toMatchObject([
        { isBackground: true, turn: null },
        { isBackground: true, turn: null },
      ]);
    }),
  );

  it.effect("is saved again at each interval after a turn until nothing is missing", () =>
    Effect.gen(function* () {
      const { endTurn, asked, answers, saves } = yield* begun();
      answers.saved = Effect.succeed(notSaved("the node is away"));
      yield* endTurn;
      yield* asked(1);
      yield* TestClock.adjust(SAVE_EVERY_MS);
      yield* asked(2);
      answers.saved = Effect.succeed(NOTHING_TO_SAVE);
      yield* TestClock.adjust(SAVE_EVERY_MS);
      yield* asked(3);
      yield* TestClock.adjust(SAVE_EVERY_MS * 2);
      expect(saves.requests.map((request) => request.turn)).toEqual([TURN, TURN, TURN]);
    }),
  );

  it.effect("has a save put off by a turn that begins, and by the save before its end", () =>
    Effect.gen(function* () {
      const { works, endTurn, asked, answers, actors, id, untilSession } = yield* begun();
      let putOff = 0;
      answers.saved = Effect.onInterrupt(Effect.never, () => Effect.sync(() => (putOff += 1)));
      yield* endTurn;
      yield* asked(1);
      yield* works(true);
      yield* until(Effect.sync(() => putOff === 1));
      yield* endTurn;
      yield* asked(2);
      yield* answered(actors.session(id, { type: "stop.requested" }));
      yield* until(Effect.sync(() => putOff === 2));
      answers.saved = Effect.succeed(NOTHING_TO_SAVE);
      yield* untilSession(id, "stopped");
    }),
  );

  it.effect("goes on after a save that crashed, and is saved at the next occasion", () =>
    Effect.gen(function* () {
      const { endTurn, asked, answers, works, statusOf, id } = yield* begun();
      answers.saved = Effect.die(new Error("no disk"));
      yield* endTurn;
      yield* asked(1);
      yield* works(true);
      yield* endTurn;
      yield* asked(2);
      expect(yield* statusOf(id)).toBe("running");
    }),
  );

  it.effect("is not saved while it runs if its daemon pushes its saves", () =>
    Effect.gen(function* () {
      const { works, endTurn, saves } = yield* begun(2);
      yield* works(true);
      yield* TestClock.adjust(SAVE_EVERY_MS);
      yield* endTurn;
      yield* TestClock.adjust(SAVE_EVERY_MS);
      expect(saves.requests).toEqual([]);
    }),
  );
});
