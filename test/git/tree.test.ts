/** Reading trees of real repositories: what the twin cannot show (the rest is in conformance/git/git-trees.ts). */
import { afterAll, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { GitBackend } from "../../src/git/port.ts";
import { hostedBackend } from "../../src/git/repository/hosted.ts";
import { existingRepository } from "../../src/git/repository/repository-path.ts";
import { runGit } from "../../src/git/run.ts";

const directory = mkdtempSync(join(tmpdir(), "trees-"));
const layer = hostedBackend({ directory });
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** A repository with a commit of the files in this script of `git fast-import`, and a way to read it. */
const withFiles = Effect.fnUntraced(function* (files: readonly (readonly [string, Buffer])[]) {
  const backend = yield* GitBackend;
  const repository = { projectId: randomUUID() };
  yield* backend.create({ ...repository, importFrom: null, defaultBranch: "main" });
  const script = [
    "commit refs/heads/files\ncommitter T <t@example.org> 946684800 +0000\ndata 0\n",
    ...files.flatMap(([path, content]) => [
      `M 100644 inline "${path}"\ndata ${content.length}\n`,
      content,
      "\n",
    ]),
  ];
  yield* runGit({
    repository: yield* existingRepository(directory, repository),
    args: ["fast-import", "--quiet"],
    stdin: Buffer.concat(script.map((part) => Buffer.from(part))),
  });
  const commit = yield* backend.resolveBase(repository, "files");
  return (after: string | null, maxBytes: number) =>
    backend.readTree(repository, { commit, path: "", after, maxBytes });
});

const live = (name: string, test: () => Effect.Effect<void, unknown, GitBackend>): void =>
  it.live(name, () => Effect.provide(test(), layer));

live("fails at a path that is not UTF-8, and names it", () =>
  Effect.gen(function* () {
    const read = yield* withFiles([
      ["a", Buffer.from("a")],
      [String.raw`b\377`, Buffer.from("b")],
    ]);
    const error = yield* Effect.flip(read(null, 1000));
    expect(error).toMatchObject({
      code: "not_a_file",
      message: "The path b\ufffd is not UTF-8 text. Rename the file.",
    });
  }),
);

live("reads the stored bytes, whatever attributes the commit sets", () =>
  Effect.gen(function* () {
    const bytes = Buffer.from([0, 0xff, 0x0d, 0x0a, 0x0a, 0x24, 0x49, 0x64, 0x24, 0x80]);
    const attributes = Buffer.from(
      "* text eol=crlf ident filter=lfs working-tree-encoding=UTF-16 export-ignore\n",
    );
    const read = yield* withFiles([
      [".gitattributes", attributes],
      ["bytes", bytes],
    ]);
    const page = yield* read(null, 1000);
    expect(page?.entries.map(({ path, content }) => [path, Buffer.from(content)])).toEqual([
      [".gitattributes", attributes],
      ["bytes", bytes],
    ]);
  }),
);

live("reads a listing that is longer than a pipe holds, from any place in it", () =>
  Effect.gen(function* () {
    const names = Array.from(
      { length: 5000 },
      (_, n) => `${"long".repeat(40)}/${String(n).padStart(4, "0")}`,
    );
    const read = yield* withFiles(names.map((name) => [name, Buffer.from("x")] as const));
    for (const begin of [0, 999, 4990]) {
      const page = yield* read(names[begin] ?? "", 7);
      expect(page?.entries.map(({ path }) => path)).toEqual(names.slice(begin + 1, begin + 8));
    }
    expect((yield* read(names[4990] ?? "", 100))?.next).toBeNull();
  }),
);
