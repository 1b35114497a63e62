/** Merging in every git backend (src/git/port.ts, G4). A part of the suite in git.ts. */
import { expect } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { randomUUID } from "node:crypto";
import { GitBackend, type Repository } from "../../../src/git/port.ts";
import { type SimulatedEntry, SimulatedRepositories } from "../../twins/git/repositories.ts";

type Test = Effect.Effect<void, unknown, GitBackend | SimulatedRepositories>;
type Live = (name: string, test: () => Test) => void;
type Files = Readonly<Record<string, SimulatedEntry>>;

const README = { "README.md": "one\n" };
const AT = Date.UTC(2026, 10, 20, 12);

/** A repository with one commit on `main`, and functions to write and to merge. */
const scene = Effect.gen(function* () {
  const backend = yield* GitBackend;
  const { commit } = yield* SimulatedRepositories;
  const repository: Repository = { projectId: randomUUID() };
  yield* backend.create({ ...repository, importFrom: null, defaultBranch: "main" });
  const write = (branch: string, onto: string | null, files: Files) =>
    commit(repository, { branch, onto, files: { ...README, ...files }, subject: `Write ${branch}` });
  const tip = yield* write("main", yield* backend.resolveBase(repository, "main"), {});
  const merge = (
    head: string,
    fields: { readonly branch?: string; readonly message?: string; readonly squash?: true } = {},
  ) => backend.merge(repository, { branch: "main", head, message: "Merge it", at: AT, ...fields });
  const tipOf = (branch: string) => backend.branchTip(repository, branch);
  const read = (at: string, path: string) =>
    Effect.map(backend.readFile(repository, { commit: at, path, maxBytes: 100 }), (bytes) =>
      bytes === null ? null : Buffer.from(bytes).toString("utf8"),
    );
  /** The commits of `head` that `base` lacks. */
  const between = (base: string, head: string) =>
    Effect.map(backend.compare(repository, { base, head }), ({ commits }) => commits);
  const hasChanges = (head: string) => backend.hasChanges(repository, { branch: "main", head });
  return { tip, write, merge, tipOf, read, between, hasChanges };
});

const checkMerged = (live: Live, more: Live): void => {
  live("fast-forwards the branch to the head if it has no commits of its own", () =>
    Effect.gen(function* () {
      const { tip, write, merge, tipOf } = yield* scene;
      const one = yield* write("work", tip, { a: "1\n" });
      const two = yield* write("work", one, { a: "2\n" });
      expect(yield* merge(two)).toEqual({ outcome: "merged", base: tip, commit: two });
      expect([yield* tipOf("main"), yield* tipOf("work")]).toEqual([two, two]);
    }),
  );

  live("otherwise makes a commit of the platform with both sides, and the given message and date", () =>
    Effect.gen(function* () {
      const { tip, write, merge, tipOf, read, between } = yield* scene;
      const head = yield* write("work", tip, { a: "a\n", "README.md": "two\n" });
      const base = yield* write("main", tip, { b: "b\n" });
      const merged = yield* merge(head, { message: "Merge the work\n\nIt is good.\n" });
      const commit = (yield* tipOf("main")) ?? "";
      expect(merged).toEqual({ outcome: "merged", base, commit });
      expect([yield* read(commit, "README.md"), yield* read(commit, "a"), yield* read(commit, "b")]).toEqual([
        "two\n",
        "a\n",
        "b\n",
      ]);
      const [made, ...others] = yield* between(base, commit);
      expect(made).toEqual({
        sha: commit,
        subject: "Merge the work",
        authorName: "Platform",
        committedAt: new Date(AT).toISOString(),
      });
      expect(others.map(({ sha }) => sha)).toEqual([head]);
      expect((yield* between(head, commit)).map(({ sha }) => sha)).toEqual([commit, base]);
    }),
  );

  more("as one commit on the branch if that is asked for, once, by the head's author", () =>
    Effect.gen(function* () {
      const { tip, write, merge, tipOf, read, between, hasChanges } = yield* scene;
      const one = yield* write("work", tip, { a: "1\n" });
      const head = yield* write("work", one, { a: "2\n" });
      expect(yield* hasChanges(head)).toBeNull();
      const merged = yield* merge(head, { squash: true, message: "All of it" });
      const commit = (yield* tipOf("main")) ?? "";
      expect(merged).toEqual({ outcome: "merged", base: tip, commit });
      expect(yield* read(commit, "a")).toBe("2\n");
      const made = yield* between(tip, commit);
      expect(made.map(({ sha, subject }) => [sha, subject])).toEqual([[commit, "All of it"]]);
      expect(made[0]?.authorName).not.toBe("Platform");
      // Its commits are still not on the branch, but their changes are.
      expect(yield* between(commit, head)).toHaveLength(2);
      expect(yield* hasChanges(head)).toBe(commit);
      expect(yield* merge(head, { squash: true })).toEqual({ outcome: "contained", base: commit });
      const later = yield* write("main", commit, { a: "2\n", b: "b\n" });
      expect(yield* hasChanges(head)).toBe(later);
      const other = yield* write("other", tip, { c: "c\n" });
      const beside = yield* merge(other, { squash: true });
      expect(beside).toMatchObject({ outcome: "merged", base: later });
      expect(yield* read((yield* tipOf("main")) ?? "", "b")).toBe("b\n");
    }),
  );

  more("removes files that the head removed, and keeps files that the branch added", () =>
    Effect.gen(function* () {
      const { tip, write, merge, tipOf, read } = yield* scene;
      const full = yield* write("main", tip, { old: "old\n" });
      const head = yield* write("work", full, { new: "new\n" });
      yield* write("main", full, { old: "old\n", own: "own\n" });
      yield* merge(head);
      const commit = (yield* tipOf("main")) ?? "";
      expect([yield* read(commit, "old"), yield* read(commit, "new"), yield* read(commit, "own")]).toEqual([
        null,
        "new\n",
        "own\n",
      ]);
    }),
  );

  more("merges a branch again that has new commits after its merge, and finds those commits", () =>
    Effect.gen(function* () {
      const { tip, write, merge, tipOf, read } = yield* scene;
      const first = yield* write("work", tip, { a: "1\n" });
      yield* write("main", tip, { b: "b\n" });
      yield* merge(first);
      const second = yield* write("work", first, { a: "2\n" });
      expect((yield* merge(second)).outcome).toBe("merged");
      const commit = (yield* tipOf("main")) ?? "";
      expect([yield* read(commit, "a"), yield* read(commit, "b")]).toEqual(["2\n", "b\n"]);
    }),
  );

  live("makes several concurrent merges: a late one merges into the results of the others", () =>
    Effect.gen(function* () {
      const { tip, write, merge, tipOf, read, between } = yield* scene;
      const names = ["a", "b", "c", "d"];
      const heads = yield* Effect.forEach(names, (name) => write(name, tip, { [name]: `${name}\n` }));
      const outcomes = yield* Effect.forEach(heads, (head) => merge(head), { concurrency: "unbounded" });
      const commits = outcomes.map((made) => (made.outcome === "merged" ? made.commit : null));
      const bases = outcomes.map(({ base }) => base);
      const last = (yield* tipOf("main")) ?? "";
      // A chain without a fork: each merge began where another one ended.
      expect([...commits, tip].toSorted()).toEqual([...bases, last].toSorted());
      expect(new Set(bases).size).toBe(names.length);
      expect(commits.filter((commit) => heads.includes(commit ?? ""))).toHaveLength(1);
      for (const name of names) expect(yield* read(last, name)).toBe(`${name}\n`);
      expect(yield* between(last, tip)).toEqual([]);
    }),
  );
};

