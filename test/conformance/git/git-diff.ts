/** Diffs in every git backend (src/git/port.ts). A part of the suite in git.ts. */
import { expect } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { randomUUID } from "node:crypto";
import { GitBackend, type Repository } from "../../../src/git/port.ts";
import { SimulatedRepositories } from "../../twins/git/repositories.ts";

type Test = Effect.Effect<void, unknown, GitBackend | SimulatedRepositories>;

const LONG = Array.from({ length: 200 }, (_, n) => `line ${n}\n`).join("");

/** `main` has one file, `work` adds others. */
const scene = Effect.gen(function* () {
  const backend = yield* GitBackend;
  const { commit } = yield* SimulatedRepositories;
  const repository: Repository = { projectId: randomUUID() };
  yield* backend.create({ ...repository, importFrom: null, defaultBranch: "main" });
  const files = { "README.md": "one\n" };
  const onto = yield* backend.resolveBase(repository, "main");
  const tip = yield* commit(repository, { branch: "main", onto, files, subject: "Add a readme" });
  const added = { "a/long.txt": LONG, "b/*.txt": "star\n", "b/c.txt": "plain\n" };
  const work = { branch: "work", onto: tip, files: { ...files, ...added }, subject: "Work" };
  yield* commit(repository, work);
  return (part: { readonly maxBytes: number; readonly path?: string }) =>
    backend.diff(repository, { base: "main", head: "work", ...part });
});

type Live = (name: string, test: () => Test) => void;

/** Registers the part. @param more registers its variations */
export const checkDiffs = (live: Live, more: Live): void => {
  live("returns the diff, and cuts a long one at a line with a note", () =>
    Effect.gen(function* () {
      const diff = yield* scene;
      const whole = yield* diff({ maxBytes: 100_000 });
      expect(whole).toContain("+line 199\n");
      expect(whole).not.toContain("README");
      const cut = yield* diff({ maxBytes: 500 });
      expect(cut).not.toContain("+line 199\n");
      const [last, ...kept] = cut.trimEnd().split("\n").toReversed();
      expect(last).toBe("[The diff is longer than 500 bytes and was cut here.]");
      expect(whole.startsWith(kept.toReversed().join("\n"))).toBe(true);
    }),
  );

  more("returns the diff of one file, by its exact path, also behind a long one", () =>
    Effect.gen(function* () {
      const diff = yield* scene;
      const star = yield* diff({ maxBytes: 500, path: "b/*.txt" });
      expect(star).toContain("+star\n");
      expect(star).not.toContain("+plain\n");
      expect(yield* diff({ maxBytes: 500, path: "a/long.txt" })).toContain("was cut here.]");
      expect(yield* diff({ maxBytes: 500, path: "README.md" })).toBe("");
      expect(yield* diff({ maxBytes: 500, path: "../outside" })).toBe("");
    }),
  );
};
