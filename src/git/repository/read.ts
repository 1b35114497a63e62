/** Reads a bare repository, and its default branch: the same for hosted repositories and mirrors. */
import * as Effect from "effect/Effect";
import type { WritePolicy } from "../server/ref-policy.ts";
import * as Result from "effect/Result";
import { readFile as readFileAt } from "node:fs/promises";
import { join } from "node:path";
import { isCommitId, parseBaseRef, parseDefaultBranch } from "../../domain/repository/git-ref.ts";
import { filesystem } from "./building.ts";
import { GitError } from "../port.ts";
import { branchTip, isCommit, refTarget, unknownRef } from "./refs.ts";
import { runGit } from "../run.ts";

const isReachable = (path: string, commit: string): Effect.Effect<boolean, GitError> =>
  Effect.map(
    runGit({
      repository: path,
      args: ["for-each-ref", "--count=1", "--format=%(refname)", `--contains=${commit}`, "refs/heads/"],
      expect: [0, 128, 129], // not an object here, or not a commit
    }),
    ({ exitCode, stdout }) => exitCode === 0 && stdout.length > 0,
  );

export const resolveBase = Effect.fnUntraced(function* (path: string, ref: string) {
  const baseRef = parseBaseRef(ref);
  if (Result.isFailure(baseRef)) return yield* unknownRef(baseRef.failure.message);
  const { name, commit } = baseRef.success;
  const branch = yield* branchTip(path, name);
  if (branch !== null) return branch;
  const tag = yield* refTarget(path, `refs/tags/${name}`);
  if (tag !== null && (yield* isCommit(path, tag))) return tag;
  if (tag !== null) return yield* unknownRef(`The tag ${name} does not point to a commit.`);
  if (commit !== null && (yield* isReachable(path, commit))) return commit;
  return yield* unknownRef(`${name} is not a branch, a tag or a reachable commit.`);
});

const entryPattern = /^(\d{6}) (?:blob|tree|commit) ([0-9a-f]{40}) +(\d+|-)\t/;

interface FileRequest {
  readonly commit: string;
  readonly file: string;
  readonly maxBytes: number;
}

export const readFile = Effect.fnUntraced(function* (path: string, { commit, file, maxBytes }: FileRequest) {
  if (!isCommitId(commit)) return yield* unknownRef("A file is read at a full commit id.");
  // No tree contains these paths, and git would read a trailing slash as the directory's content.
  if (file.includes("\0") || file.split("/").some((part) => part === "" || part === "." || part === ".."))
    return null;
  const listing = yield* runGit({ repository: path, args: ["ls-tree", "-z", "-l", commit, "--", file] });
  const [, mode, blob, size] = entryPattern.exec(listing.stdout.toString("utf8")) ?? [];
  if (mode === undefined || blob === undefined) return null;
  if (!mode.startsWith("100")) {
    return yield* new GitError({
      code: "not_a_file",
      message: `${file} is a directory, a symbolic link or a submodule, not a file.`,
    });
  }
  if (Number(size) > maxBytes) {
    return yield* new GitError({
      code: "file_too_large",
      message: `${file} has ${size} bytes. The limit is ${maxBytes} bytes.`,
    });
  }
  const content = yield* runGit({
    repository: path,
    args: ["cat-file", "blob", blob],
    maxOutputBytes: maxBytes,
  });
  return new Uint8Array(content.stdout);
});

/** How long packing may take, in milliseconds. */
const PACK_DEADLINE_MS = 120_000;

/** The commit with its history as a pack. Null if it is larger. */
export const readPack = Effect.fnUntraced(function* (
  path: string,
  { commit, maxBytes }: { readonly commit: string; readonly maxBytes: number },
) {
  if (!isCommitId(commit) || !(yield* isCommit(path, commit)))
    return yield* unknownRef(`Commit ${commit} not found.`);
  const { stdout, truncated } = yield* runGit({
    repository: path,
    args: ["pack-objects", "--revs", "--stdout", "--quiet", "--delta-base-offset"],
    stdin: `${commit}\n`,
    maxOutputBytes: maxBytes,
    deadlineMs: PACK_DEADLINE_MS,
  });
  return truncated ? null : new Uint8Array(stdout);
});

/** A side of a comparison: a branch or a full commit id. */
const resolveSide = Effect.fnUntraced(function* (path: string, side: string) {
  const tip = yield* branchTip(path, side);
  if (tip !== null) return tip;
  if (isCommitId(side) && (yield* isCommit(path, side))) return side;
  return yield* unknownRef(`Branch or commit ${side} not found.`);
});

export const readSides = (path: string, request: { readonly base: string; readonly head: string }) =>
  Effect.all({
    path: Effect.succeed(path),
    base: resolveSide(path, request.base),
    head: resolveSide(path, request.head),
  });

/** The branch that a plain clone checks out. It is read without a process: a push asks for each of its refs. */
export const headBranch = (path: string): Effect.Effect<string, GitError> =>
  Effect.map(
    filesystem("Reading HEAD", () => readFileAt(join(path, "HEAD"), "utf8")),
    (text) => text.trim().replace(/^ref: (?:refs\/heads\/)?/, ""),
  );

/** Points HEAD to a branch. */
export const pointHead = Effect.fnUntraced(function* (path: string, branch: string) {
  if ((yield* headBranch(path)) === branch) return;
  yield* runGit({ repository: path, args: ["symbolic-ref", "HEAD", `refs/heads/${branch}`] });
});

/** Whether the branch's name is allowed for a default branch. */
export const checkDefaultBranch = (branch: string): Effect.Effect<string, GitError> => {
  const name = parseDefaultBranch(branch);
  if (Result.isSuccess(name)) return Effect.succeed(name.success);
  const { code, message } = name.failure;
  return Effect.fail(
    code === "session_branch" ? new GitError({ code: "reserved_branch", message }) : unknownRef(message),
  );
};

export const setDefaultBranch = Effect.fnUntraced(function* (path: string, branch: string) {
  yield* checkDefaultBranch(branch);
  if ((yield* branchTip(path, branch)) === null) return yield* unknownRef(`Branch ${branch} not found.`);
  yield* pointHead(path, branch);
});

/** When the default branch changes, a hosted repository's HEAD changes first, and the project's row a moment later. */
export const protectionHere = ({ protection, ...policy }: WritePolicy, path: string): WritePolicy => ({
  ...policy,
  protection: Effect.zipWith(protection, headBranch(path), (now, head) => ({
    ...now,
    defaultBranches: [...now.defaultBranches, head],
  })),
});
