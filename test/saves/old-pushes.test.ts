/** A save of an earlier version: a commit with the workspace's tree, pushed to `refs/wip/<session>`. */
import * as Effect from "effect/Effect";
import { writeFileSync, rmSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { SaveStore } from "../../src/saves/store.ts";
import { git, gitOk } from "../git/git-client.ts";
import { blob, read } from "./store-setup.ts";
import { clone, SANDBOX, USER, useSavedScene } from "./view-setup.ts";

const held = useSavedScene();

/** Makes the commit as the daemon of an earlier version did, and pushes it. */
const pushOldSave = async (password: string) => {
  const { server, place } = held.scene;
  const { sessionId } = place;
  const work = await clone(held.scene, SANDBOX);
  await gitOk(work, "checkout", "--quiet", sessionId);
  const run = (...args: readonly string[]) => gitOk(work, ...args);
  writeFileSync(join(work, "committed.txt"), "committed\n");
  await run("add", ".");
  await run("commit", "--quiet", "-m", "Not pushed");
  const head = await run("rev-parse", "HEAD");
  const side = await run("commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "Side");
  writeFileSync(join(work, "staged.txt"), "staged\n");
  await run("add", "staged.txt");
  const index = await run("write-tree");
  writeFileSync(join(work, "README.md"), "changed\n");
  rmSync(join(work, "old.txt"));
  await run("add", "--all");
  const tree = await run("write-tree");
  mkdirSync(join(work, "state"));
  writeFileSync(join(work, "state", "MERGE_MSG"), "Merge\n");
  writeFileSync(join(work, "refs"), `${side} refs/heads/side\n${head} refs/tags/v1\n`);
  await run("read-tree", "--empty");
  await run("add", "refs", "state");
  await run("read-tree", "--prefix=index/", index);
  const rest = await run("commit-tree", await run("write-tree"), "-p", side, "-m", "The rest");
  const message = [`Work in progress of session ${sessionId}`, `    rest=${rest}`];
  const wip = await run(
    "commit-tree",
    tree,
    "-p",
    head,
    "-p",
    rest,
    ...message.flatMap((one) => ["-m", one]),
  );
  const pushed = await git(
    work,
    "push",
    server.url(place.projectId, password),
    `${wip}:refs/wip/${sessionId}`,
  );
  return { pushed, head, side, wip };
};

describe("a push of saved work by a daemon of an earlier version", () => {
  it("becomes a save, and the repository gets no part of it", async () => {
    const { run, place, bare, base, sandboxId } = held.scene;
    const { pushed, head, side, wip } = await pushOldSave(SANDBOX);
    expect(pushed.stderr).toContain(`refs/wip/${place.sessionId}`);
    expect(pushed.code).toBe(0);
    const { last } = await run(Effect.flatMap(SaveStore, (saves) => saves.load(place)));
    expect(last).toMatchObject({
      sandboxId,
      base,
      head: { ref: `refs/heads/${place.sessionId}`, commit: head },
    });
    const named = (last?.items ?? []).map(
      ({ kind, path, mode, object }) => `${kind} ${mode} ${path} ${object ?? ""}`,
    );
    expect(named.toSorted()).toEqual(
      [
        `file 000000 old.txt `,
        `file 100644 README.md ${blob("changed\n")}`,
        `file 100644 committed.txt ${blob("committed\n")}`,
        `file 100644 staged.txt ${blob("staged\n")}`,
        `index 100644 staged.txt ${blob("staged\n")}`,
        `state 100644 MERGE_MSG ${blob("Merge\n")}`,
      ].toSorted(),
    );
    expect(last?.items.find(({ path }) => path === "README.md")?.size).toBe(8);
    expect((last?.commits ?? []).map(({ ref, commit }) => [ref, commit])).toEqual([
      [`refs/heads/${place.sessionId}`, head],
      ["refs/heads/side", side],
    ]);
    expect(last?.skipped).toEqual([{ path: "refs/tags/v1", reason: "not_taken_over" }]);
    expect(await run(read(place, blob("changed\n")))).toEqual(["changed\n"]);
    expect(await gitOk(bare, "for-each-ref", "refs/wip")).toBe("");
    expect((await git(bare, "cat-file", "-e", wip)).code).not.toBe(0);
    const view = await run(held.scene.views.open(place));
    expect(await gitOk(view?.path ?? "", "rev-parse", `${view?.commit}^@`)).toContain(head);
  });

  it("of a person is refused with a sentence", async () => {
    const { pushed } = await pushOldSave(USER);
    expect(pushed.code).not.toBe(0);
    expect(pushed.stderr).toContain("is not a branch or a tag");
  });
});
