/** What a comparison says of files beside their lines, and diffs of files whose names git alone can write. */
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as Effect from "effect/Effect";
import * as ManagedRuntime from "effect/ManagedRuntime";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { GitBackend } from "../../src/git/port.ts";
import { hostedBackend } from "../../src/git/repository/hosted.ts";
import { runGit } from "../../src/git/run.ts";

const root = mkdtempSync(join(tmpdir(), "changed-"));
const directory = join(root, "repositories");
const runtime = ManagedRuntime.make(hostedBackend({ directory }));
const repository = { projectId: randomUUID() };
const sides = { base: "main", head: "work" };
const git = <A, E>(use: (hosted: GitBackend["Service"]) => Effect.Effect<A, E>): Promise<A> =>
  runtime.runPromise(Effect.flatMap(GitBackend, use));

const LINES = Array.from({ length: 20 }, (_, n) => `line ${n}\n`).join("");
const data = (bytes: Buffer | string) =>
  Buffer.concat([Buffer.from(`data ${Buffer.byteLength(bytes)}\n`), Buffer.from(bytes), Buffer.from("\n")]);
const file = (name: string, bytes: Buffer | string, mode = "100644") =>
  Buffer.concat([Buffer.from(`M ${mode} inline ${name}\n`, "latin1"), data(bytes)]);
const commit = (branch: string, ...changes: readonly (Buffer | string)[]) =>
  Buffer.concat([
    Buffer.from(`commit refs/heads/${branch}\ncommitter A <a@example.com> 1700000000 +0000\n`),
    data("change"),
    ...changes.map((change) => Buffer.from(change)),
  ]);

beforeAll(async () => {
  await git((hosted) => hosted.create({ ...repository, importFrom: null, defaultBranch: "main" }));
  await Effect.runPromise(
    runGit({
      repository: join(directory, `${repository.projectId}.git`),
      args: ["fast-import", "--quiet", "--force"],
      stdin: Buffer.concat([
        commit("main", "deleteall\n", file("run.sh", LINES), file("old.txt", LINES)),
        commit(
          "work",
          "from refs/heads/main\n",
          file("run.sh", LINES, "100755"),
          "R old.txt new.txt\n",
          file("dot.bin", Buffer.from([0, 1, 2])),
          file("latin1-\xe9.txt", "the odd one\n"),
          file("latin1-e.txt", "another\n"),
          file("latin1-\xe9.txt.more", "a longer one\n"),
        ),
      ]),
    }),
  );
});
afterAll(async () => {
  await runtime.dispose();
  rmSync(root, { recursive: true, force: true });
});

describe("changed files", () => {
  it("say what lines do not: that they are binary, renamed, or have another mode", async () => {
    const { filesChanged } = await git((hosted) => hosted.compare(repository, sides));
    const none = { additions: 0, deletions: 0 };
    const added = { additions: 1, deletions: 0 };
    expect(filesChanged.toSorted((one, other) => (one.path < other.path ? -1 : 1))).toEqual([
      { path: "dot.bin", ...none, binary: true },
      { path: "latin1-e.txt", ...added },
      { path: "latin1-\uFFFD.txt", ...added },
      { path: "latin1-\uFFFD.txt.more", ...added },
      { path: "new.txt", ...none, renamedFrom: "old.txt" },
      { path: "run.sh", ...none, mode: "100755" },
    ]);
  });

  it("have a diff of their own by the path that the list shows, also without UTF-8", async () => {
    const diff = await git((hosted) =>
      hosted.diff(repository, { ...sides, maxBytes: 10_000, path: "latin1-\uFFFD.txt" }),
    );
    expect(diff).toContain("+the odd one\n");
    expect(diff.match(/^diff --git/gm)).toHaveLength(1);
  });
});
