/**
 * The `hosted` backend: one bare repository a project, in the service's data directory. Nothing here has a work tree,
 * and nothing but git itself, under run.ts, writes into a repository.
 *
 * A repository is built beside its place and renamed into it, so whatever has the name is whole; what a dead service
 * left half built is swept when the layer starts. Refs change one at a time in git's own compare-and-swap, so any number
 * of operations may run at once.
 */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Result from "effect/Result";
import { randomUUID } from "node:crypto";
import { access, mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { isCommitId, parseBaseRef, parseBranchName } from "../domain/git-ref.ts";
import { compareCommits, diffCommits } from "./compare.ts";
import { installHooks } from "./hooks.ts";
import { platformIdentity } from "./identity.ts";
import { importInto } from "./import.ts";
import { mergeInto } from "./merge.ts";
import { GitBackend, GitError, type Repository } from "./port.ts";
import { absent, initialCommit } from "./ref-policy.ts";
import { branchTip, isCommit, refTarget, unknownRef } from "./refs.ts";
import { existingRepository, hooksDirectory, repositoryPath } from "./repository-path.ts";
import { requireGit, runGit } from "./run.ts";
import { sweepLeftovers } from "./sweep.ts";

export interface HostedOptions {
  /** Holds the repositories; made, for the service's user alone, where it is missing. */
  readonly directory: string;
  /** Lower-case hosts whose private addresses, or plain http, an import may use (PLATFORM_GIT_ALLOW_HOSTS). */
  readonly allowHosts?: readonly string[];
}

const filesystem = <A>(doing: string, work: () => Promise<A>): Effect.Effect<A, GitError> =>
  Effect.tryPromise({
    try: work,
    catch: (cause) => {
      const code = cause instanceof Error && "code" in cause ? String(cause.code) : "unknown reason";
      return new GitError({ code: "git_failed", message: `${doing} failed (${code}).` });
    },
  });

const isReachable = (path: string, commit: string): Effect.Effect<boolean, GitError> =>
  Effect.map(
    runGit({
      repository: path,
      args: ["for-each-ref", "--count=1", "--format=%(refname)", `--contains=${commit}`, "refs/heads/"],
      expect: [0, 128, 129], // not an object here, or no commit
    }),
    ({ exitCode, stdout }) => exitCode === 0 && stdout.length > 0,
  );

const resolveBase = Effect.fnUntraced(function* (path: string, ref: string) {
  const parsed = parseBaseRef(ref);
  if (Result.isFailure(parsed)) return yield* unknownRef(parsed.failure.message);
  const { name, commit } = parsed.success;
  const branch = yield* refTarget(path, `refs/heads/${name}`);
  if (branch !== null) return branch;
  const tag = yield* refTarget(path, `refs/tags/${name}`);
  if (tag !== null && (yield* isCommit(path, tag))) return tag;
  if (tag !== null) return yield* unknownRef(`The tag ${name} does not lead to a commit.`);
  if (commit !== null && (yield* isReachable(path, commit))) return commit;
  return yield* unknownRef(`There is no branch, tag or reachable commit ${name}.`);
});

const createBranch = Effect.fnUntraced(function* (path: string, branch: string, commit: string) {
  const parsed = parseBranchName(branch);
  if (Result.isFailure(parsed)) return yield* unknownRef(parsed.failure.message);
  if (!isCommitId(commit)) return yield* unknownRef("A branch is made from a full commit id.");
  const created = yield* Effect.result(
    runGit({ repository: path, args: ["update-ref", `refs/heads/${branch}`, commit, absent] }),
  );
  if (Result.isSuccess(created)) return;
  const tip = yield* branchTip(path, branch);
  if (tip === commit) return;
  if (tip !== null) {
    return yield* new GitError({
      code: "branch_conflict",
      message: `The branch ${branch} is already there with another commit (${tip.slice(0, 12)}).`,
    });
  }
  if (!(yield* isCommit(path, commit))) return yield* unknownRef(`There is no commit ${commit}.`);
  return yield* created.failure;
});

const entryPattern = /^(\d{6}) (?:blob|tree|commit) ([0-9a-f]{40}) +(\d+|-)\t/;

interface FileRequest {
  readonly commit: string;
  readonly file: string;
  readonly maxBytes: number;
}

const readFile = Effect.fnUntraced(function* (path: string, { commit, file, maxBytes }: FileRequest) {
  if (!isCommitId(commit)) return yield* unknownRef("A file is read at a full commit id.");
  // No tree holds such a path, and git would read a trailing slash as "what is below".
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
      message: `${file} has ${size} bytes; at most ${maxBytes} are read.`,
    });
  }
  const content = yield* runGit({
    repository: path,
    args: ["cat-file", "blob", blob],
    maxOutputBytes: maxBytes,
  });
  return new Uint8Array(content.stdout);
});

/** A branch or a full commit id, as the two sides of a comparison are given. */
const sideOf = Effect.fnUntraced(function* (path: string, side: string) {
  const tip = yield* branchTip(path, side);
  if (tip !== null) return tip;
  if (isCommitId(side) && (yield* isCommit(path, side))) return side;
  return yield* unknownRef(`There is no branch or commit ${side}.`);
});

const sidesOf = (path: string, request: { readonly base: string; readonly head: string }) =>
  Effect.all({
    path: Effect.succeed(path),
    base: sideOf(path, request.base),
    head: sideOf(path, request.head),
  });

const beginning = Date.UTC(2000, 0, 1);

