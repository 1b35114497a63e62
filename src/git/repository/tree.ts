/** Reads many files of a commit at once: their object ids, their paths, and their contents page by page. */
import { createHash } from "node:crypto";
import * as Effect from "effect/Effect";
import { isUtf8 } from "node:buffer";
import type { Readable } from "node:stream";
import { isCommitId } from "../../domain/repository/git-ref.ts";
import {
  GitError,
  isRootPath,
  isTreePath,
  type ObjectIdsRequest,
  type PathList,
  type PathsRequest,
  TREE_PAGE_FILES,
  type TreeFile,
  type TreePage,
  type TreeRequest,
} from "../port.ts";
import { gitMessage } from "../failure.ts";
import { runGit, spawnGit } from "../run.ts";
import { unknownRef } from "./refs.ts";

/** How long git may take to list a tree, in milliseconds. */
const LISTING_MS = 60_000;
/** An object id in a tree. */
const ID_BYTES = 20;

interface Found {
  readonly id: string;
  readonly type: string;
}

/**
 * Reads the answers of `cat-file --batch-check`, one for each question. A question is repeated in the answer if nothing was
 * found, and a path may contain line breaks: so an answer is compared with its question.
 */
const readAnswers = (questions: readonly string[], answers: Buffer): (Found | null)[] => {
  let at = 0;
  return questions.map((question) => {
    const missing = Buffer.from(`${question} missing\n`);
    if (answers.subarray(at, at + missing.length).equals(missing)) {
      at += missing.length;
      return null;
    }
    const end = answers.indexOf("\n", at);
    const [id = "", type = ""] = answers.toString("latin1", at, end).split(" ");
    at = end + 1;
    return { id, type };
  });
};

/** The blobs and trees at the paths of a commit. Null for a path without one. */
const objectsAt = Effect.fnUntraced(function* (path: string, commit: string, paths: readonly string[]) {
  if (!isCommitId(commit)) return yield* unknownRef("Files are read at a full commit id.");
  // Git has no answer for an impossible path. The all-zero id is never an object.
  const questions = paths.map((file) => {
    if (isRootPath(file)) return `${commit}^{tree}`;
    return isTreePath(file) ? `${commit}:${file}` : "0".repeat(40);
  });
  const input = [`${commit}^{commit}`, ...questions];
  const { stdout } = yield* runGit({
    repository: path,
    args: ["cat-file", "-z", "--batch-check=%(objectname) %(objecttype)"],
    stdin: input.map((question) => `${question}\0`).join(""),
  });
  const [self, ...found] = readAnswers(input, stdout);
  if (self?.id !== commit) return yield* unknownRef(`Commit ${commit} not found.`);
  // A submodule is the commit of another repository, which this one may have as well.
  return found.map((object) => (object?.type === "blob" || object?.type === "tree" ? object : null));
});

/** A directory on the way to the file that does not count, from the root on, with its content as git stores it. */
interface Level {
  readonly path: string;
  readonly content: Buffer;
}

const treeHash = (content: Buffer): string =>
  createHash("sha1").update(`tree ${content.length}\0`).update(content).digest("hex");

/** The content of a tree whose entry `name` has another id, or is gone. */
const replaceEntry = (content: Buffer, name: Buffer, id: string | null): Buffer => {
  for (let at = 0; at < content.length;) {
    const end = content.indexOf(0, at);
    const next = end + 1 + ID_BYTES;
    // The mode ends with the first space.
    if (content.subarray(content.indexOf(" ", at) + 1, end).equals(name))
      return Buffer.concat([
        content.subarray(0, id === null ? at : end + 1),
        Buffer.from(id ?? "", "hex"),
        content.subarray(next),
      ]);
    at = next;
  }
  return content;
};

/**
 * The ids of the directories above a file, if the file did not exist. Git has no empty directories, so one that has nothing
 * else is gone, too: null.
 */
const idsWithout = (levels: readonly Level[], names: readonly string[]): Map<string, string | null> => {
  const ids = new Map<string, string | null>();
  let below: string | null = null;
  for (const [depth, { path, content }] of [...levels.entries()].toReversed()) {
    const newContent = replaceEntry(content, Buffer.from(names[depth] ?? ""), below);
    below = newContent.length === 0 && path !== "" ? null : treeHash(newContent);
    ids.set(path, below);
  }
  return ids;
};

