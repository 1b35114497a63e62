/**
 * One file of the root, written over a commit, in a bare repository without a work tree. Until a branch points to the
 * new commit, it is a loose object that git's housekeeping removes.
 */
import * as Effect from "effect/Effect";
import { isCommitId } from "../../domain/repository/git-ref.ts";
import { authoredIdentity } from "../identity.ts";
import { GitError, type FileCommit } from "../port.ts";
import { isCommit, unknownRef } from "./refs.ts";
import { runGit } from "../run.ts";

const FILE = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

const trimOutput = (stdout: Buffer): string => stdout.toString("utf8").trim();

/** The root's entries without this file, as `mktree -z` reads them. */
const others = (listing: Buffer, file: string): Buffer => {
  const entries: Buffer[] = [];
  for (let at = 0; at < listing.length;) {
    const end = listing.indexOf(0, at) + 1;
    const entry = listing.subarray(at, end);
    if (entry.subarray(entry.indexOf(0x09) + 1, -1).toString("latin1") !== file) entries.push(entry);
    at = end;
  }
  return Buffer.concat(entries);
};

/** Writes the commit. It moves no ref. */
export const writeFileCommit = Effect.fnUntraced(function* (
  path: string,
  { parent, file, content, message, author, at }: Omit<FileCommit, "branch">,
) {
  if (!isCommitId(parent) || !(yield* isCommit(path, parent)))
    return yield* unknownRef(`Commit ${parent} not found.`);
  if (!FILE.test(file))
    return yield* new GitError({
      code: "not_a_file",
      message: `${file} is not a name of a file at the root.`,
    });
  const git = { repository: path };
  const blob = yield* runGit({ ...git, args: ["hash-object", "-w", "--stdin"], stdin: content });
  const root = yield* runGit({ ...git, args: ["ls-tree", "-z", parent] });
  if (root.truncated)
    return yield* new GitError({ code: "git_failed", message: "The repository's root has too many files." });
  const entry = Buffer.from(`100644 blob ${trimOutput(blob.stdout)}\t${file}\0`);
  const tree = yield* runGit({
    ...git,
    args: ["mktree", "-z"],
    stdin: Buffer.concat([others(root.stdout, file), entry]),
  });
  const commit = yield* runGit({
    ...git,
    args: ["commit-tree", trimOutput(tree.stdout), "-p", parent, "-F", "-"],
    stdin: message,
    environment: authoredIdentity(author, at),
  });
  return trimOutput(commit.stdout);
});
