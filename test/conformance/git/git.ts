/**
 * The behaviour of every git backend (src/git/port.ts, G1 to G5). A suite runs it over its layer, which also provides a
 * way to add commits and tags.
 */
import { expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Layer from "effect/Layer";
import { randomUUID } from "node:crypto";
import { GitBackend, GitError, type Repository } from "../../../src/git/port.ts";
import { SimulatedRepositories } from "../../twins/git/repositories.ts";
import { checkDiffs } from "./git-diff.ts";
import { checkFileCommits } from "./git-commit-file.ts";
import { checkMerges } from "./git-merge.ts";
import { checkTrees } from "./git-trees.ts";

const decode = (bytes: Uint8Array | null): string | null =>
  bytes === null ? null : Buffer.from(bytes).toString("utf8");

/** A fresh repository whose `main` contains one readme, and its tip. */
const sample = Effect.gen(function* () {
  const backend = yield* GitBackend;
  const pushes = yield* SimulatedRepositories;
  const repository: Repository = { projectId: randomUUID() };
  yield* backend.create({ ...repository, importFrom: null, defaultBranch: "main" });
  const tip = yield* pushes.commit(repository, {
    branch: "main",
    onto: yield* backend.resolveBase(repository, "main"),
    files: { "README.md": "one\ntwo\n", "docs/guide.md": "guide\n" },
    subject: "Add a readme",
  });
  return { backend, pushes, repository, tip };
});

const failureCode = <A>(effect: Effect.Effect<A, GitError, GitBackend>) =>
  Effect.map(Effect.flip(effect), (error) => error.code);

type Live = (
  name: string,
  test: () => Effect.Effect<void, unknown, GitBackend | SimulatedRepositories>,
) => void;

/**
 * Registers the suite. `layer` makes a separate backend for each test.
 *
 * @param isSample without variations of merges and reads: every backend that runs git makes them in a repository on this machine, by the same functions.
 */
export const gitConformance = (
  layer: Layer.Layer<GitBackend | SimulatedRepositories, GitError>,
  isSample = false,
): void => {
  const live: Live = (name, test) => it.live(name, () => Effect.provide(test(), layer));

  live("creates a repository with one empty commit on the given branch, once", () =>
    Effect.gen(function* () {
      const backend = yield* GitBackend;
      const request = { projectId: randomUUID(), importFrom: null, defaultBranch: "trunk" };
      const made = yield* Effect.all([backend.create(request), backend.create(request)], { concurrency: 2 });
      expect(made).toEqual([{ defaultBranch: "trunk" }, { defaultBranch: "trunk" }]);
      const tip = yield* backend.branchTip(request, "trunk");
      const again = yield* backend.create({ ...request, defaultBranch: "other" });
      expect(again).toEqual({ defaultBranch: "trunk" });
      expect(yield* backend.branchTip(request, "trunk")).toBe(tip);
      expect(tip).toMatch(/^[0-9a-f]{40}$/);
    }),
  );

  live("names the default branch main if no name is given", () =>
    Effect.gen(function* () {
      const backend = yield* GitBackend;
      const made = yield* backend.create({ projectId: randomUUID(), importFrom: null, defaultBranch: null });
      expect(made.defaultBranch).toBe("main");
    }),
  );

  live("changes the default branch to an existing one", () =>
    Effect.gen(function* () {
      const { backend, repository, tip } = yield* sample;
      yield* backend.createBranch(repository, { branch: "next", commit: tip });
      yield* backend.setDefaultBranch(repository, "next");
      expect(yield* backend.create({ ...repository, importFrom: null, defaultBranch: null })).toEqual({
        defaultBranch: "next",
      });
      expect(yield* failureCode(backend.setDefaultBranch(repository, "nowhere"))).toBe("unknown_ref");
    }),
  );

  live("refuses a session's branch as the default branch [G09] [I17]", () =>
    Effect.gen(function* () {
      const { backend, repository, tip } = yield* sample;
      const branch = randomUUID();
      yield* backend.createBranch(repository, { branch, commit: tip });
      expect(yield* failureCode(backend.setDefaultBranch(repository, branch))).toBe("reserved_branch");
      const made = backend.create({ projectId: randomUUID(), importFrom: null, defaultBranch: branch });
      expect(yield* failureCode(made)).toBe("reserved_branch");
      expect(yield* backend.create({ ...repository, importFrom: null, defaultBranch: null })).toEqual({
        defaultBranch: "main",
      });
    }),
  );

  live("resolves a default branch by its name if a tag has the same name", () =>
    Effect.gen(function* () {
      const { backend, pushes, repository, tip } = yield* sample;
      yield* pushes.tag(repository, "main", tip);
      expect(yield* backend.create({ ...repository, importFrom: null, defaultBranch: null })).toEqual({
        defaultBranch: "main",
      });
    }),
  );

  live("accepts no name that is not shown as it is [G01]", () =>
    Effect.gen(function* () {
      const { backend, repository, tip } = yield* sample;
      const names = [
        "ma\u200bin",
        "main\u202e",
        "\ufffd\ufffd",
        "cafe\u0301",
        "Refs/heads/main",
        "\ufeffmain",
      ];
      for (const name of names) {
        const made = backend.createBranch(repository, { branch: name, commit: tip });
        expect(yield* failureCode(made), name).toBe("unknown_ref");
        expect(yield* failureCode(backend.resolveBase(repository, name)), name).toBe("unknown_ref");
        expect(yield* failureCode(backend.setDefaultBranch(repository, name)), name).toBe("unknown_ref");
        expect(yield* backend.branchTip(repository, name), name).toBeNull();
      }
    }),
  );

  live("lists the branches of people in order, and as many as asked for", () =>
    Effect.gen(function* () {
      const { backend, pushes, repository, tip } = yield* sample;
      yield* backend.createBranch(repository, { branch: randomUUID(), commit: tip });
      yield* backend.createBranch(repository, { branch: "release/2", commit: tip });
      yield* pushes.commit(repository, { branch: "Zebra", onto: tip, files: {}, subject: "Zebra" });
      expect(yield* backend.branches(repository, { limit: 10 })).toEqual(["Zebra", "main", "release/2"]);
      expect(yield* backend.branches(repository, { limit: 2 })).toEqual(["Zebra", "main"]);
      expect(yield* failureCode(backend.branches({ projectId: randomUUID() }, { limit: 1 }))).toBe(
        "unknown_repository",
      );
    }),
  );

  live("reports unknown_repository for an unknown project, and for an invalid project id", () =>
    Effect.gen(function* () {
      const backend = yield* GitBackend;
      for (const projectId of [randomUUID(), "../../etc", "", "a/b"]) {
        expect(yield* failureCode(backend.branchTip({ projectId }, "main"))).toBe("unknown_repository");
      }
    }),
  );

  live("forgets a removed repository, and a second removal is no error", () =>
    Effect.gen(function* () {
      const { backend, repository } = yield* sample;
      yield* backend.remove(repository);
      yield* backend.remove(repository);
      expect(yield* failureCode(backend.resolveBase(repository, "main"))).toBe("unknown_repository");
    }),
  );

  live("resolves a branch, else a tag, else a full commit that a branch reaches [G01]", () =>
    Effect.gen(function* () {
      const { backend, pushes, repository, tip } = yield* sample;
      const files = { "README.md": "more\n" };
      const later = yield* pushes.commit(repository, { branch: "main", onto: tip, files, subject: "More" });
      yield* pushes.tag(repository, "v1", tip);
      yield* pushes.tag(repository, "main", tip);
      expect(yield* backend.resolveBase(repository, "main")).toBe(later);
      expect(yield* backend.resolveBase(repository, "v1")).toBe(tip);
      expect(yield* backend.resolveBase(repository, tip)).toBe(tip);
      expect(yield* backend.resolveBase(repository, tip.toUpperCase())).toBe(tip);
    }),
  );

  live("does not resolve a name that is missing, unreachable or not plain [G01]", () =>
    Effect.gen(function* () {
      const { backend, pushes, repository, tip } = yield* sample;
      const files = { "README.md": "lost\n" };
      const lost = yield* pushes.commit(repository, { branch: "side", onto: tip, files, subject: "Lost" });
      yield* pushes.commit(repository, { branch: "side", onto: tip, files: {}, subject: "Instead" });
      const names = [
        "nowhere",
        lost,
        "f".repeat(40),
        tip.slice(0, 12),
        "HEAD",
        "refs/heads/main",
        "main~1",
        "-x",
        "",
      ];
      for (const name of names) {
        expect(yield* failureCode(backend.resolveBase(repository, name)), name).toBe("unknown_ref");
      }
    }),
  );

  live("takes another session's branch as a base [G02]", () =>
    Effect.gen(function* () {
      const { backend, repository, tip } = yield* sample;
      const session = randomUUID();
      yield* backend.createBranch(repository, { branch: session, commit: tip });
      expect(yield* backend.resolveBase(repository, session)).toBe(tip);
    }),
  );

  live("creates a branch once: the same tip again is success, another is a conflict [G11]", () =>
    Effect.gen(function* () {
      const { backend, repository, tip } = yield* sample;
      const root = yield* backend.compare(repository, { base: tip, head: tip });
      expect(root.commits).toEqual([]);
      const branch = randomUUID();
      expect(yield* backend.branchTip(repository, branch)).toBeNull();
      yield* backend.createBranch(repository, { branch, commit: tip });
      yield* backend.createBranch(repository, { branch, commit: tip });
      expect(yield* backend.branchTip(repository, branch)).toBe(tip);
      const pushes = yield* SimulatedRepositories;
      const other = yield* pushes.commit(repository, {
        branch: "main",
        onto: tip,
        files: {},
        subject: "Empty",
      });
      expect(yield* failureCode(backend.createBranch(repository, { branch, commit: other }))).toBe(
        "branch_conflict",
      );
      expect(yield* backend.branchTip(repository, branch)).toBe(tip);
    }),
  );

  live("creates no branch from a missing commit or under a name that git refuses", () =>
    Effect.gen(function* () {
      const { backend, repository, tip } = yield* sample;
      const absent = backend.createBranch(repository, { branch: "x", commit: "e".repeat(40) });
      expect(yield* failureCode(absent)).toBe("unknown_ref");
      const named = backend.createBranch(repository, { branch: "--force", commit: tip });
      expect(yield* failureCode(named)).toBe("unknown_ref");
    }),
  );

  live("lets one of several commits win when they race for one branch [G11]", () =>
    Effect.gen(function* () {
      const { backend, pushes, repository, tip } = yield* sample;
      const commits = yield* Effect.forEach([1, 2, 3, 4, 5, 6], (n) =>
        pushes.commit(repository, { branch: `b${n}`, onto: tip, files: { n: `${n}\n` }, subject: `${n}` }),
      );
      const branch = randomUUID();
      const outcomes = yield* Effect.forEach(
        commits,
        (commit) => Effect.exit(backend.createBranch(repository, { branch, commit })),
        { concurrency: "unbounded" },
      );
      const winners = commits.filter((_, index) => Exit.isSuccess(outcomes[index] ?? Exit.void));
      expect(winners).toEqual([yield* backend.branchTip(repository, branch)]);
    }),
  );

  live("reads a file at a commit, and null for a missing file", () =>
    Effect.gen(function* () {
      const { backend, repository, tip: commit } = yield* sample;
      const read = (path: string) => backend.readFile(repository, { commit, path, maxBytes: 100 });
      expect(decode(yield* read("docs/guide.md"))).toBe("guide\n");
      for (const path of [
        "docs/none.md",
        "none",
        "../README.md",
        "/README.md",
        "docs//guide.md",
        "README.md/",
        "",
      ]) {
        expect(yield* read(path), path).toBeNull();
      }
    }),
  );

  live("follows no symbolic link and enters no submodule when it reads [M14] [M16]", () =>
    Effect.gen(function* () {
      const { backend, pushes, repository, tip } = yield* sample;
      const commit = yield* pushes.commit(repository, {
        branch: "links",
        onto: tip,
        files: {
          "docs/guide.md": "guide\n",
          link: { symlink: "docs/guide.md" },
          away: { symlink: "/etc" },
          module: { submodule: tip },
        },
        subject: "Add links",
      });
      const read = (path: string) => backend.readFile(repository, { commit, path, maxBytes: 100 });
      for (const path of ["link", "away", "module", "docs"]) {
        expect(yield* failureCode(read(path)), path).toBe("not_a_file");
      }
      expect(yield* read("away/passwd")).toBeNull();
      expect(yield* read("module/README.md")).toBeNull();
    }),
  );

  live("refuses a file beyond the given size [M16]", () =>
    Effect.gen(function* () {
      const { backend, repository, tip: commit } = yield* sample;
      const read = (maxBytes: number) =>
        backend.readFile(repository, { commit, path: "README.md", maxBytes });
      expect(yield* failureCode(read(7))).toBe("file_too_large");
      expect(decode(yield* read(8))).toBe("one\ntwo\n");
    }),
  );

  live("compares: commits, files, merge base, and that it merges", () =>
    Effect.gen(function* () {
      const { backend, pushes, repository, tip } = yield* sample;
      const keep = { "docs/guide.md": "guide\n" };
      const first = { ...keep, "README.md": "one\n2\nthree\n" };
      const one = yield* pushes.commit(repository, {
        branch: "work",
        onto: tip,
        files: first,
        subject: "One",
      });
      const second = { ...first, "new.txt": "x\n" };
      const two = yield* pushes.commit(repository, {
        branch: "work",
        onto: one,
        files: second,
        subject: "Two",
      });
      const moved = { ...keep, "README.md": "one\ntwo\n", "other.txt": "y\n" };
      const base = yield* pushes.commit(repository, {
        branch: "main",
        onto: tip,
        files: moved,
        subject: "Aside",
      });
      const comparison = yield* backend.compare(repository, { base: "main", head: "work" });
      expect(comparison).toMatchObject({ base, head: two, mergeBase: tip, mergeable: true, conflicts: [] });
      expect(comparison).toMatchObject({ commitsTotal: 2, filesTotal: 2 });
      expect(comparison.linesTotal).toEqual({ additions: 3, deletions: 1 });
      expect(comparison.commits.map(({ sha, subject }) => [sha, subject])).toEqual([
        [two, "Two"],
        [one, "One"],
      ]);
      expect(comparison.filesChanged).toEqual([
        { path: "README.md", additions: 2, deletions: 1 },
        { path: "new.txt", additions: 1, deletions: 0 },
      ]);
      const failed = yield* failureCode(backend.compare(repository, { base: "main", head: "nowhere" }));
      expect(failed).toBe("unknown_ref");
    }),
  );

  live("returns the number of files with a list of the first ones", () =>
    Effect.gen(function* () {
      const { backend, pushes, repository, tip } = yield* sample;
      const names = Array.from({ length: 3_010 }, (_, n) => `f${String(n).padStart(4, "0")}`);
      const files = Object.fromEntries(names.map((name) => [name, `${name}\n`]));
      yield* pushes.commit(repository, { branch: "many", onto: tip, files, subject: "Many" });
      const comparison = yield* backend.compare(repository, { base: "main", head: "many" });
      expect(comparison.filesTotal).toBe(3_012);
      expect(comparison.linesTotal.additions).toBe(3_010);
      expect(comparison.filesChanged).toHaveLength(3_000);
    }),
  );

  live("names the paths that a merge would leave in conflict", () =>
    Effect.gen(function* () {
      const { backend, pushes, repository, tip } = yield* sample;
      const write = (branch: string, text: string) =>
        pushes.commit(repository, {
          branch,
          onto: tip,
          files: { "README.md": text, "docs/guide.md": `${text}guide\n`, [`${branch}.txt`]: "fine\n" },
          subject: branch,
        });
      yield* write("ours", "ours\n");
      yield* write("theirs", "theirs\n");
      const comparison = yield* backend.compare(repository, { base: "ours", head: "theirs" });
      expect(comparison.mergeable).toBe(false);
      expect(comparison.conflicts.toSorted()).toEqual(["README.md", "docs/guide.md"]);
    }),
  );

  live("reports that histories without a common commit do not merge", () =>
    Effect.gen(function* () {
      const { backend, pushes, repository } = yield* sample;
      yield* pushes.commit(repository, {
        branch: "alien",
        onto: null,
        files: { a: "a\n" },
        subject: "Alien",
      });
      const comparison = yield* backend.compare(repository, { base: "main", head: "alien" });
      expect(comparison).toMatchObject({ mergeBase: null, mergeable: false, conflicts: [] });
      expect(comparison.commits).toHaveLength(1);
    }),
  );

  checkFileCommits(live);
  const more: Live = isSample ? () => undefined : live;
  checkMerges(live, more);
  checkDiffs(live, more);
  checkTrees(live, more);
};