const levelsAbove = Effect.fnUntraced(function* (path: string, commit: string, file: string) {
  const names = file.split("/");
  const paths = names.map((_name, depth) => names.slice(0, depth).join("/"));
  const [found, ...trees] = yield* objectsAt(path, commit, [file, ...paths]);
  if (found?.type !== "blob") return null;
  const { stdout } = yield* runGit({
    repository: path,
    args: ["cat-file", "--batch"],
    stdin: trees.map((tree) => `${tree?.id ?? ""}\n`).join(""),
  });
  let at = 0;
  const levels = paths.map((directory): Level => {
    const begin = stdout.indexOf("\n", at) + 1;
    const end = begin + Number(stdout.toString("latin1", at, begin - 1).split(" ")[2]);
    at = end + 1;
    return { path: directory, content: stdout.subarray(begin, end) };
  });
  return { names, levels };
});

/** `objectIds` of git/port.ts. */
export const objectIds = Effect.fnUntraced(function* (
  path: string,
  { commit, paths, without }: ObjectIdsRequest,
): Effect.fn.Return<readonly (string | null)[], GitError> {
  const objects = yield* objectsAt(path, commit, paths);
  const ids = objects.map((object) => object?.id ?? null);
  const above = without === undefined ? null : yield* levelsAbove(path, commit, without);
  if (above === null) return ids;
  const newIds = idsWithout(above.levels, above.names);
  return paths.map((wantedPath, index) => {
    if (wantedPath === without) return null;
    const other = newIds.get(isRootPath(wantedPath) ? "" : wantedPath);
    return other === undefined ? (ids[index] ?? null) : other;
  });
});

interface Listed extends Omit<TreeFile, "content"> {
  readonly blob: string;
}

const KINDS: Readonly<Record<string, TreeFile["kind"]>> = {
  "100644": "file",
  "100664": "file", // written by git before 2005
  "100755": "executable",
  "120000": "link",
};
const entryPattern = /^(\d{6}) (?:blob|commit) ([0-9a-f]{40}) +(\d+|-)$/;

const notText = (path: Buffer): GitError =>
  new GitError({
    code: "not_a_file",
    message: `The path ${path.toString("utf8")} is not UTF-8 text. Rename the file.`,
  });

const tooLarge = ({ path, size }: Listed, maxBytes: number): GitError =>
  new GitError({
    code: "file_too_large",
    message: `${path} has ${size} bytes. The limit is ${maxBytes} bytes.`,
  });

/** Reads a line of `ls-tree -l`. Null for a submodule. */
const readEntry = (line: Buffer, file: Buffer): Listed | null => {
  const [, mode = "", blob = "", size] = entryPattern.exec(line.toString("latin1")) ?? [];
  const kind = KINDS[mode];
  if (kind === undefined) return null;
  if (!isUtf8(file)) throw notText(file);
  return { path: file.toString("utf8"), kind, size: Number(size), blob };
};

interface Listing {
  readonly files: readonly Listed[];
  readonly isCut: boolean;
}

interface Entry {
  /** Its mode, type and id, and with `-l` its size. */
  readonly head: Buffer;
  /** Its path. */
  readonly file: Buffer;
}

/** The entries of git's output as they come, so that a tree of any size takes little memory. */
async function* entriesIn(stdout: Readable): AsyncGenerator<readonly Entry[]> {
  let rest = Buffer.alloc(0);
  for await (const chunk of stdout as AsyncIterable<Buffer>) {
    rest = Buffer.concat([rest, chunk]);
    const entries: Entry[] = [];
    let at = 0;
    for (let end = rest.indexOf(0); end !== -1; end = rest.indexOf(0, at)) {
      const tab = rest.indexOf("\t", at);
      entries.push({ head: rest.subarray(at, tab), file: rest.subarray(tab + 1, end) });
      at = end + 1;
    }
    rest = rest.subarray(at);
    yield entries;
  }
}

/**
 * Reads the listing until the page is full.
 * @throws GitError
 */
