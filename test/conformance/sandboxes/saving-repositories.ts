/** Saved work of workspaces whose repository is in an unusual state: operations under way, broken parts, other repositories. */
import { expect, test } from "vitest";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BRANCH, comesBack, NOTHING, paths, type Open, type TestWorkspace } from "./saving-workspace.ts";

/** Registers the cases with a repository in an unusual state. */
export const savingRepositories = (open: Open): void => {
  operations(open);
  odd(open);
  repositories(open);
  parts(open);
};

const diverge = (workspace: TestWorkspace): void => {
  workspace.git("checkout", "-q", "-b", "theirs");
  workspace.write("README.md", "theirs\n");
  workspace.commit("theirs");
  workspace.git("checkout", "-q", BRANCH);
  workspace.write("README.md", "ours\n");
  workspace.commit("ours");
};

const operations = (open: Open): void => {
  test("a merge in conflict goes on", async () => {
    const workspace = open();
    diverge(workspace);
    expect(() => workspace.git("merge", "theirs")).toThrow();
    const { fresh } = await comesBack(workspace);
    expect(fresh.git("status")).toContain("You have unmerged paths");
    expect(fresh.git("show", ":3:README.md")).toBe("theirs");
    expect(fresh.git("rev-parse", "MERGE_HEAD")).toBe(workspace.git("rev-parse", "theirs"));
  });

  test("a rebase goes on", async () => {
    const workspace = open();
    diverge(workspace);
    expect(() => workspace.git("rebase", "theirs")).toThrow();
    const { fresh } = await comesBack(workspace);
    fresh.git("checkout", "--theirs", "README.md");
    fresh.git("add", "README.md");
    fresh.git("-c", "core.editor=true", "rebase", "--continue");
    expect(fresh.git("log", "--format=%s", BRANCH)).toBe("ours\ntheirs\npushed");
  });
};

const odd = (open: Open): void => {
  test("objects that git's checks dislike come back, and a good file beside them too", async () => {
    const workspace = open();
    workspace.write(".gitmodules", '[submodule "a"]\n\tpath = a\n\turl = -u\n');
    workspace.write(".gitattributes", `${"x".repeat(3000)} text\n`);
    workspace.write("good.txt", "good\n");
    workspace.git("add", "-A");
    const tree = workspace.git("write-tree");
    const text = `tree ${tree}\nparent ${workspace.pushed}\nauthor a <a@example.com> 1 +051800\ncommitter a <a@example.com> 1 +0000\n\nodd zone\n`;
    writeFileSync(join(workspace.directory, "commit"), text);
    const commit = workspace.git(
      "hash-object",
      "-t",
      "commit",
      "-w",
      "--literally",
      join(workspace.directory, "commit"),
    );
    workspace.git("update-ref", `refs/heads/${BRANCH}`, commit);
    const { fresh } = await comesBack(workspace);
    expect(fresh.git("rev-parse", "HEAD")).toBe(commit);
  });

  test("paths that git would not check out are named and never written", async () => {
    const workspace = open();
    workspace.write("good.txt", "good\n");
    const save = await workspace.save();
    const [good] = save.plan.items;
    const [content] = save.contents;
    if (good === undefined || content === undefined) throw new Error("there is one file");
    const bad = [
      ".git/hooks/pre-commit",
      "a/.GIT/config",
      "../outside",
      "git~1/x",
      ".g\xe2\x80\x8cit/x",
      "/abs",
    ];
    const items = [...save.plan.items, ...bad.map((path) => Object.assign({ ...good }, { path }))];
    const contents = [...save.contents, ...bad.map(() => content)];
    const { fresh, restored } = await workspace.restore({ ...save, plan: { ...save.plan, items }, contents });
    expect(restored.skipped).toEqual(bad.map((path) => ({ path, reason: "refused_path" })));
    expect(fresh.files).toEqual(workspace.checkout.files);
    expect(() => fresh.text(".git/hooks/pre-commit")).toThrow();
  });

  test("content that did not arrive is named, and the rest comes back", async () => {
    const workspace = open();
    for (const path of ["a.txt", "b.txt"]) workspace.write(path, `${path}\n`);
    const save = await workspace.save();
    const contents = save.contents.map((frame, at) =>
      at === 0 ? { ...frame, end: "changed" as const } : frame,
    );
    const { fresh, restored } = await workspace.restore({ ...save, contents });
    expect(restored).toMatchObject({ files: 1, skipped: [{ path: "a.txt", reason: "changed" }] });
    expect(Object.keys(fresh.files)).toEqual(["README.md", "b.txt"]);
    const others = save.contents.map((frame) =>
      Object.assign({ ...frame }, { bytes: Buffer.from("other\n") }),
    );
    const wrong = await workspace.restore({ ...save, contents: others });
    expect(wrong.restored.skipped.map(({ path, reason }) => [path, reason])).toEqual([
      ["a.txt", "changed"],
      ["b.txt", "changed"],
    ]);
    const short = await workspace.restore({ ...save, contents: save.contents.slice(0, 1) });
    expect(short.restored).toMatchObject({
      files: 1,
      skipped: [{ path: "b.txt", reason: "not_arrived" }],
      error: expect.stringContaining("did not arrive whole") as string,
    });
  });
};

