/** Conformance: the logs of builds. */
import { randomUUID } from "node:crypto";
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import {
  BUILD_LOG_BYTES,
  EnvironmentBuilds,
} from "../../../../src/store/ports/projects/environment-builds.ts";
import { openBuild, sourceOf } from "../../../support/world/environment-builds.ts";
import { makeWorld } from "../../../support/world/world.ts";
import { type Check } from "../fixture.ts";

const KIB = 1024;

/** A build that waits for its place, and the functions of its log. */
const logged = Effect.fnUntraced(function* (key = "k1", projectId?: string) {
  const builds = yield* EnvironmentBuilds;
  const owner = projectId ?? (yield* makeWorld(5)).projectId;
  const opened = yield* openBuild(owner, { source: sourceOf(key) });
  const id = opened?.build.id ?? (yield* Effect.die("the build was not opened"));
  return {
    id,
    projectId: owner,
    append: (text: string) => builds.appendLog(id, text),
    clear: builds.clearLog(id),
    read: (after = 0, limit = 10_000) => builds.log(id, { after, limit }),
  };
});

const numbers = (pieces: readonly { readonly number: number }[]) => pieces.map(({ number }) => number);

export const checkBuildLogs = (check: Check): void => {
  describe("the log of a build", () => {
    check(
      "is read in pieces, in their order, behind a number",
      Effect.gen(function* () {
        const { append, read, projectId } = yield* logged();
        const other = yield* logged("k2", projectId);
        expect(yield* read()).toEqual([]);
        yield* other.append("another build's\n");
        for (const text of ["one\n", "two ünï \u{1f600}\n", "three\n"]) yield* append(text);
        const [one, two, three] = [
          { number: 1, text: "one\n" },
          { number: 2, text: "two ünï \u{1f600}\n" },
          { number: 3, text: "three\n" },
        ];
        expect(yield* read()).toEqual([one, two, three]);
        expect(yield* read(0, 2)).toEqual([one, two]);
        expect(yield* read(1, 1)).toEqual([two]);
        expect(yield* read(2)).toEqual([three]);
        expect(yield* read(3)).toEqual([]);
      }),
    );

    check(
      "has no gap and no number twice after many writes at once",
      Effect.gen(function* () {
        const { append, read } = yield* logged();
        const texts = Array.from({ length: 12 }, (_, index) => `line ${index}\n`);
        yield* Effect.forEach(texts, append, { concurrency: "unbounded" });
        const pieces = yield* read();
        expect(numbers(pieces)).toEqual(texts.map((_, index) => index + 1));
        expect(pieces.map(({ text }) => text).toSorted()).toEqual(texts.toSorted());
      }),
    );

    check(
      "is not written for a build that does not exist",
      Effect.gen(function* () {
        const { appendLog, clearLog, log } = yield* EnvironmentBuilds;
        const id = randomUUID();
        yield* appendLog(id, "no build's\n");
        yield* clearLog(id);
        expect(yield* log(id, { after: 0, limit: 10 })).toEqual([]);
      }),
    );

    check(
      "holds exactly its limit in bytes, then one last piece that says so, and nothing more",
      Effect.gen(function* () {
        const { append, read } = yield* logged();
        // A character of two bytes: the limit is not one of characters.
        const piece = "ü".repeat((256 * KIB) / 2);
        const count = BUILD_LOG_BYTES / (256 * KIB);
        for (let index = 0; index < count; index += 1) yield* append(piece);
        expect((yield* read()).every(({ text }) => text === piece)).toBe(true);
        expect(yield* read()).toHaveLength(count);
        yield* append("x");
        yield* append("y");
        yield* append(piece);
        const pieces = yield* read();
        expect(numbers(pieces)).toEqual(Array.from({ length: count + 1 }, (_, index) => index + 1));
        expect(pieces.at(-1)?.text).toMatch(/longer than 4 MiB/);
      }),
    );

    check(
      "stays full after a piece that does not fit, even for shorter ones",
      Effect.gen(function* () {
        const { append, read } = yield* logged();
        yield* append("short\n");
        yield* append("z".repeat(BUILD_LOG_BYTES));
        yield* append("short again\n");
        const [first, last, ...more] = yield* read();
        expect([first?.text, last?.number, more]).toEqual(["short\n", 2, []]);
        expect(last?.text).toMatch(/longer than 4 MiB/);
      }),
    );

    check(
      "begins again after it was cleared, with its first number and its whole limit",
      Effect.gen(function* () {
        const { append, clear, read, projectId } = yield* logged();
        const other = yield* logged("k2", projectId);
        yield* other.append("another build's\n");
        yield* append("z".repeat(BUILD_LOG_BYTES + 1));
        yield* append("lost\n");
        yield* clear;
        expect(yield* read()).toEqual([]);
        yield* append("second try\n");
        yield* append("goes on\n");
        expect(yield* read()).toEqual([
          { number: 1, text: "second try\n" },
          { number: 2, text: "goes on\n" },
        ]);
        expect(yield* other.read()).toEqual([{ number: 1, text: "another build's\n" }]);
      }),
    );
  });
};
