import { afterAll, describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as TestClock from "effect/testing/TestClock";
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hostedBackend } from "../../src/git/repository/hosted.ts";
import { GitBackend } from "../../src/git/port.ts";
import { initialCommit } from "../../src/domain/repository/git-ref.ts";
import { gitConformance } from "../conformance/git/git.ts";
import { hostedPushes } from "../conformance/git/git-pushes.ts";
import { git, gitOk } from "./git-client.ts";

const root = mkdtempSync(join(tmpdir(), "hosted-"));
const directory = join(root, "repositories");
const layer = hostedBackend({ directory });
afterAll(() => rmSync(root, { recursive: true, force: true }));

const live = (name: string, test: () => Effect.Effect<void, unknown, GitBackend>): void =>
  it.live(name, () => Effect.provide(test(), layer));

const fresh = (name: string): string => {
  const path = join(root, `${name}-${randomUUID()}`);
  mkdirSync(path);
  return path;
};

/** A repository with a work tree, two branches and a tag, on the branch `trunk`. */
const source = async (): Promise<string> => {
  const path = fresh("source");
  await gitOk(path, "init", "--quiet", "--initial-branch=trunk");
  writeFileSync(join(path, "a.txt"), "a\n");
  await gitOk(path, "add", ".");
  await gitOk(path, "commit", "--quiet", "-m", "First");
  await gitOk(path, "tag", "-a", "v1", "-m", "v1");
  await gitOk(path, "branch", "side");
  await gitOk(path, "update-ref", "refs/notes/x", "HEAD");
  return path;
};

/** Lets the rounds of the sweep pass until this is gone; no signal tells the end of a round. */
const lookedAt = Effect.fnUntraced(function* (path: string) {
  while (existsSync(path)) {
    yield* TestClock.adjust("10 seconds");
    yield* Effect.promise(() => stat(path).catch(() => null));
  }
});

const importing = (importFrom: string, defaultBranch: string | null = null) =>
  Effect.flatMap(GitBackend, (hosted) => {
    const projectId = randomUUID();
    return Effect.map(hosted.create({ projectId, importFrom, defaultBranch }), (made) => ({
      projectId,
      ...made,
    }));
  });

const bareOf = (projectId: string): string => join(directory, `${projectId}.git`);

