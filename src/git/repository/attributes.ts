/**
 * The attributes of a merge. `git merge` reads the `.gitattributes` of the work tree, which has the base commit. A bare
 * repository has no work tree, so these files alone are laid out in one while git merges. Git before 2.43 cannot read them
 * from a commit.
 *
 *  A1 They are the base's: the head's own changes to attributes count from the next merge on.
 *  A2 Only built-in drivers take part (`union`, `binary`, unset): no configuration here defines another one.
 */
import { randomUUID } from "node:crypto";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import * as Effect from "effect/Effect";
import { GitError, isTreePath } from "../port.ts";
import { runGit, type GitRequest } from "../run.ts";
import { filesystem } from "./building.ts";

export const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

const FILE = ".gitattributes";
const FILES_MAX = 1000;
const BYTES_MAX = 16 * 1024 * 1024;

interface AttributesFile {
  readonly path: string;
  readonly object: string;
}

/** `diff-tree -z --raw`: `:modes objects status NUL path NUL`. Git follows no link of this name, so links are left out. */
const parseListing = (output: Buffer): readonly AttributesFile[] => {
  const parts = output.toString("utf8").split("\0");
  const files: AttributesFile[] = [];
  for (let at = 0; at + 1 < parts.length; at += 2) {
    const [, mode = "", , object = ""] = (parts[at] ?? "").split(" ");
    const path = parts[at + 1] ?? "";
    if (mode.startsWith("100") && isTreePath(path)) files.push({ path, object });
  }
  return files;
};

const filesIn = Effect.fnUntraced(function* (repository: string, commit: string) {
  const { stdout, truncated } = yield* runGit({
    repository,
    args: ["diff-tree", "-r", "-z", "--raw", "--no-renames", emptyTree, commit, "--", `:(glob)**/${FILE}`],
    environment: { GIT_LITERAL_PATHSPECS: "0" },
  });
  const files = parseListing(stdout);
  if (!truncated && files.length <= FILES_MAX) return files;
  return yield* new GitError({
    code: "git_failed",
    message: `The repository has more than ${FILES_MAX} files ${FILE}.`,
  });
});

const layOut = Effect.fnUntraced(function* (
  repository: string,
  tree: string,
  files: readonly AttributesFile[],
) {
  let left = BYTES_MAX;
  for (const { path, object } of files) {
    const { stdout, truncated } = yield* runGit({
      repository,
      args: ["cat-file", "blob", object],
      maxOutputBytes: left,
    });
    left -= stdout.length;
    if (truncated || left <= 0)
      return yield* new GitError({
        code: "git_failed",
        message: `The repository's files ${FILE} are too large.`,
      });
    yield* filesystem("Laying out attributes", async () => {
      const place = join(tree, path);
      await mkdir(dirname(place), { recursive: true });
      await writeFile(place, stdout);
    });
  }
});

type Options = Pick<GitRequest, "environment"> & { readonly args: readonly string[] };

/** Runs git with the attributes of a commit. Without any, which is usual, nothing is laid out. */
export const withAttributes = <A>(
  repository: string,
  commit: string,
  use: (options: Options) => Effect.Effect<A, GitError>,
): Effect.Effect<A, GitError> =>
  Effect.flatMap(filesIn(repository, commit), (files) => {
    if (files.length === 0) return use({ args: [] });
    const tree = join(dirname(repository), `.attributes-${randomUUID()}`);
    return Effect.acquireUseRelease(
      filesystem("Laying out attributes", () => mkdir(tree, { mode: 0o700 })),
      () =>
        Effect.andThen(
          layOut(repository, tree, files),
          use({ args: ["-C", tree], environment: { GIT_WORK_TREE: tree } }),
        ),
      () => Effect.ignore(filesystem("Sweeping", () => rm(tree, { recursive: true, force: true }))),
    );
  });