const readPage = async (
  stdout: Readable,
  { after, maxBytes }: Pick<TreeRequest, "after" | "maxBytes">,
): Promise<Listing> => {
  const begin = after === null ? null : Buffer.from(after);
  const files: Listed[] = [];
  let bytes = 0;
  for await (const entries of entriesIn(stdout)) {
    for (const { head, file } of entries) {
      const entry = begin !== null && Buffer.compare(file, begin) <= 0 ? null : readEntry(head, file);
      if (entry === null) continue;
      if (entry.size > maxBytes && files.length === 0) throw tooLarge(entry, maxBytes);
      if (bytes + entry.size > maxBytes || files.length === TREE_PAGE_FILES) return { files, isCut: true };
      bytes += entry.size;
      files.push(entry);
    }
  }
  return { files, isCut: false };
};

/** Lists a tree. `read` gets git's output, and tells whether it read all of it. */
const listTree = <A extends { readonly isCut: boolean }>(
  path: string,
  args: readonly string[],
  read: (stdout: Readable) => Promise<A>,
) =>
  Effect.gen(function* () {
    const git = yield* spawnGit({
      repository: path,
      args: ["ls-tree", "-r", "-z", "--full-tree", ...args],
    });
    const listing = yield* Effect.tryPromise({
      try: () => read(git.stdout),
      catch: (error) =>
        error instanceof GitError
          ? error
          : new GitError({ code: "git_failed", message: "git ls-tree: its output broke off." }),
    });
    if (listing.isCut || (yield* git.exit) === 0) return listing;
    yield* git.silent;
    return yield* new GitError({
      code: "git_failed",
      message: `git ls-tree: ${gitMessage(git.stderr(), path)}`,
    });
  }).pipe(
    Effect.scoped,
    Effect.timeoutOrElse({
      duration: LISTING_MS,
      orElse: () =>
        Effect.fail(
          new GitError({ code: "timeout", message: `git ls-tree took longer than ${LISTING_MS / 1000} s.` }),
        ),
    }),
  );

const SUBMODULE = "160000 ";

/** Counts them all, and keeps the first ones. */
const readPaths = async (stdout: Readable, limit: number) => {
  const paths: string[] = [];
  let total = 0;
  for await (const entries of entriesIn(stdout)) {
    for (const { head, file } of entries) {
      if (head.toString("latin1").startsWith(SUBMODULE) || !isUtf8(file)) continue;
      total += 1;
      if (paths.length < limit) paths.push(file.toString("utf8"));
    }
  }
  return { paths, total, isCut: false };
};

/** `paths` of git/port.ts. */
export const listPaths = Effect.fnUntraced(function* (
  path: string,
  { commit, limit }: PathsRequest,
): Effect.fn.Return<PathList, GitError> {
  yield* objectsAt(path, commit, []);
  const { paths, total } = yield* listTree(path, [commit], (stdout) => readPaths(stdout, limit));
  return { paths, total };
});

/** The contents of the blobs, in their order. */
const readContents = Effect.fnUntraced(function* (path: string, files: readonly Listed[]) {
  if (files.length === 0) return [];
  const heads = files.map(({ blob, size }) => `${blob} blob ${size}\n`);
  const { stdout } = yield* runGit({
    repository: path,
    args: ["cat-file", "--batch"],
    stdin: files.map(({ blob }) => `${blob}\n`).join(""),
    maxOutputBytes: files.reduce((sum, { size }, index) => sum + (heads[index]?.length ?? 0) + size + 1, 0),
  });
  let at = 0;
  return yield* Effect.forEach(files, ({ path: file, size }, index) => {
    const head = heads[index] ?? "";
    const begin = at + head.length;
    if (stdout.toString("latin1", at, begin) !== head || stdout.length < begin + size) {
      return Effect.fail(
        new GitError({ code: "git_failed", message: `git cat-file: ${file} was not read.` }),
      );
    }
    at = begin + size + 1;
    return Effect.succeed(new Uint8Array(stdout.subarray(begin, begin + size)));
  });
});

/** `readTree` of git/port.ts. */
export const readTree = Effect.fnUntraced(function* (
  path: string,
  request: TreeRequest,
): Effect.fn.Return<TreePage | null, GitError> {
  const [directory] = yield* objectsAt(path, request.commit, [request.path]);
  if (directory?.type !== "tree") return null;
  const { files, isCut } = yield* listTree(path, ["-l", directory.id], (stdout) => readPage(stdout, request));
  const contents = yield* readContents(path, files);
  const entries = files.map(({ path: file, kind, size }, index) => ({
    path: file,
    kind,
    size,
    content: contents[index] ?? new Uint8Array(),
  }));
  return { entries, next: isCut ? (files.at(-1)?.path ?? null) : null };
});