/** Everything about it is fixed, so that it has one id everywhere (`initialCommit`). */
const writeInitialCommit = Effect.fnUntraced(function* (path: string, branch: string) {
  const tree = yield* runGit({ repository: path, args: ["mktree"] });
  const args = ["commit-tree", "-m", "Initial commit", tree.stdout.toString("utf8").trim()];
  yield* runGit({ repository: path, args, environment: platformIdentity(beginning) });
  yield* runGit({ repository: path, args: ["update-ref", `refs/heads/${branch}`, initialCommit, absent] });
});

const headBranch = (path: string): Effect.Effect<string, GitError> =>
  Effect.map(runGit({ repository: path, args: ["symbolic-ref", "--short", "HEAD"] }), ({ stdout }) =>
    stdout.toString("utf8").trim(),
  );

const setDefaultBranch = Effect.fnUntraced(function* (path: string, branch: string) {
  if ((yield* branchTip(path, branch)) === null) return yield* unknownRef(`There is no branch ${branch}.`);
  yield* runGit({ repository: path, args: ["symbolic-ref", "HEAD", `refs/heads/${branch}`] });
});

interface Creation {
  readonly projectId: string;
  readonly importFrom: string | null;
  readonly defaultBranch: string | null;
}

const build = Effect.fnUntraced(function* (options: HostedOptions, request: Creation, aside: string) {
  const asked = request.defaultBranch === null ? null : parseBranchName(request.defaultBranch);
  if (asked !== null && Result.isFailure(asked)) return yield* unknownRef(asked.failure.message);
  const args = [
    "init",
    "--quiet",
    "--bare",
    "--template=",
    "--object-format=sha1",
    "--initial-branch=main",
    aside,
  ];
  yield* runGit({ repository: null, args });
  const branch =
    request.importFrom === null
      ? (asked?.success ?? "main")
      : yield* importInto({
          path: aside,
          source: request.importFrom,
          defaultBranch: asked?.success ?? null,
          allowHosts: options.allowHosts ?? [],
        });
  if (request.importFrom === null) yield* writeInitialCommit(aside, branch);
  yield* runGit({ repository: aside, args: ["symbolic-ref", "HEAD", `refs/heads/${branch}`] });
});

const create = Effect.fnUntraced(function* (options: HostedOptions, request: Creation) {
  const path = repositoryPath(options.directory, request.projectId);
  if (path === null) {
    return yield* new GitError({ code: "unknown_repository", message: "A project id is a lower-case UUID." });
  }
  const there = yield* Effect.result(existingRepository(options.directory, request));
  if (Result.isFailure(there)) {
    const aside = join(options.directory, `.building-${randomUUID()}`);
    yield* build(options, request, aside).pipe(
      Effect.andThen(
        filesystem("Putting the repository in its place", () =>
          rename(aside, path).catch(async (error: unknown) => {
            // Another call was quicker: a directory is never renamed over one that has something in it.
            await access(join(path, "HEAD")).catch(() => Promise.reject(error));
          }),
        ),
      ),
      Effect.ensuring(
        Effect.ignore(filesystem("Sweeping", () => rm(aside, { recursive: true, force: true }))),
      ),
    );
  }
  return { defaultBranch: yield* headBranch(path) };
});

const remove = (directory: string, repository: Repository): Effect.Effect<void, GitError> => {
  const path = repositoryPath(directory, repository.projectId);
  if (path === null) return Effect.void;
  const aside = join(directory, `.removing-${randomUUID()}`);
  return filesystem("Removing the repository", async () => {
    const gone = await rename(path, aside).then(
      () => false,
      (error: NodeJS.ErrnoException) => (error.code === "ENOENT" ? true : Promise.reject(error)),
    );
    if (!gone) await rm(aside, { recursive: true, force: true });
  });
};

/**
 * The backend over `directory`. Starting it refuses an unfit git, installs the push hooks and sweeps what a dead service
 * left: one service owns the directory.
 */
export const hostedBackend = (options: HostedOptions): Layer.Layer<GitBackend, GitError> =>
  Layer.effect(
    GitBackend,
    Effect.gen(function* () {
      const { directory } = options;
      yield* requireGit;
      yield* filesystem("Making the repositories' directory", () =>
        mkdir(directory, { recursive: true, mode: 0o700 }),
      );
      yield* installHooks(hooksDirectory(directory));
      yield* sweepLeftovers(directory);
      const at = <A>(repository: Repository, use: (path: string) => Effect.Effect<A, GitError>) =>
        Effect.flatMap(existingRepository(directory, repository), use);
      return GitBackend.of({
        create: (request) => create(options, request),
        setDefaultBranch: (repository, branch) => at(repository, (path) => setDefaultBranch(path, branch)),
        remove: (repository) => remove(directory, repository),
        resolveBase: (repository, ref) => at(repository, (path) => resolveBase(path, ref)),
        branchTip: (repository, branch) => at(repository, (path) => branchTip(path, branch)),
        createBranch: (repository, request) =>
          at(repository, (path) => createBranch(path, request.branch, request.commit)),
        readFile: (repository, { commit, path: file, maxBytes }) =>
          at(repository, (path) => readFile(path, { commit, file, maxBytes })),
        compare: (repository, request) =>
          at(repository, (path) => Effect.flatMap(sidesOf(path, request), compareCommits)),
        diff: (repository, request) =>
          at(repository, (path) =>
            Effect.flatMap(sidesOf(path, request), (sides) => diffCommits(sides, request.maxBytes)),
          ),
        // Of merges that collide one goes through each time: more at once than this are turned away.
        merge: (repository, request) => at(repository, (path) => mergeInto(path, request, { attempts: 10 })),
      });
    }),
  );
