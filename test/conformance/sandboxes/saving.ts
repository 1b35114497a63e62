/**
 * The workspace program lists the agent's work, reads it, and brings it back into a fresh checkout. Each listed path comes back, or
 * is named. The user who runs it and the shell make no difference.
 */
import { afterEach, expect, test } from "vitest";
import { chmodSync, existsSync, lstatSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { fileStamp } from "../../../daemon/saving/content.ts";
import { savingRepositories } from "./saving-repositories.ts";
import {
  BRANCH,
  comesBack,
  NOTHING,
  paths,
  TestWorkspace,
  type Open,
  type SavedWork,
  type SavingSubject,
} from "./saving-workspace.ts";

/** Registers the suite for one way to run the program. */
export const savingConformance = (subject: SavingSubject): void => {
  let workspace: TestWorkspace;
  const open = (files: Readonly<Record<string, string>> = {}): TestWorkspace =>
    (workspace = TestWorkspace.make(subject, files));
  afterEach(() => workspace.remove());
  files(open);
  commits(open);
  savingRepositories(open);
  meanwhile(open);
  older(open);
  // Another owner is another time too.
  if (subject.own === undefined) known(open);
};

const files = (open: Open): void => {
  test("a pushed workspace has nothing to save", async () => {
    const workspace = open();
    const { listing } = await workspace.save();
    expect(listing).toEqual({
      base: workspace.pushed,
      head: { ref: `refs/heads/${BRANCH}`, commit: workspace.pushed },
      heads: [],
      items: [],
      commits: [],
      left: [],
    });
  });

  test("changed, new and removed files come back with modes and links, and only they are listed", async () => {
    const many = Object.fromEntries(
      Array.from({ length: 300 }, (_, n) => [`many/${n % 7}/${n}.txt`, `${n}\n`]),
    );
    const workspace = open({ ...many, "gone/only.txt": "gone\n", "run.sh": "echo\n", "to-link": "file\n" });
    workspace.write("README.md", "changed\n");
    rmSync(workspace.at("gone"), { recursive: true });
    chmodSync(workspace.at("run.sh"), 0o755);
    rmSync(workspace.at("to-link"));
    symlinkSync("nowhere", workspace.at("to-link"));
    workspace.write("new/empty", "");
    workspace.write("new/line\nend.txt", "a name with a line end\n");
    writeFileSync(
      Buffer.concat([Buffer.from(`${workspace.tree}/new/`), Buffer.from([0xff, 0xe4])]),
      "bytes\n",
    );
    const { save, fresh, restored } = await comesBack(workspace);
    expect(existsSync(join(fresh.tree, "gone"))).toBe(false);
    const listed = ["README.md", "gone/only.txt", "new/empty", "new/line\nend.txt", "new/\xff\xe4"];
    expect(paths(save.listing.items)).toEqual([...listed, "run.sh", "to-link"].toSorted());
    expect(restored).toMatchObject({ files: 7, commits: 0, refs: [] });
  });

  test("a file that is only staged comes back in the index, also if the disk has another version or none", async () => {
    const workspace = open({ "unstaged.txt": "tracked\n" });
    workspace.write("staged.txt", "staged\n");
    workspace.write("lost.txt", "in the index alone\n");
    workspace.git("add", "-A");
    workspace.write("staged.txt", "on the disk\n");
    rmSync(workspace.at("lost.txt"));
    workspace.git("rm", "-q", "--cached", "unstaged.txt");
    const { fresh } = await comesBack(workspace);
    expect(fresh.git("show", ":staged.txt")).toBe("staged");
    expect(fresh.git("show", ":lost.txt")).toBe("in the index alone");
  });

  test("a directory takes the place of a file, and a file that of a directory", async () => {
    const workspace = open({ file: "file\n", "directory/one": "one\n" });
    rmSync(workspace.at("file"));
    workspace.write("file/inside", "inside\n");
    rmSync(workspace.at("directory"), { recursive: true });
    workspace.write("directory", "a file now\n");
    await comesBack(workspace);
  });

  test("content that a filter keeps elsewhere is content, also after the filter's pointer was pushed", async () => {
    const workspace = open({ ".gitattributes": "*.bin filter=away\n" });
    const base = workspace.pushed;
    workspace.git("config", "filter.away.clean", "echo pointer");
    workspace.git("config", "filter.away.smudge", "cat");
    workspace.git("config", "filter.away.required", "true");
    workspace.write("large.bin", "the content itself\n");
    workspace.commit("a pointer");
    workspace.push();
    const save = await workspace.save({ base });
    expect(paths(save.listing.items)).toEqual(["large.bin"]);
    const { fresh, restored } = await workspace.restore(save);
    expect(fresh.text("large.bin")).toBe("the content itself\n");
    expect(restored).toMatchObject(NOTHING);
    workspace.git("config", "filter.away.clean", "false");
    workspace.write("large.bin", "THE CONTENT ITSELF\n");
    const { items, left } = await workspace.list({ base });
    expect([paths(items), left]).toEqual([["large.bin"], []]);
  });

  test("ignored files and pipes are counted by class", async () => {
    const workspace = open({ ".gitignore": "*.log\nbuild/\n" });
    for (const path of ["a.log", "b.log", "build/one", "build/two"]) workspace.write(path, "ignored\n");
    mkdirSync(workspace.at("new"));
    execFileSync(
      "mkfifo",
      ["new/one", "two", "build/three"].map((path) => workspace.at(path)),
    );
    const { left, items } = await workspace.list();
    expect(items).toEqual([]);
    expect(left).toEqual([
      { path: "a.log", reason: "ignored", count: 3 },
      { path: "two", reason: "fifo", count: 2 },
    ]);
  });

  test("a file that changed since the listing is not sent as what was listed", async () => {
    const workspace = open();
    for (const path of ["changed", "gone", "link", "same"]) workspace.write(path, `${path}\n`);
    const { items } = await workspace.list();
    workspace.write("changed", "later\n");
    rmSync(workspace.at("gone"));
    rmSync(workspace.at("link"));
    symlinkSync("same", workspace.at("link"));
    const wanted = items.flatMap(({ kind, path, object }) =>
      object === null ? [] : [{ kind, path, object }],
    );
    const frames = await workspace.read({ items: wanted });
    expect(wanted.map(({ path }, at) => [path, frames[at]?.end])).toEqual([
      ["changed", "changed"],
      ["gone", "missing"],
      ["link", "changed"],
      ["same", "whole"],
    ]);
  });

  test("listing and reading with a share of a processor brings the same", async () => {
    const workspace = open();
    workspace.write("large.bin", Buffer.alloc(5 * 1024 * 1024, "content"));
    workspace.commit("large");
    const whole = await workspace.save();
    workspace.share = 0.5;
    const { contents, listing } = await workspace.save();
    expect(listing).toEqual(whole.listing);
    expect(contents.map(({ end, bytes }) => [end, bytes.length])).toEqual([
      ["whole", whole.contents[0]?.bytes.length],
      ["whole", 5 * 1024 * 1024],
    ]);
    expect(contents[1]?.bytes.equals(whole.contents[1]?.bytes ?? Buffer.alloc(0))).toBe(true);
  });

  test("nothing outside the workspace is read through a link", async () => {
    const workspace = open({ "inside/file": "tracked\n" });
    mkdirSync(join(workspace.directory, "outside"));
    writeFileSync(join(workspace.directory, "outside/file"), "secret\n");
    workspace.write("inside/file", "secret\n");
    const { items } = await workspace.list();
    rmSync(workspace.at("inside"), { recursive: true });
    symlinkSync(join(workspace.directory, "outside"), workspace.at("inside"));
    const object = items[0]?.object ?? "";
    const [inside, above] = await workspace.read({
      items: [
        { kind: "file", path: "inside/file", object },
        { kind: "file", path: "../outside/file", object },
      ],
    });
    expect([inside?.end, above?.end]).toEqual(["missing", "missing"]);
  });
};

const commits = (open: Open): void => {
  test("unpushed commits of the branch, another one and the stash come back under their names", async () => {
    const workspace = open();
    workspace.write("a.txt", "a\n");
    const own = workspace.commit("mine");
    workspace.git("checkout", "-q", "-b", "topic/one");
    workspace.write("b.txt", "b\n");
    const topic = workspace.commit("topic");
    for (const text of ["first", "second"]) {
      workspace.write("README.md", `${text}\n`);
      workspace.git("stash", "push", "-q", "-m", text);
    }
    const { save, fresh, restored } = await comesBack(workspace);
    expect(save.listing.commits.map(({ ref, within }) => [ref, within])).toEqual([
      [`refs/heads/${BRANCH}`, "refs/heads/topic/one"],
      ["refs/heads/topic/one", "refs/stash/0"],
      ["refs/stash/0", null],
      ["refs/stash/1", null],
    ]);
    expect(fresh.git("rev-parse", BRANCH, "topic/one")).toBe(`${own}\n${topic}`);
    expect(fresh.git("stash", "list")).toBe(workspace.git("stash", "list"));
    expect(restored).toMatchObject({ commits: 1, refs: [BRANCH, "topic/one", "stash@{1}", "stash@{0}"] });
  });

  test("a detached HEAD comes back detached", async () => {
    const workspace = open();
    workspace.git("checkout", "-q", "--detach");
    workspace.write("a.txt", "a\n");
    workspace.commit("nowhere");
    const { fresh } = await comesBack(workspace);
    expect(() => fresh.git("symbolic-ref", "HEAD")).toThrow();
  });

  test("an amended commit comes back beside the branch, with the working tree of the save", async () => {
    const workspace = open();
    workspace.write("a.txt", "pushed\n");
    workspace.write("b.txt", "pushed\n");
    workspace.commit("pushed");
    workspace.push();
    workspace.write("a.txt", "amended\n");
    rmSync(workspace.at("b.txt"));
    workspace.git("add", "-A");
    workspace.git("commit", "-q", "--amend", "-m", "amended");
    const amended = workspace.git("rev-parse", "HEAD");
    const save = await workspace.save();
    const { fresh, restored } = await workspace.restore(save);
    expect(fresh.files).toEqual(workspace.checkout.files);
    expect(fresh.git("rev-parse", "HEAD", `saved/${BRANCH}`)).toBe(`${workspace.pushed}\n${amended}`);
    expect(restored).toMatchObject({ ...NOTHING, commits: 0, refs: [`saved/${BRANCH}`] });
  });

  test("a branch that was reset has its earlier files", async () => {
    const workspace = open();
    workspace.write("a.txt", "a\n");
    workspace.commit("pushed, then dropped");
    workspace.push();
    workspace.git("reset", "-q", "--hard", "HEAD^");
    const { fresh, restored } = await workspace.restore(await workspace.save());
    expect(fresh.files).toEqual(workspace.checkout.files);
    expect(restored).toMatchObject({ ...NOTHING, files: 1 });
  });

  test("one broken ref costs no other", async () => {
    const workspace = open();
    workspace.write("a.txt", "a\n");
    workspace.commit("good");
    writeFileSync(workspace.at(".git/refs/heads/broken"), `${"1".repeat(40)}\n`);
    const { listing } = await workspace.save();
    expect(listing.commits.map(({ ref }) => ref)).toEqual([`refs/heads/${BRANCH}`]);
    expect(listing.left).toEqual([{ path: "refs/heads/broken", reason: "broken_history" }]);
  });
};

const meanwhile = (open: Open): void => {
  test("a file that somebody changed on the branch since stays, and the saved one is beside it", async () => {
    const workspace = open({ "a.txt": "a\n", "b.txt": "b\n", "c.txt": "c\n", "d.txt": "d\n" });
    workspace.write("a.txt", "mine\n");
    workspace.write("a.txt.saved", "a name that is taken\n");
    workspace.write("b.txt", "mine\n");
    rmSync(workspace.at("c.txt"));
    workspace.write("d.txt", "the same\n");
    const save = await workspace.save();
    workspace.pushFromElsewhere({ "a.txt": "theirs\n", "c.txt": "theirs\n", "d.txt": "the same\n" });
    const { fresh, restored } = await workspace.restore(save);
    expect(fresh.files).toEqual({
      "README.md": "hello\n",
      "a.txt": "theirs\n",
      "a.txt.saved": "a name that is taken\n",
      "a.txt.saved.2": "mine\n",
      "b.txt": "mine\n",
      "c.txt": "theirs\n",
      "d.txt": "the same\n",
    });
    expect(restored).toMatchObject({
      renamed: [{ path: "a.txt", as: "a.txt.saved.2" }],
      skipped: [{ path: "c.txt", reason: "changed_on_branch" }],
    });
  });

  test("a push by somebody else that the workspace has not fetched is no change of the workspace", async () => {
    const workspace = open({ "a.txt": "a\n" });
    const own = workspace.pushed;
    workspace.write("b.txt", "mine\n");
    const mine = workspace.commit("mine");
    const theirs = workspace.pushFromElsewhere({ "a.txt": "theirs\n" });
    const save = await workspace.save({ base: own });
    expect(save.listing.base).toBe(own);
    expect(save.listing.commits).toMatchObject([{ commit: mine, within: null }]);
    expect(() => workspace.git("cat-file", "-e", theirs)).toThrow();
    const { fresh, restored } = await workspace.restore(save);
    expect(fresh.files).toEqual({ ...workspace.checkout.files, "a.txt": "theirs\n" });
    expect(restored).toMatchObject({ ...NOTHING, refs: [`saved/${BRANCH}`] });
  });
};

/** Two saves of a branch, neither of which has the other's work. */
const twoSaves = async (workspace: TestWorkspace) => {
  for (const path of ["both.txt", "both.txt.saved", "deleted.txt", "same.txt", "now/a-directory"])
    workspace.write(path, `older ${path === "same.txt" ? "and newer" : path}\n`);
  workspace.write("moved.txt", "older, and newer under another name\n");
  workspace.write("was/in-a-directory.txt", "older\n");
  workspace.write("staged.txt", "older, staged\n");
  workspace.git("add", "staged.txt");
  workspace.write("staged.txt", "older, not staged\n");
  workspace.write("staged-twice.txt", "older, staged\nTwice.\n");
  workspace.git("add", "staged-twice.txt");
  workspace.write("staged-twice.txt", "newer staged-twice.txt\n");
  workspace.git("rm", "-q", "--cached", "removed.txt");
  writeFileSync(workspace.at(".git/MERGE_MSG"), "older\n");
  writeFileSync(workspace.at(".git/MERGE_HEAD"), `${workspace.pushed}\n`);
  const first = await workspace.save();
  rmSync(workspace.at(".git/MERGE_MSG"));
  rmSync(workspace.at(".git/MERGE_HEAD"));
  workspace.reset();
  for (const path of ["both.txt", "moved.txt", "now/a-directory/file", "was", "staged.txt"])
    workspace.write(path, `newer ${path}\n`);
  workspace.write("same.txt", "older and newer\n");
  workspace.write("staged-twice.txt", "newer staged-twice.txt\n");
  workspace.git("add", "staged-twice.txt");
  workspace.write("other.txt", "older, and newer under another name\n");
  rmSync(workspace.at("deleted.txt"));
  return [first, await workspace.save()] as const;
};

const older = (open: Open): void => {
  test.each([
    { how: "one delivery", parts: (saves: readonly SavedWork[]) => [saves] },
    { how: "two deliveries", parts: (saves: readonly SavedWork[]) => saves.map((save) => [save]) },
  ])("a newer save in $how leaves each file of an older one beside its own", async ({ parts }) => {
    const workspace = open({ "deleted.txt": "pushed\n", "removed.txt": "pushed\n" });
    const { fresh, restored } = await workspace.restoreParts(parts(await twoSaves(workspace)));
    expect(fresh.files).toEqual({
      "README.md": "hello\n",
      "both.txt": "newer both.txt\n",
      "both.txt.saved": "older both.txt.saved\n",
      "both.txt.saved.2": "older both.txt\n",
      "deleted.txt.saved": "older deleted.txt\n",
      "moved.txt": "newer moved.txt\n",
      "now/a-directory.saved": "older now/a-directory\n",
      "now/a-directory/file": "newer now/a-directory/file\n",
      "other.txt": "older, and newer under another name\n",
      "removed.txt": "pushed\n",
      "same.txt": "older and newer\n",
      "staged-twice.txt": "newer staged-twice.txt\n",
      "staged.txt": "newer staged.txt\n",
      "staged.txt.saved": "older, not staged\n",
      "was.saved": "newer was\n",
      "was/in-a-directory.txt": "older\n",
    });
    expect(restored.skipped).toEqual([
      { path: "staged-twice.txt", reason: "newer_save" },
      { path: ".git/MERGE_HEAD", reason: "newer_save" },
    ]);
    expect(existsSync(join(fresh.tree, ".git/MERGE_HEAD"))).toBe(false);
    // Paths that only the older save has staged stay staged.
    expect(fresh.git("status", "--porcelain", "--untracked-files=no")).toBe(
      [" D deleted.txt", "D  removed.txt", "A  staged-twice.txt", "AM staged.txt"].join("\n"),
    );
    expect(fresh.git("show", ":staged.txt")).toBe("older, staged");
  });

  test("commits of a newer save take the branch from those of an older one, which stay beside it", async () => {
    const workspace = open();
    workspace.write("both.txt", "older\n");
    workspace.commit("older");
    const first = await workspace.save();
    workspace.git("reset", "-q", "--hard", "HEAD~1");
    workspace.write("both.txt", "newer\n");
    workspace.commit("newer");
    const { fresh, restored } = await workspace.restoreParts([[first], [await workspace.save()]]);
    expect(restored).toMatchObject({
      refs: expect.arrayContaining([BRANCH, `saved/${BRANCH}`]),
      skipped: [],
    });
    expect(restored.notes).toEqual(["A note."]);
    expect(fresh.git("log", "-1", "--format=%s", BRANCH)).toBe("newer");
    expect(fresh.git("log", "-1", "--format=%s", `saved/${BRANCH}`)).toBe("older");
    expect(fresh.files).toMatchObject({ "both.txt": "newer\n", "both.txt.saved": "older\n" });
    expect(fresh.git("status", "--porcelain")).toBe("?? both.txt.saved");
  });

  test("paths that a newer save has staged are staged again on the commits of an older one", async () => {
    const workspace = open({ "changed.txt": "pushed\n", "removed.txt": "pushed\n" });
    workspace.write("older.txt", "older\n");
    workspace.commit("older");
    const first = await workspace.save();
    workspace.git("reset", "-q", "--hard", "HEAD~1");
    workspace.write("changed.txt", "newer\n");
    workspace.git("add", "changed.txt");
    workspace.git("rm", "-q", "--cached", "removed.txt");
    const { fresh, restored } = await workspace.restoreParts([[first, await workspace.save()]]);
    expect(restored).toMatchObject({ commits: 1, skipped: [], renamed: [] });
    expect(fresh.git("log", "-1", "--format=%s")).toBe("older");
    expect(fresh.git("status", "--porcelain")).toBe(
      ["M  changed.txt", "D  removed.txt", "?? removed.txt"].join("\n"),
    );
  });
};

const known = (open: Open): void => {
  test("a file that is known by its times is read only once they differ", async () => {
    const workspace = open();
    workspace.write("known.txt", "known\n");
    const stamp = fileStamp(lstatSync(workspace.at("known.txt"), { bigint: true }));
    const object = "a".repeat(40);
    workspace.known = [{ path: "known.txt", stamp, object }];
    expect((await workspace.list()).items).toMatchObject([{ path: "known.txt", object }]);
    workspace.write("known.txt", "other\n");
    expect((await workspace.list()).items).toMatchObject([
      { object: workspace.git("hash-object", "known.txt") },
    ]);
  });

  test("contents of small files go with the listing, if they changed since the last one", async () => {
    const workspace = open();
    workspace.write("small.txt", "small\n");
    workspace.write("large.txt", "x".repeat(64 * 1024 + 1));
    await workspace.list();
    expect(workspace.kept.contents).toEqual([
      {
        object: workspace.git("hash-object", "small.txt"),
        base64: Buffer.from("small\n").toString("base64"),
      },
    ]);
    // oxlint-disable-next-line no-restricted-properties -- compared with the times of files
    workspace.contentsSince = Date.now() + 60_000;
    await workspace.list();
    expect(workspace.kept.contents).toEqual([]);
  });
};
