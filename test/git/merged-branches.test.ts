/** The operator's removal of merged branches, in bare repositories that git itself made. */
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as Effect from "effect/Effect";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { removeMergedBranch, type MergedBranch } from "../../src/git/repository/merged-branches.ts";
import { gitOk } from "./git-client.ts";
import { gitStandIn } from "./git-stand-in.ts";

const directory = mkdtempSync(join(tmpdir(), "merged-branches-"));
const projectId = randomUUID();
const bare = join(directory, `${projectId}.git`);
const remove = (branch: string, more: Partial<MergedBranch> = {}, id: string = projectId) =>
  Effect.runPromise(
    Effect.result(
      removeMergedBranch(
        directory,
        { projectId: id },
        { branch, into: "main", mergedHead: null, isDryRun: false, ...more },
      ),
    ),
  );
const branches = async (): Promise<readonly string[]> =>
  (await gitOk(bare, "for-each-ref", "--format=%(refname:short)", "refs/heads")).split("\n");
/** A commit over these, of the empty tree. */
const commit = async (subject: string, ...parents: readonly string[]): Promise<string> => {
  const tree = await gitOk(bare, "hash-object", "-w", "-t", "tree", "/dev/null");
  return await gitOk(
    bare,
    "commit-tree",
    "-m",
    subject,
    ...parents.flatMap((parent) => ["-p", parent]),
    tree,
  );
};

beforeAll(async () => {
  await gitOk(directory, "init", "--quiet", "--bare", "--initial-branch=main", bare);
  const root = await commit("Begin");
  const [merged, more] = [await commit("Work", root), await commit("Other", root)];
  const main = await commit("Merge", root, merged);
  for (const [branch, tip] of [
    ["main", main],
    ["merged", merged],
    ["unmerged", more],
    ["pushed-after", await commit("Later", merged)],
  ])
    // prettier-ignore
    await gitOk(bare, "update-ref", `refs/heads/${branch}`, tip ?? "");
  await gitOk(bare, "update-ref", "refs/wip/merged", more);
});
afterEach(() => void vi.unstubAllEnvs());
afterAll(() => rmSync(directory, { recursive: true, force: true }));

describe("a merged branch", () => {
  it("is reported by a dry run, and the next run removes it and no other branch", async () => {
    expect(await remove("merged", { isDryRun: true })).toMatchObject({ success: "removed" });
    expect(await branches()).toContain("merged");
    expect(await remove("merged")).toMatchObject({ success: "removed" });
    expect(await branches()).toEqual(["main", "pushed-after", "unmerged"]);
    expect(await gitOk(bare, "for-each-ref", "refs/wip")).toContain("refs/wip/merged");
    expect(await remove("merged")).toMatchObject({ success: "absent" });
  });

  it("stays if it has commits that the other branch lacks, or if the other branch does not exist", async () => {
    for (const branch of ["unmerged", "pushed-after"]) {
      expect(await remove(branch)).toMatchObject({ success: "unmerged" });
      expect(await remove(branch, { into: "gone" })).toMatchObject({ success: "unmerged" });
    }
    expect(await branches()).toEqual(["main", "pushed-after", "unmerged"]);
  });

  it("stays with the commits that were pushed to it after the check", async () => {
    const tip = await gitOk(bare, "rev-parse", "main");
    const later = await commit("Pushed meanwhile", tip);
    await gitOk(bare, "update-ref", "refs/heads/raced", tip);
    const push = `"$REAL" update-ref refs/heads/raced ${later}`;
    gitStandIn(directory, `case " $* " in *" update-ref -d "*) ${push} ;; esac; exec "$REAL" "$@"`);
    expect(await remove("raced")).toMatchObject({ failure: { code: "git_failed" } });
    vi.unstubAllEnvs();
    expect(await gitOk(bare, "rev-parse", "raced")).toBe(later);
    await gitOk(bare, "update-ref", "-d", "refs/heads/raced");
  });

  it("is also removed if its tip was merged as one commit, and stays if it has moved since", async () => {
    const root = await gitOk(bare, "rev-list", "--max-parents=0", "main");
    const head = await commit("Squashed", root);
    const later = await commit("Later", head);
    await gitOk(bare, "update-ref", "refs/heads/squashed", later);
    expect(await remove("squashed", { mergedHead: head })).toMatchObject({ success: "unmerged" });
    await gitOk(bare, "update-ref", "refs/heads/squashed", head);
    expect(await remove("squashed")).toMatchObject({ success: "unmerged" });
    expect(await remove("squashed", { mergedHead: head })).toMatchObject({ success: "removed" });
  });

  it("is searched for in this machine's repositories alone", async () => {
    expect(await remove("merged", {}, randomUUID())).toMatchObject({
      failure: { code: "unknown_repository" },
    });
    expect(await remove("merged", {}, "../elsewhere")).toMatchObject({
      failure: { code: "unknown_repository" },
    });
  });
});