const repositories = (open: Open): void => {
  test("a workspace without its repository still has its files", async () => {
    const workspace = open({ "gone.txt": "gone\n", ".gitignore": "*.log\n" });
    workspace.write("new.txt", "new\n");
    workspace.write("a.log", "ignored\n");
    rmSync(workspace.at("gone.txt"));
    rmSync(workspace.at(".git"), { recursive: true });
    const save = await workspace.save();
    expect(save.listing).toMatchObject({
      base: workspace.pushed,
      head: { ref: null, commit: null },
      commits: [],
    });
    expect(paths(save.listing.items)).toEqual(["gone.txt", "new.txt"]);
    const { fresh, restored } = await workspace.restore(save);
    rmSync(workspace.at("a.log"));
    expect(fresh.files).toEqual(workspace.checkout.files);
    expect(restored).toMatchObject(NOTHING);
  });

  test("a new repository in its place comes back as files, with its commits beside the branch", async () => {
    const workspace = open({ "kept.txt": "kept\n" });
    rmSync(workspace.at(".git"), { recursive: true });
    workspace.git("init", "-q", "-b", "other");
    workspace.write("new.txt", "new\n");
    const commit = workspace.commit("a new beginning");
    const save = await workspace.save();
    expect(paths(save.listing.items)).toEqual(["new.txt"]);
    const { fresh, restored } = await workspace.restore(save);
    expect(fresh.files).toEqual(workspace.checkout.files);
    expect(fresh.git("rev-parse", "--abbrev-ref", "HEAD")).toBe(BRANCH);
    expect(fresh.git("rev-parse", "saved/other")).toBe(commit);
    expect(restored).toMatchObject({ ...NOTHING, refs: ["saved/other"] });
  });

  test("a repository inside comes back with its files, commits and branches", async () => {
    const workspace = open();
    const inner = join(workspace.tree, "inner");
    mkdirSync(inner);
    workspace.git("init", "-q", "-b", "main", inner);
    writeFileSync(join(inner, "committed.txt"), "committed\n");
    workspace.git("-C", inner, "add", "-A");
    workspace.git("-C", inner, "commit", "-q", "-m", "inside");
    writeFileSync(join(inner, "new.txt"), "new\n");
    const save = await workspace.save();
    expect(save.listing.heads).toMatchObject([{ repository: "inner", ref: "refs/heads/main" }]);
    const { fresh, restored } = await workspace.restore(save);
    expect(fresh.files).toEqual(workspace.checkout.files);
    for (const tree of [inner, join(fresh.tree, "inner")]) {
      expect(workspace.git("-C", tree, "status", "--porcelain")).toBe("?? new.txt");
      expect(workspace.git("-C", tree, "log", "--format=%s")).toBe("inside");
    }
    expect(restored).toMatchObject({ ...NOTHING, refs: ["inner: main"] });
  });
};

const parts = (open: Open): void => {
  test("a repository whose index is broken has its files and its commits", async () => {
    const workspace = open({ "gone.txt": "gone\n" });
    workspace.write("a.txt", "a\n");
    const commit = workspace.commit("mine");
    rmSync(workspace.at("gone.txt"));
    workspace.write("new.txt", "new\n");
    workspace.write(".git/index", "no index");
    const save = await workspace.save();
    expect(save.listing.base).toBe(workspace.pushed);
    const { fresh } = await workspace.restore(save);
    expect(fresh.files).toEqual(workspace.checkout.files);
    expect(fresh.git("rev-parse", "HEAD")).toBe(commit);
    expect(save.listing.left).toEqual([{ path: ".git", reason: "broken_repository" }]);
  });

  test("a submodule is saved if it has anything of its own, and another work tree as files", async () => {
    const workspace = open({ "library/README.md": "library\n" });
    const origin = join(workspace.directory, "library.git");
    workspace.git("clone", "-q", "--bare", workspace.tree, origin);
    workspace.git("submodule", "--quiet", "add", origin, "sub");
    workspace.git("submodule", "--quiet", "add", origin, "clean");
    workspace.commit("submodules");
    workspace.push();
    expect((await workspace.list()).heads).toEqual([]);
    workspace.write("sub/new.txt", "new\n");
    workspace.git("-C", workspace.at("sub"), "add", "-A");
    workspace.git("-C", workspace.at("sub"), "commit", "-q", "-m", "inside");
    workspace.git("worktree", "add", "-q", "--detach", workspace.at("beside"));
    const { listing } = await workspace.save();
    expect(listing.heads.map(({ repository }) => repository)).toEqual(["sub"]);
    expect(listing.commits.map(({ repository, ref }) => [repository, ref])).toEqual([
      ["sub", `refs/heads/${BRANCH}`],
    ]);
    expect(paths(listing.items).filter((path) => path.startsWith("sub/"))).toEqual([
      "sub/README.md",
      "sub/library/README.md",
      "sub/new.txt",
    ]);
    expect(paths(listing.items)).toContain("beside/README.md");
    expect(listing.left).toEqual([{ path: workspace.at("beside"), reason: "worktree" }]);
  });
};