describe("the hosted backend", () => {
  gitConformance(Layer.merge(layer, hostedPushes(directory)));

  live("begins every repository with the same commit, and a plain clone finds the default branch", () =>
    Effect.gen(function* () {
      const hosted = yield* GitBackend;
      const projectId = randomUUID();
      yield* hosted.create({ projectId, importFrom: null, defaultBranch: "trunk" });
      expect(yield* hosted.branchTip({ projectId }, "trunk")).toBe(initialCommit);
      const clone = fresh("clone");
      yield* Effect.promise(() => gitOk(clone, "clone", "--quiet", bareOf(projectId), "."));
      expect(yield* Effect.promise(() => gitOk(clone, "rev-parse", "--abbrev-ref", "HEAD"))).toBe("trunk");
    }),
  );

  live("finds a branch with and without a file of its own, and none that was deleted", () =>
    Effect.gen(function* () {
      const hosted = yield* GitBackend;
      const { projectId } = yield* importing(yield* Effect.promise(source));
      const bare = bareOf(projectId);
      const bareGit = (...args: readonly string[]) => Effect.promise(() => gitOk(bare, ...args));
      const tip = yield* bareGit("rev-parse", "refs/heads/trunk");
      const tips = () => Effect.all(["trunk", "side"].map((name) => hosted.branchTip({ projectId }, name)));

      yield* bareGit("pack-refs", "--all");
      expect(existsSync(join(bare, "refs/heads/trunk"))).toBe(false);
      expect(yield* tips()).toEqual([tip, tip]);
      yield* bareGit("update-ref", "refs/heads/trunk", tip);
      yield* bareGit("update-ref", "-d", "refs/heads/side");
      expect(yield* tips()).toEqual([tip, null]);
      expect(yield* hosted.branchTip({ projectId }, "trunk/inner")).toBeNull();
      // A ref that names another ref is git's to resolve.
      yield* bareGit("symbolic-ref", "refs/heads/side", "refs/heads/trunk");
      expect(yield* tips()).toEqual([tip, tip]);
    }),
  );

  live("builds in a separate place: of many concurrent calls one repository is left, and nothing else", () =>
    Effect.gen(function* () {
      const hosted = yield* GitBackend;
      const request = { projectId: randomUUID(), importFrom: null, defaultBranch: null };
      const calls = Array.from({ length: 5 }, () => hosted.create(request));
      expect(
        new Set((yield* Effect.all(calls, { concurrency: 5 })).map((made) => made.defaultBranch)).size,
      ).toBe(1);
      expect(readdirSync(directory).filter((name) => /building|removing/.test(name))).toEqual([]);
      expect(yield* Effect.promise(() => gitOk(bareOf(request.projectId), "fsck", "--strict"))).toBe("");
      expect(statSync(directory).mode & 0o777).toBe(0o700);
    }),
  );

  live("imports branches and tags of a local repository, and takes its HEAD for the default branch", () =>
    Effect.gen(function* () {
      const from = yield* Effect.promise(source);
      const { projectId, defaultBranch } = yield* importing(from);
      expect(defaultBranch).toBe("trunk");
      const refs = yield* Effect.promise(() =>
        gitOk(bareOf(projectId), "for-each-ref", "--format=%(refname)"),
      );
      expect(refs.split("\n")).toEqual(["refs/heads/side", "refs/heads/trunk", "refs/tags/v1"]);
      expect((yield* importing(from, "side")).defaultBranch).toBe("side");
    }),
  );

  live("shares no object file with a local source", () =>
    Effect.gen(function* () {
      const from = yield* Effect.promise(source);
      const { projectId } = yield* importing(from);
      expect(existsSync(join(bareOf(projectId), "objects/info/alternates"))).toBe(false);
      rmSync(from, { recursive: true });
      expect(yield* Effect.promise(() => gitOk(bareOf(projectId), "fsck", "--strict"))).toBe("");
    }),
  );

  live("runs neither hooks nor programs that a local source names [G06]", () =>
    Effect.gen(function* () {
      const from = yield* Effect.promise(source);
      const canary = join(root, `canary-${randomUUID()}`);
      const program = join(from, ".git", "program");
      writeFileSync(program, `#!/bin/sh\ntouch ${canary}\nexec "$@"\n`);
      chmodSync(program, 0o755);
      const settings = [
        "core.fsmonitor",
        "uploadpack.packObjectsHook",
        "core.sshCommand",
        "core.alternateRefsCommand",
      ];
      for (const name of settings) yield* Effect.promise(() => gitOk(from, "config", name, program));
      const hooks = join(from, ".git", "hooks");
      mkdirSync(hooks, { recursive: true });
      for (const name of ["post-checkout", "pre-auto-gc", "reference-transaction", "post-index-change"]) {
        writeFileSync(join(hooks, name), `#!/bin/sh\ntouch ${canary}\n`);
        chmodSync(join(hooks, name), 0o755);
      }
      rmSync(canary, { force: true });
      yield* importing(from);
      expect(existsSync(canary)).toBe(false);
    }),
  );

  live("explains why an import is impossible, and leaves no part of it [G13]", () =>
    Effect.gen(function* () {
      const empty = fresh("empty");
      yield* Effect.promise(() => gitOk(empty, "init", "--quiet"));
      const from = yield* Effect.promise(source);
      yield* Effect.promise(() => gitOk(from, "checkout", "--quiet", "--detach"));
      const cases: readonly (readonly [string, string | null, RegExp])[] = [
        [empty, null, /has no branches to import/],
        [from, null, /has no branch main\. Give the name of its default branch/],
        [from, "nowhere", /has no branch nowhere/],
        [join(root, "missing"), null, /could not be read/],
        ["https://127.0.0.1/x.git", null, /is private/],
      ];
      const before = readdirSync(directory).length;
      for (const [path, branch, reason] of cases) {
        const error = yield* Effect.flip(importing(path, branch));
        expect(error).toMatchObject({ code: "import_failed" });
        expect(error.message).toMatch(reason);
        expect(error.message).not.toContain(root);
      }
      expect(readdirSync(directory)).toHaveLength(before);
    }),
  );

  live("resolves no tag that points to anything other than a commit", () =>
    Effect.gen(function* () {
      const hosted = yield* GitBackend;
      const from = yield* Effect.promise(source);
      yield* Effect.promise(() => gitOk(from, "tag", "blob", "HEAD:a.txt"));
      const { projectId } = yield* importing(from);
      expect(yield* Effect.flip(hosted.resolveBase({ projectId }, "blob"))).toMatchObject({
        code: "unknown_ref",
      });
    }),
  );

  it.live("removes at start the files of a dead service, and no file that may be in use", () =>
    Effect.gen(function* () {
      const own = fresh("swept");
      const start = Effect.flatMap(GitBackend, (hosted) =>
        hosted.create({ projectId, importFrom: null, defaultBranch: null }),
      ).pipe(Effect.provide(hostedBackend({ directory: own })));
      const projectId = randomUUID();
      yield* start;
      const bare = join(own, `${projectId}.git`);
      const [old, young] = [join(bare, "refs/heads/old.lock"), join(bare, "refs/heads/young.lock")];
      const pack = join(bare, "objects/pack/tmp_pack_x");
      mkdirSync(join(bare, "objects/pack"), { recursive: true });
      for (const path of [old, young, pack]) writeFileSync(path, "");
      for (const path of [old, pack]) utimesSync(path, 1, 1);
      for (const name of [".building-x", ".removing-x"])
        mkdirSync(join(own, name, "objects"), { recursive: true });
      yield* start;
      expect([old, young, pack].map((path) => existsSync(path))).toEqual([false, true, false]);
      expect(readdirSync(own).toSorted()).toEqual([".hooks", `${projectId}.git`]);
    }),
  );

  it.effect("removes later the files that were too young at start, and no newer ones", () =>
    Effect.gen(function* () {
      const own = fresh("swept-later");
      const bare = join(own, `${randomUUID()}.git`);
      const names = ["tmp_objdir-incoming-a", "tmp_objdir-incoming-b", "tmp_objdir-incoming-c"];
      const [left = "", again = "", since = ""] = names.map((name) => join(bare, "objects", name));
      for (const path of [left, again]) mkdirSync(path, { recursive: true });
      yield* Layer.build(hostedBackend({ directory: own }));
      mkdirSync(since);
      for (const path of [left, since]) utimesSync(path, 1, 1);
      expect([left, again, since].map((path) => existsSync(path))).toEqual([true, true, true]);
      yield* TestClock.adjust("10 seconds");
      yield* Effect.promise(() => expect.poll(() => existsSync(left)).toBe(false));
      expect([again, since].map((path) => existsSync(path))).toEqual([true, true]);
      utimesSync(again, 1, 1);
      yield* lookedAt(again);
      expect([again, since].map((path) => existsSync(path))).toEqual([false, true]);
    }),
  );

  it.effect("continues the sweep if a file cannot be removed", () =>
    Effect.gen(function* () {
      const own = fresh("swept-on");
      const objects = join(own, `${randomUUID()}.git`, "objects");
      const [stuck, gone, later] = ["stuck", "gone", "later"].map((name) =>
        join(objects, `tmp_objdir-incoming-${name}`),
      ) as [string, string, string];
      for (const path of [stuck, gone, later]) mkdirSync(path, { recursive: true });
      // Twenty names of this length in each other make a path that no call takes.
      const nest = `for (let n = 0; n < 20; n += 1) { fs.mkdirSync("d".repeat(250)); process.chdir("d".repeat(250)); }`;
      execFileSync(process.execPath, ["-e", nest], { cwd: stuck });
      yield* Layer.build(hostedBackend({ directory: own }));
      for (const path of [stuck, gone]) utimesSync(path, 1, 1);
      yield* lookedAt(gone);
      expect([stuck, later].map((path) => existsSync(path))).toEqual([true, true]);
      utimesSync(later, 1, 1);
      yield* lookedAt(later);
      expect(existsSync(stuck)).toBe(true);
    }),
  );

  live("creates 32 session branches at once", () =>
    Effect.gen(function* () {
      const hosted = yield* GitBackend;
      const { projectId } = yield* importing(yield* Effect.promise(source));
      const commit = yield* hosted.resolveBase({ projectId }, "trunk");
      const branches = Array.from({ length: 32 }, () => randomUUID());
      yield* Effect.forEach(branches, (branch) => hosted.createBranch({ projectId }, { branch, commit }), {
        concurrency: "unbounded",
        discard: true,
      });
      const listed = yield* Effect.promise(() =>
        git(bareOf(projectId), "branch", "--format=%(refname:short)"),
      );
      expect(listed.stdout.trim().split("\n")).toEqual(expect.arrayContaining(branches));
    }),
  );
});
