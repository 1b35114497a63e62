import * as Effect from "effect/Effect";
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readdirSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { ListedItem } from "../../src/domain/save/listing.ts";
import { type Save, SaveStore, type StoredCommits } from "../../src/saves/store.ts";
import { git, gitOk } from "../git/git-client.ts";
import { blob, saveOf, store } from "./store-setup.ts";
import { clone, fetchSaved, OTHER_NODE, SANDBOX, useSavedScene, VIEWER } from "./view-setup.ts";

const held = useSavedScene();

const item = (path: string, content: string, mode: ListedItem["mode"] = "100644"): ListedItem => ({
  kind: "file",
  path,
  mode,
  size: content.length,
  object: blob(content),
});

/** Saves these items of the scene's session, beside its pushed branch. */
const save = (
  items: readonly ListedItem[],
  contents: readonly (string | Buffer)[],
  change: Partial<Save> = {},
) => {
  const { run, place, base, sandboxId } = held.scene;
  const whole = {
    ...saveOf({}, { sandboxId }),
    base,
    head: { ref: "refs/heads/x", commit: base },
    items,
    ...change,
  };
  return run(store(place, whole, contents));
};

/** A pack with one commit, made in the project's repository and outside its refs. */
const packOf = (commit: string, ...without: readonly string[]): Buffer =>
  execFileSync("git", ["-C", held.scene.bare, "pack-objects", "--revs", "--stdout", "-q"], {
    input: [commit, ...without.map((one) => `^${one}`), ""].join("\n"),
  });

/** Writes an object that git itself would refuse, and takes it away again once it is packed. */
const hostileCommit = (tree: Buffer, change: (commit: string) => string = (text) => text) => {
  const repository = join(held.scene.root, `hostile-${randomUUID()}`);
  const run = (args: readonly string[], input: string | Buffer = ""): string =>
    execFileSync("git", ["-C", repository, ...args], { input })
      .toString()
      .trim();
  execFileSync("git", ["clone", "-q", "--bare", held.scene.bare, repository]);
  run(["hash-object", "-w", "--stdin"], "x");
  const treeId = run(["hash-object", "-t", "tree", "-w", "--stdin", "--literally"], tree);
  const text = `tree ${treeId}\nparent ${held.scene.base}\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n\nx\n`;
  const commit = run(["hash-object", "-t", "commit", "-w", "--stdin", "--literally"], change(text));
  const pack = execFileSync("git", ["-C", repository, "pack-objects", "--revs", "--stdout", "-q"], {
    input: `${commit}\n^${held.scene.base}\n`,
  });
  return { commit, pack };
};

const refCommits = (ref: string, commit: string, pack: Buffer): StoredCommits => ({
  repository: "",
  ref,
  commit,
  within: null,
  size: pack.length,
  object: blob(pack),
});

