/** Merging in hosted repositories: what the twin cannot show (the rest is in conformance/git/git-merge.ts). */
import { randomUUID } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as Effect from "effect/Effect";
import * as ManagedRuntime from "effect/ManagedRuntime";
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { hostedBackend } from "../../src/git/repository/hosted.ts";
import { GitBackend } from "../../src/git/port.ts";
import { hostedPushes } from "../conformance/git/git-pushes.ts";
import { type SimulatedEntry, SimulatedRepositories } from "../twins/git/repositories.ts";
import { git, gitOk } from "./git-client.ts";
import { gitStandIn } from "./git-stand-in.ts";

const root = mkdtempSync(join(tmpdir(), "merge-"));
const directory = join(root, "repositories");
const runtime = ManagedRuntime.make(hostedBackend({ directory }));
afterEach(() => void vi.unstubAllEnvs());
afterAll(async () => {
  await runtime.dispose();
  rmSync(root, { recursive: true, force: true });
});

const AT = Date.UTC(2026, 10, 20, 12);
const MAIN = "refs/heads/main";
let repository = { projectId: "" };
let bare = "";
/** The first commit of `main`, the tip of `work`, made from it, and of `main`, which went on. */
let fork = "";
let head = "";
let base = "";

const backend = <A, E>(use: (hosted: GitBackend["Service"]) => Effect.Effect<A, E>): Promise<A> =>
  runtime.runPromise(Effect.flatMap(GitBackend, use));
const write = (branch: string, onto: string | null, files: Readonly<Record<string, SimulatedEntry>>) =>
  Effect.runPromise(
    Effect.flatMap(SimulatedRepositories, ({ commit }) =>
      commit(repository, { branch, onto, files, subject: `Write ${branch}` }),
    ).pipe(Effect.provide(hostedPushes(directory))),
  );
const merge = (message = "Merge it") =>
  backend((hosted) => Effect.result(hosted.merge(repository, { branch: "main", head, message, at: AT })));
const tip = (): Promise<string> => gitOk(bare, "rev-parse", MAIN);
const parents = async (commit: string): Promise<readonly string[]> =>
  (await gitOk(bare, "log", "-1", "--format=%P", commit)).split(" ");
/** Commits from the fork to the tip, along the branch. */
const chain = async (): Promise<readonly string[]> =>
  (await gitOk(bare, "rev-list", "--first-parent", `${fork}..${MAIN}`)).split("\n");

beforeEach(async () => {
  repository = { projectId: randomUUID() };
  bare = join(directory, `${repository.projectId}.git`);
  await backend((hosted) => hosted.create({ ...repository, importFrom: null, defaultBranch: "main" }));
  fork = await write("main", null, { "README.md": "one\n" });
  head = await write("work", fork, { "README.md": "one\n", work: "work\n" });
  base = await write("main", fork, { "README.md": "one\n", main: "main\n" });
});

const text = (of: string) => Array.from({ length: 30 }, (_, n) => `${of} ${n}\n`).join("");

describe("a conflict", () => {
  const [a, b] = [text("a"), text("b")];

  it.each<
    [string, Record<string, string>, Record<string, string>, Record<string, string>, readonly string[]]
  >([
    [
      "a file and a directory",
      { z: "z\n" },
      { z: "z\n", x: "file\n" },
      { z: "z\n", "x/y": "below\n" },
      ["x"],
    ],
    ["a file that two sides rename", { x: a, z: "z\n" }, { y: a, z: "z\n" }, { w: a, z: "z\n" }, ["w", "y"]],
    ["two files under one name", { x: a, z: b }, { y: a, z: b }, { x: a, y: b }, ["y"]],
    [
      "a file in a directory that moved",
      { "old/a": a, "old/b": b },
      { "new/a": a, "new/b": b, "new/c": "main's\n" },
      { "old/a": a, "old/b": b, "old/c": "work's\n" },
      ["new/c", "old/c"],
    ],
    ["a file that one side removes", { x: a, z: b }, { z: b }, { x: `${a}more\n`, z: b }, ["x"]],
  ])("of %s is named by paths of the branches", async (_, before, ours, theirs, paths) => {
    fork = await write("main", null, before);
    base = await write("main", fork, ours);
    head = await write("work", fork, theirs);
    const { conflicts, mergeable } = await backend((hosted) => hosted.compare(repository, { base, head }));
    expect([mergeable, conflicts.toSorted()]).toEqual([false, paths]);
    expect(await merge()).toMatchObject({ success: { outcome: "conflict", paths: conflicts } });
    const there = await gitOk(bare, "ls-tree", "-r", "-t", "--name-only", base);
    const here = await gitOk(bare, "ls-tree", "-r", "-t", "--name-only", head);
    for (const path of conflicts) expect(`${there}\n${here}\n`).toContain(`${path}\n`);
  });
});