const checkNotMerged = (live: Live, more: Live): void => {
  live("reports nothing to merge for a head that the branch already contains, and makes no commit", () =>
    Effect.gen(function* () {
      const { tip, write, merge, tipOf } = yield* scene;
      const head = yield* write("work", tip, { a: "a\n" });
      const base = yield* write("main", tip, { b: "b\n" });
      expect(yield* merge(tip)).toEqual({ outcome: "contained", base });
      yield* merge(head);
      const merged = (yield* tipOf("main")) ?? "";
      for (const again of [head, base, merged]) {
        expect(yield* merge(again)).toEqual({ outcome: "contained", base: merged });
      }
      expect(yield* tipOf("main")).toBe(merged);
    }),
  );

  live("names the paths in conflict, and moves nothing", () =>
    Effect.gen(function* () {
      const { tip, write, merge, tipOf } = yield* scene;
      const head = yield* write("work", tip, { a: "theirs\n", b: "fine\n", "README.md": "theirs\n" });
      const base = yield* write("main", tip, { a: "ours\n", c: "fine\n", "README.md": "ours\n" });
      const merged = yield* merge(head);
      expect(merged).toMatchObject({ outcome: "conflict", base });
      expect(merged.outcome === "conflict" ? merged.paths.toSorted() : []).toEqual(["README.md", "a"]);
      expect([yield* tipOf("main"), yield* tipOf("work")]).toEqual([base, head]);
    }),
  );

  more("does not merge histories that have no commit in common", () =>
    Effect.gen(function* () {
      const { tip, write, merge, tipOf } = yield* scene;
      const head = yield* write("work", null, { a: "a\n" });
      expect(yield* merge(head)).toEqual({ outcome: "conflict", base: tip, paths: [] });
      expect(yield* tipOf("main")).toBe(tip);
    }),
  );

  more("refuses an invalid branch, and an incomplete or unknown commit id", () =>
    Effect.gen(function* () {
      const { tip, write, merge, tipOf } = yield* scene;
      const head = yield* write("work", tip, { a: "a\n" });
      for (const branch of ["nowhere", "refs/heads/main", "--all", "HEAD", tip]) {
        const error = yield* Effect.flip(merge(head, { branch }));
        expect(error.code, branch).toBe("unknown_ref");
      }
      for (const none of ["work", "f".repeat(40), head.slice(0, 12), "--all", "HEAD", ""]) {
        const error = yield* Effect.flip(merge(none));
        expect(error.code, none).toBe("unknown_ref");
      }
      expect([yield* tipOf("main"), yield* tipOf("work")]).toEqual([tip, head]);
    }),
  );

  live("moves only the named branch", () =>
    Effect.gen(function* () {
      const { tip, write, merge, tipOf } = yield* scene;
      const head = yield* write("work", tip, { a: "a\n" });
      const base = yield* write("next", tip, { b: "b\n" });
      const idle = yield* write("idle", tip, { c: "c\n" });
      const merged = yield* merge(head, { branch: "next" });
      expect(merged).toMatchObject({ outcome: "merged", base });
      expect([yield* tipOf("main"), yield* tipOf("work"), yield* tipOf("idle")]).toEqual([tip, head, idle]);
    }),
  );
};

/** Registers the part. @param more registers its variations */
export const checkMerges = (live: Live, more: Live): void => {
  checkMerged(live, more);
  checkNotMerged(live, more);
};
