/** Conformance: logs that outlive their sandboxes. */
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import { Sandboxes } from "../../../../src/store/ports/sessions/sandboxes.ts";
import { LOG_KEPT_BYTES, SessionLogs } from "../../../../src/store/ports/sessions/session-logs.ts";
import { type Check } from "../fixture.ts";
import { admitSession, openSandbox, tellSandbox, tellSession } from "../../../support/world/sessions.ts";
import { makeWorld, NOON } from "../../../support/world/world.ts";

/** An ended boot of the session, whose sandbox has no pending command. */
const endedBoot = Effect.fnUntraced(function* (sessionId: string, now: number) {
  const { id } = yield* openSandbox(sessionId, now);
  yield* tellSandbox(id, { type: "stop.requested" }, now);
  const { memory } = yield* Sandboxes;
  const loaded = yield* memory.load(id);
  yield* memory.complete(id, loaded?.pending.map((entry) => entry.id) ?? []);
  return id;
});

/** A log of this many bytes, in lines of 100. */
const logOf = (letter: string, bytes: number): string => `${letter.repeat(99)}\n`.repeat(bytes / 100);

const textsOf = Effect.fnUntraced(function* (sessionId: string) {
  const logs = yield* SessionLogs;
  const texts: string[] = [];
  for (const { sandboxId } of yield* logs.boots(sessionId)) texts.push(yield* logs.read(sandboxId));
  return texts;
});

export const checkLogs = (check: Check): void => {
  describe("a session's kept logs", () => {
    check(
      "stay as they were kept first, boot after boot",
      Effect.gen(function* () {
        const logs = yield* SessionLogs;
        const sessionId = yield* admitSession(yield* makeWorld(5));
        const first = yield* endedBoot(sessionId, NOON);
        const second = yield* endedBoot(sessionId, NOON + 1);
        yield* logs.keep({ sandboxId: second, text: "second: ünï\n", now: NOON + 2 });
        yield* logs.keep({ sandboxId: first, text: "first\n", now: NOON + 3 });
        yield* logs.keep({ sandboxId: first, text: "another text\n", now: NOON + 4 });
        expect(yield* logs.boots(sessionId)).toEqual([
          { sandboxId: first, isKept: true },
          { sandboxId: second, isKept: true },
        ]);
        expect(yield* textsOf(sessionId)).toEqual(["first\n", "second: ünï\n"]);
      }),
    );

    check(
      "include boots that may still write, and not those without a log",
      Effect.gen(function* () {
        const logs = yield* SessionLogs;
        const sessionId = yield* admitSession(yield* makeWorld(5));
        const silent = yield* endedBoot(sessionId, NOON);
        const ending = yield* openSandbox(sessionId, NOON + 1);
        yield* tellSandbox(ending.id, { type: "stop.requested" }, NOON + 1);
        const live = yield* openSandbox(sessionId, NOON + 2);
        yield* logs.keep({ sandboxId: silent, text: "", now: NOON + 3 });
        expect(yield* logs.boots(sessionId)).toEqual([
          { sandboxId: ending.id, isKept: false },
          { sandboxId: live.id, isKept: false },
        ]);
        expect(yield* logs.read(live.id)).toBe("");
      }),
    );

    check(
      "keep the newest mebibyte of a session, over all its boots, in whole lines",
      Effect.gen(function* () {
        const logs = yield* SessionLogs;
        const sessionId = yield* admitSession(yield* makeWorld(5));
        const texts: string[] = [];
        for (const [index, letter] of ["a", "b", "c"].entries()) {
          const sandboxId = yield* endedBoot(sessionId, NOON + index);
          yield* logs.keep({ sandboxId, text: logOf(letter, 600_000), now: NOON + index });
        }
        texts.push(...(yield* textsOf(sessionId)));
        // The fitting part of the second log is cut to whole lines. No part of the first one fits.
        const room = Math.floor((LOG_KEPT_BYTES - 600_000) / 100) * 100;
        expect(texts.map((text) => [text[0], text.length])).toEqual([
          ["b", room],
          ["c", 600_000],
        ]);
        const large = yield* endedBoot(sessionId, NOON + 9);
        yield* logs.keep({ sandboxId: large, text: logOf("d", 2_000_000), now: NOON + 9 });
        const [only, ...others] = yield* textsOf(sessionId);
        expect([only?.[0], only?.length, others]).toEqual(["d", Math.floor(LOG_KEPT_BYTES / 100) * 100, []]);
        // An older boot that ends late finds no room, and takes none from newer ones.
        const late = yield* endedBoot(sessionId, NOON + 3);
        yield* logs.keep({ sandboxId: late, text: logOf("e", 1000), now: NOON + 10 });
        expect((yield* textsOf(sessionId)).map((text) => text[0])).toEqual(["d"]);
      }),
    );

    check(
      "are removed with their session, and a deleted session gets none",
      Effect.gen(function* () {
        const logs = yield* SessionLogs;
        const world = yield* makeWorld(5);
        const sessionId = yield* admitSession(world);
        const other = yield* admitSession(world);
        const before = yield* endedBoot(sessionId, NOON);
        const after = yield* endedBoot(sessionId, NOON + 1);
        const others = yield* endedBoot(other, NOON);
        for (const sandboxId of [before, others]) yield* logs.keep({ sandboxId, text: "kept\n", now: NOON });
        yield* tellSession(sessionId, { type: "delete.requested" });
        yield* logs.keep({ sandboxId: after, text: "too late\n", now: NOON });
        expect(yield* logs.boots(sessionId)).toEqual([]);
        expect(yield* logs.read(before)).toBe("");
        expect(yield* logs.read(after)).toBe("");
        expect(yield* textsOf(other)).toEqual(["kept\n"]);
      }),
    );
  });
};