const fortyLines = (...changed: readonly number[]) =>
  Array.from({ length: 40 }, (_, n) => `${changed.includes(n) ? "changed" : "line"} ${n}\n`).join("");
const listOf = (...more: readonly string[]) => ["one", ...more].map((line) => `${line}\n`).join("");

describe("the base's .gitattributes", () => {
  it.each<[string, Record<string, string>, string, readonly [string, string, string], readonly string[]]>([
    [
      "-merge",
      { ".gitattributes": "data.json -merge\n" },
      "data.json",
      [fortyLines(), fortyLines(2), fortyLines(30)],
      ["data.json"],
    ],
    [
      "binary",
      { ".gitattributes": "*.lock binary\n" },
      "a/x.lock",
      [fortyLines(), fortyLines(2), fortyLines(30)],
      ["a/x.lock"],
    ],
    [
      "in a directory",
      { "a/.gitattributes": "* -merge\n" },
      "a/b/x",
      [fortyLines(), fortyLines(2), fortyLines(30)],
      ["a/b/x"],
    ],
    [
      "of another directory",
      { "b/.gitattributes": "* -merge\n" },
      "a/x",
      [fortyLines(), fortyLines(2), fortyLines(30)],
      [],
    ],
    [
      "merge=union",
      { ".gitattributes": "CHANGES.md merge=union\n" },
      "CHANGES.md",
      [listOf(), listOf("ours"), listOf("theirs")],
      [],
    ],
    [
      "that name an unknown driver",
      { ".gitattributes": "* merge=own\n" },
      "x",
      [fortyLines(), fortyLines(2), fortyLines(30)],
      [],
    ],
  ])("%s hold as in git merge", async (_, attributes, file, [before, ours, theirs], paths) => {
    fork = await write("main", null, { ...attributes, [file]: before });
    base = await write("main", fork, { ...attributes, [file]: ours });
    head = await write("work", fork, { ...attributes, [file]: theirs });
    const clone = join(root, randomUUID());
    await gitOk(root, "clone", "--quiet", bare, clone);
    const merged = await git(
      clone,
      "-c",
      "user.name=a",
      "-c",
      "user.email=a@b",
      "merge",
      "--quiet",
      "-m",
      "x",
      head,
    );
    expect(merged.code === 0).toBe(paths.length === 0);
    const { conflicts, mergeable } = await backend((hosted) => hosted.compare(repository, { base, head }));
    expect([mergeable, conflicts]).toEqual([paths.length === 0, paths]);
    const answer = await merge();
    if (paths.length > 0) expect(answer).toMatchObject({ success: { outcome: "conflict", paths } });
    else
      expect(await gitOk(bare, "show", `${MAIN}:${file}`)).toBe(await gitOk(clone, "show", `HEAD:${file}`));
    expect(readdirSync(directory).filter((name) => name.startsWith(".attributes-"))).toEqual([]);
  });
});

describe("a merge commit", () => {
  it("has the platform as its author, the branch and then the head as parents, and the given message", async () => {
    const message = "--amend -m x\n\n# no comment\n\n  $(id) `id` 'quoted' \u00fc\u{1f600}";
    expect(await merge(message)).toMatchObject({ _tag: "Success", success: { outcome: "merged", base } });
    const commit = await tip();
    expect(await parents(commit)).toEqual([base, head]);
    expect(await gitOk(bare, "log", "-1", "--format=%an <%ae> %aI%n%cn <%ce> %cI", commit)).toBe(
      "Platform <platform@platform.invalid> 2026-11-20T12:00:00+00:00\n".repeat(2).trimEnd(),
    );
    expect(await gitOk(bare, "log", "-1", "--format=%B", commit)).toBe(message);
    expect(await gitOk(bare, "fsck", "--strict", "--no-dangling")).toBe("");
  });

  it("moves its branch alone: it changes no other ref and no HEAD, and leaves no lock", async () => {
    await gitOk(bare, "tag", "v1", fork);
    const refs = () => gitOk(bare, "for-each-ref", "--format=%(refname) %(objectname)");
    const before = await refs();
    expect((await merge())._tag).toBe("Success");
    expect(await refs()).toBe(before.replace(`${MAIN} ${base}`, `${MAIN} ${await tip()}`));
    expect(await gitOk(bare, "symbolic-ref", "HEAD")).toBe(MAIN);
    expect(existsSync(join(bare, `${MAIN}.lock`))).toBe(false);
  });
});