describe("saved work", () => {
  it("is fetched by its ref, with changes, deletions, modes and links, and the same commit each time", async () => {
    await save(
      [
        item("README.md", "changed\n"),
        item("new/file.sh", "#!/bin/sh\n", "100755"),
        item("link", "README.md", "120000"),
        item('odd "name"\\\n\u00e9', "odd\n"),
        { kind: "file", path: "old.txt", mode: "000000", size: 0, object: null },
      ],
      ["changed\n", "#!/bin/sh\n", "README.md", "odd\n"],
    );
    const into = await clone(held.scene);
    expect((await fetchSaved(into, held.scene)).stderr).toContain("FETCH_HEAD");
    const commit = await gitOk(into, "rev-parse", "FETCH_HEAD");
    expect(await gitOk(into, "-c", "core.quotePath=true", "ls-tree", "-r", "--name-only", commit)).toBe(
      ["README.md", "link", "new/file.sh", '"odd \\"name\\"\\\\\\n\\351"'].join("\n"),
    );
    expect(await gitOk(into, "ls-tree", commit, "new/file.sh")).toContain("100755");
    expect(await gitOk(into, "ls-tree", commit, "link")).toContain("120000");
    expect(await gitOk(into, "rev-parse", `${commit}^@`)).toBe(held.scene.base);
    expect(await gitOk(into, "fsck", "--strict", "--no-dangling")).toBe("");
    const views = join(held.scene.root, "views");
    for (const name of readdirSync(views).filter((one) => one.endsWith(".git")))
      utimesSync(join(views, name), new Date(0), new Date(0));
    await held.scene.run(held.scene.views.expire);
    expect(readdirSync(views)).toEqual([".hooks"]);
    const again = await clone(held.scene);
    await fetchSaved(again, held.scene);
    expect(await gitOk(again, "rev-parse", "FETCH_HEAD")).toBe(commit);
    await held.scene.run(held.scene.views.forget(randomUUID()));
    expect(readdirSync(views)).toHaveLength(2);
    await held.scene.run(held.scene.views.forget(held.scene.place.sessionId));
    expect(readdirSync(views)).toEqual([".hooks"]);
  });

  it("is in no clone, no listing and no plain fetch, and only for people who contribute", async () => {
    await save([item("README.md", "mine\n")], ["mine\n"]);
    const into = await clone(held.scene);
    await fetchSaved(into, held.scene);
    const commit = await gitOk(into, "rev-parse", "FETCH_HEAD");
    expect(await gitOk(into, "ls-remote", "origin")).not.toContain("wip");
    for (const password of [VIEWER, SANDBOX]) {
      // oxlint-disable-next-line no-await-in-loop -- one client after the other
      const other = await clone(held.scene, password);
      // oxlint-disable-next-line no-await-in-loop -- as above
      expect((await fetchSaved(other, held.scene)).stderr).toContain("couldn't find remote ref");
      // oxlint-disable-next-line no-await-in-loop -- as above
      const wish = await gitOk(other, "ls-remote", "origin").then(() => fetchCommit(other, commit));
      expect(wish).toContain("not our ref");
    }
    const old = await fetchSaved(into, held.scene, "-c", "protocol.version=0");
    expect(old.stderr).toContain("couldn't find remote ref");
    expect(await gitOk(held.scene.bare, "for-each-ref", "refs/wip")).toBe("");
    expect(() =>
      execFileSync("git", ["-C", held.scene.bare, "cat-file", "-e", commit], { stdio: "pipe" }),
    ).toThrow();
  });

  it("on another node is a sentence that names the node", async () => {
    const into = await clone(held.scene);
    const { stderr } = await git(into, "fetch", "origin", `refs/wip/${randomUUID()}`);
    expect(stderr).toContain(`The node ${OTHER_NODE} has this session's saved work.`);
  });

  it("has the commits of other refs as parents, by their names", async () => {
    const { bare, base } = held.scene;
    const tree = await gitOk(bare, "rev-parse", `${base}^{tree}`);
    const env = { ...process.env, GIT_COMMITTER_DATE: "@1 +0000", GIT_AUTHOR_DATE: "@1 +0000" };
    const commit = execFileSync(
      "git",
      [
        "-C",
        bare,
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "commit-tree",
        tree,
        "-p",
        base,
        "-m",
        "Side",
      ],
      { env },
    )
      .toString()
      .trim();
    const pack = packOf(commit, base);
    execFileSync("git", ["-C", bare, "prune", "--expire=now"]);
    await save([], [pack], { commits: [refCommits("refs/heads/side", commit, pack)] });
    const into = await clone(held.scene);
    await fetchSaved(into, held.scene);
    expect(await gitOk(into, "rev-parse", "FETCH_HEAD^@")).toBe(`${base}\n${commit}`);
    expect(await gitOk(into, "show", "-s", "--format=%B", "FETCH_HEAD")).toContain(
      `refs/heads/side ${commit}`,
    );
  });

  it("leaves out what git would refuse, and names it", async () => {
    const bad = ["..", ".git", ".GIT", "git~1"].map((name) =>
      hostileCommit(Buffer.concat([Buffer.from(`100644 ${name}\0`), Buffer.from(blob("x"), "hex")])),
    );
    const odd = hostileCommit(Buffer.alloc(0), (text) =>
      text.replace("committer a <a@b> 1 +0000", "committer a <a@b> 1 +051800"),
    );
    const refs = [...bad, odd].map(({ commit, pack }, index) =>
      refCommits(`refs/heads/b${index}`, commit, pack),
    );
    const url = '[submodule "x"]\n\tpath = x\n\turl = -u./evil\n';
    await save(
      [
        item(".git/config", "evil"),
        item("a/../../b", "evil"),
        item("sub/.GIT/hooks/pre-commit", "evil"),
        item("good.txt", "good"),
        item(".gitmodules", url),
      ],
      ["evil", "good", url, ...[...bad, odd].map(({ pack }) => pack)],
      { commits: refs },
    );
    const into = await clone(held.scene);
    await gitOk(into, "config", "fetch.fsckObjects", "true");
    await gitOk(into, "config", "fetch.fsck.badTimezone", "ignore");
    const fetched = await fetchSaved(into, held.scene);
    expect(fetched.stderr).toContain("FETCH_HEAD");
    expect(await gitOk(into, "ls-tree", "-r", "--name-only", "FETCH_HEAD")).toBe(
      "README.md\ngood.txt\nold.txt",
    );
    expect(await gitOk(into, "rev-parse", "FETCH_HEAD^@")).toBe(`${held.scene.base}\n${odd.commit}`);
    const message = await gitOk(into, "show", "-s", "--format=%B", "FETCH_HEAD");
    for (const { commit } of bad) expect(message).toContain(commit);
    for (const path of [".git/config", "a/../../b", "sub/.GIT/hooks/pre-commit", ".gitmodules"])
      expect(`${message}\n`).toContain(`\n  ${path}\n`);
  });

  it("of an earlier sandbox is compared by its id, and counts while there is no other", async () => {
    const { run, place, views, base } = held.scene;
    const contentsAt = async (earlierId?: string): Promise<string> => {
      const view = await run(views.open(place, earlierId));
      return view === null ? "none" : await gitOk(view.path, "ls-tree", "-r", "--name-only", view.commit);
    };
    const earlier = { ...saveOf({ "earlier.txt": "earlier" }), base };
    await run(store(place, earlier, ["earlier"]));
    await run(Effect.flatMap(SaveStore, (saves) => saves.setAside(place)));
    expect(await contentsAt()).toContain("earlier.txt");
    await save([item("later.txt", "later")], ["later"]);
    expect(await contentsAt()).toBe("README.md\nlater.txt\nold.txt");
    expect(await contentsAt(earlier.sandboxId)).toBe("README.md\nearlier.txt\nold.txt");
    expect(await contentsAt(randomUUID())).toBe("none");
  });
});

const fetchCommit = async (into: string, commit: string): Promise<string> => {
  return (await git(into, "fetch", "origin", commit)).stderr;
};
