/** Conformance: people are told once of each turn after which the agent rests. */
import { randomUUID } from "node:crypto";
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import { Sessions, type EndedTurn } from "../../../../src/store/ports/sessions/sessions.ts";
import { followSession, type Check } from "../fixture.ts";
import { posted, reported, step } from "../../../support/world/conversation-steps.ts";
import { converse, replaceSandbox } from "../../../support/world/conversations.ts";
import { makeWorld, NOON } from "../../../support/world/world.ts";

const FAULT = { code: "turn_failed", message: "a text that no receiver gets" } as const;

/** A session whose agent works on its first turn, and what ends turns in it. */
const atWork = Effect.gen(function* () {
  const world = yield* makeWorld(5);
  const { sessionId, sandboxId } = yield* converse(world);
  yield* (yield* Sessions).rename(sessionId, { name: "Fix the build", now: NOON });
  const ended = yield* followSession({ projectId: world.projectId, sessionId }, "session.turn_ended");
  const all = yield* followSession({ projectId: world.projectId, sessionId }, "session.turn");
  yield* step(sessionId, reported(sandboxId, 0, true));
  let noted = 0;
  const note = Effect.fnUntraced(function* (number: number, of: Partial<EndedTurn> = {}) {
    const turn = {
      sandboxId,
      number,
      state: "completed",
      error: null,
      at: "2026-03-01T12:00:00.000Z",
    } as const;
    const written = yield* (yield* Sessions).noteTurn(sessionId, {
      ...turn,
      conversation: { number, message_id: sessionId },
      ...of,
      now: NOON + number,
    });
    if (written !== null) noted += 1;
  });
  /** The events that people get, once all turns that were noted, and at least so many that were told, are visible. */
  const told = Effect.fnUntraced(function* (count: number) {
    yield* all(noted);
    return (yield* ended(count)).map(({ data }) => data);
  });
  return { sessionId, sandboxId, note, told };
});

const turns = (data: readonly Readonly<Record<string, unknown>>[]) => data.map(({ turn }) => turn);

export const checkTurnEndings = (check: Check): void => {
  describe("the end of a turn after which the agent rests", () => {
    check(
      "is told with its state, when the conversation rests after it",
      Effect.gen(function* () {
        const { sessionId, sandboxId, note, told } = yield* atWork;
        yield* note(1, { state: "failed", error: FAULT });
        expect(yield* told(0)).toEqual([]);
        yield* step(sessionId, reported(sandboxId, 1));
        expect(yield* told(1)).toEqual([
          {
            state: "failed",
            code: "turn_failed",
            turn: 1,
            turn_id: sessionId,
            session_name: "Fix the build",
            change_request: null,
          },
        ]);
      }),
    );

    check(
      "is told once, in whichever order the two facts come and however often",
      Effect.gen(function* () {
        const { sessionId, sandboxId, note, told } = yield* atWork;
        yield* step(sessionId, reported(sandboxId, 1));
        expect(yield* told(0)).toEqual([]);
        yield* note(1);
        yield* note(1);
        expect(turns(yield* told(1))).toEqual([1]);
        yield* step(sessionId, reported(sandboxId, 1, true));
        yield* note(2);
        yield* note(2);
        yield* step(sessionId, reported(sandboxId, 2));
        yield* step(sessionId, reported(sandboxId, 2));
        expect(turns(yield* told(2))).toEqual([1, 2]);
      }),
    );

    check(
      "is not told if a message has waited for it: people hear of the last turn",
      Effect.gen(function* () {
        const { sessionId, sandboxId, note, told } = yield* atWork;
        const [messageId, later] = [randomUUID(), randomUUID()];
        yield* step(sessionId, posted(messageId));
        yield* note(1);
        yield* step(sessionId, reported(sandboxId, 1));
        yield* step(sessionId, { type: "message.accepted", messageId, sandboxId, turn: 2 });
        yield* step(sessionId, posted(later));
        yield* step(sessionId, reported(sandboxId, 2));
        yield* step(sessionId, { type: "message.accepted", messageId: later, sandboxId, turn: 3 });
        // The end of the second turn comes late, and the third one ends before it is noted.
        yield* note(2);
        yield* step(sessionId, reported(sandboxId, 3));
        expect(yield* told(0)).toEqual([]);
        yield* note(3);
        expect(turns(yield* told(1))).toEqual([3]);
      }),
    );

    check(
      "is told if the message that waited is cancelled or refused, or if a person holds the queue",
      Effect.gen(function* () {
        const { sessionId, sandboxId, note, told } = yield* atWork;
        const messageId = randomUUID();
        yield* step(sessionId, posted(messageId));
        yield* note(1);
        yield* step(sessionId, reported(sandboxId, 1));
        expect(yield* told(0)).toEqual([]);
        const error = { code: "attachment_gone", message: "gone" };
        yield* step(sessionId, { type: "message.refused", messageId, sandboxId, error });
        expect(turns(yield* told(1))).toEqual([1]);
        yield* step(sessionId, reported(sandboxId, 1, true));
        const [second, third] = [randomUUID(), randomUUID()];
        yield* step(sessionId, posted(second));
        yield* note(2);
        yield* step(sessionId, { type: "message.cancelled", messageId: second });
        yield* step(sessionId, reported(sandboxId, 2));
        expect(turns(yield* told(2))).toEqual([1, 2]);
        yield* step(sessionId, reported(sandboxId, 2, true));
        yield* step(sessionId, posted(third));
        yield* step(sessionId, { type: "interrupt.requested" });
        yield* note(3, { state: "interrupted" });
        yield* step(sessionId, reported(sandboxId, 3));
        expect(turns(yield* told(3))).toEqual([1, 2, 3]);
      }),
    );

    check(
      "is told when the sandbox ends before it reported that the agent rests, and of the next sandbox anew",
      Effect.gen(function* () {
        const { sessionId, sandboxId, note, told } = yield* atWork;
        yield* note(1);
        yield* step(sessionId, { type: "runtime.gone", sandboxId });
        expect(turns(yield* told(1))).toEqual([1]);
        const next = yield* replaceSandbox(sessionId, sandboxId);
        yield* step(sessionId, reported(next, 0, true));
        yield* note(1, { sandboxId: next });
        yield* step(sessionId, reported(next, 1));
        expect(turns(yield* told(2))).toEqual([1, 1]);
      }),
    );

    check(
      "is told also of a sandbox whose daemon does not say which turn of the conversation it was",
      Effect.gen(function* () {
        const { sessionId, sandboxId, note, told } = yield* atWork;
        yield* note(1, { conversation: null });
        yield* step(sessionId, reported(sandboxId, 1));
        expect(yield* told(1)).toMatchObject([{ turn: 1, turn_id: null }]);
      }),
    );
  });
};