/** Before git moves `main`, another writer does, once for each commit. @returns a file with a line for each requested move. */
const overtakenBy = async (...commits: readonly string[]): Promise<string> => {
  const log = join(root, randomUUID());
  const moves = commits.map((commit, index) => `${index}) "$REAL" update-ref ${MAIN} ${commit} ;;`);
  gitStandIn(
    root,
    `case " $* " in *" update-ref "*)
       touch '${log}'
       case "$(wc -l <'${log}' | tr -d ' ')" in ${moves.join(" ")} esac
       echo "$*" >>'${log}' ;;
     esac
     exec "$REAL" "$@"`,
  );
  return log;
};

describe("a branch that moves during a merge into it", () => {
  it("keeps the new commits: the merge is computed again for the new tip", async () => {
    const between = await write("aside", base, { "README.md": "one\n", main: "main\n", aside: "aside\n" });
    const log = await overtakenBy(between);
    expect(await merge()).toMatchObject({ success: { outcome: "merged", base: between } });
    expect(readFileSync(log, "utf8").trim().split("\n")).toHaveLength(2);
    const commit = await tip();
    expect(await parents(commit)).toEqual([between, head]);
    expect(await chain()).toEqual([commit, between, base]);
    expect(await gitOk(bare, "ls-tree", "--name-only", commit)).toBe("README.md\naside\nmain\nwork");
  });

  it("is not fast-forwarded over the new commits", async () => {
    await gitOk(bare, "update-ref", MAIN, fork);
    const between = await write("aside", fork, { "README.md": "one\n", aside: "aside\n" });
    await overtakenBy(between);
    expect(await merge()).toMatchObject({ success: { outcome: "merged", base: between } });
    expect(await parents(await tip())).toEqual([between, head]);
  });

  it("may conflict with the head because of the new commits", async () => {
    const between = await write("aside", base, { "README.md": "one\n", main: "main\n", work: "theirs\n" });
    await overtakenBy(between);
    expect(await merge()).toMatchObject({ success: { outcome: "conflict", base: between, paths: ["work"] } });
    expect(await tip()).toBe(between);
  });

  it("again and again is left as it is, with an error message", async () => {
    const moves: string[] = [];
    for (let onto = base; moves.length < 10; onto = moves.at(-1) ?? base) {
      // oxlint-disable-next-line no-await-in-loop -- each is made from the one before
      moves.push(await write("aside", onto, { n: `${moves.length}\n` }));
    }
    const log = await overtakenBy(...moves);
    expect(await merge()).toMatchObject({ _tag: "Failure", failure: { code: "ref_moved" } });
    expect(readFileSync(log, "utf8").trim().split("\n")).toHaveLength(10);
    expect(await tip()).toBe(moves.at(-1));
  });
});

describe("a merge that git makes without reporting it", () => {
  it("counts as made after a lookup [G12]", async () => {
    gitStandIn(root, `"$REAL" "$@"; code=$?; case " $* " in *" update-ref "*) exit 1 ;; esac; exit $code`);
    expect(await merge()).toMatchObject({ success: { outcome: "merged", base, commit: await tip() } });
    expect(await parents(await tip())).toEqual([base, head]);
  });

  it("does not count as made if git really failed [G12]", async () => {
    gitStandIn(root, `case " $* " in *" update-ref "*) exit 1 ;; esac; exec "$REAL" "$@"`);
    expect(await merge()).toMatchObject({ _tag: "Failure", failure: { code: "git_failed" } });
    expect(await tip()).toBe(base);
  });
});

/** Twenty lines like no others. */
const lines = (from: number): string => Array.from({ length: 20 }, (_, n) => `line ${from + n}\n`).join("");

it("treats a directory that was moved to two places as a conflict, and names it", async () => {
  const [a, b, c] = [lines(0), lines(100), lines(200)];
  fork = await write("main", null, { "dir/a": a, "dir/b": b });
  head = await write("work", fork, { "dir/a": a, "dir/b": b, "dir/c": c });
  base = await write("main", fork, { "x/a": a, "y/b": b });
  expect(await merge()).toMatchObject({ success: { outcome: "conflict", base, paths: ["dir"] } });
  expect(await tip()).toBe(base);
  const compared = await backend((hosted) => hosted.compare(repository, { base: "main", head }));
  expect(compared).toMatchObject({ mergeable: false, conflicts: ["dir"] });
});

it("treats a list of conflicts that is too long to read as a conflict", async () => {
  gitStandIn(root, `"$REAL" "$@"; case " $* " in *" merge-tree "*) head -c 17000000 /dev/zero ;; esac`);
  expect(await merge()).toMatchObject({ success: { outcome: "conflict", base } });
  expect(await tip()).toBe(base);
});
