/**
 * The `hosted` backend: one bare repository for each project, in the service's data directory. No repository has a work
 * tree, and only git itself, started by run.ts, writes into it.
 *
 * A repository is built beside its place and renamed into it, so a repository with a project's name is complete. When
 * the layer starts, it removes what a dead service left half built. Refs change one at a time, by git's own
 * compare-and-swap, so any number of operations may run concurrently.
 */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Result from "effect/Result";
import { mkdir } from "node:fs/promises";
import { initialCommit } from "../../domain/repository/git-ref.ts";
import { builtInPlace, filesystem, initBare, removeRepository } from "./building.ts";
import { writeFileCommit } from "./commit-file.ts";
import { compareCommits, diffCommits } from "./compare.ts";
import { installHooks } from "../server/hooks.ts";
import { platformIdentity } from "../identity.ts";
import { importInto } from "./import.ts";
import { Faults } from "../../store/ports/faults.ts";
import { markUnclaimed } from "./kept-here.ts";
import { hasChanges, mergeInto, swapIn } from "./merge.ts";
import { GitBackend, GitError, type Repository } from "../port.ts";
import {
  checkDefaultBranch,
  headBranch,
  pointHead,
  readPack,
  readFile,
  resolveBase,
  setDefaultBranch,
  readSides,
} from "./read.ts";
import { absent } from "../server/ref-policy.ts";
import {
  branchNames,
  branchTaken,
  branchTip,
  checkNewBranch,
  deleteRef,
  isCommit,
  oldSaveRef,
  unknownRef,
} from "./refs.ts";
import { existingRepository, hooksDirectory, repositoryPath } from "./repository-path.ts";
import { requireGit, runGit } from "../run.ts";
import { sweepLeftovers } from "./sweep.ts";
import { listPaths, objectIds, readTree } from "./tree.ts";

export interface HostedOptions {
  /** The directory of the repositories. If it is missing, it is created for the service's user alone. */
  readonly directory: string;
  /** Lower-case hosts for which an import may use private addresses or plain http (PLATFORM_GIT_ALLOW_HOSTS). */
  readonly allowHosts?: readonly string[];
}

const createBranch = Effect.fnUntraced(function* (path: string, branch: string, commit: string) {
  yield* checkNewBranch(branch, commit);
  const creation = yield* Effect.result(
    runGit({ repository: path, args: ["update-ref", `refs/heads/${branch}`, commit, absent] }),
  );
  if (Result.isSuccess(creation)) return (yield* Faults)("branch.cut");
  const tip = yield* branchTip(path, branch);
  if (tip === commit) return;
  if (tip !== null) return yield* branchTaken(branch, tip);
  if (!(yield* isCommit(path, commit))) return yield* unknownRef(`Commit ${commit} not found.`);
  return yield* creation.failure;
});

const beginning = Date.UTC(2000, 0, 1);

/** All its fields are fixed, so that it has the same id everywhere (`initialCommit`). */
const writeInitialCommit = Effect.fnUntraced(function* (path: string, branch: string) {
  const tree = yield* runGit({ repository: path, args: ["mktree"] });
  const args = ["commit-tree", "-m", "Initial commit", tree.stdout.toString("utf8").trim()];
  yield* runGit({ repository: path, args, environment: platformIdentity(beginning) });
  yield* runGit({ repository: path, args: ["update-ref", `refs/heads/${branch}`, initialCommit, absent] });
});

interface Creation {
  readonly projectId: string;
  readonly importFrom: string | null;
  readonly defaultBranch: string | null;
}

const build = Effect.fnUntraced(function* (options: HostedOptions, request: Creation, aside: string) {
  const requestedBranch =
    request.defaultBranch === null ? null : yield* checkDefaultBranch(request.defaultBranch);
  yield* initBare(aside);
  const branch =
    request.importFrom === null
      ? (requestedBranch ?? "main")
      : yield* importInto({
          path: aside,
          source: request.importFrom,
          defaultBranch: requestedBranch,
          allowHosts: options.allowHosts ?? [],
        });
  if (request.importFrom === null) yield* writeInitialCommit(aside, branch);
  yield* pointHead(aside, branch);
  yield* markUnclaimed(aside);
});

const create = Effect.fnUntraced(function* (options: HostedOptions, request: Creation) {
  const path = repositoryPath(options.directory, request.projectId);
  if (path === null) {
    return yield* new GitError({ code: "unknown_repository", message: "A project id is a lower-case UUID." });
  }
  const there = yield* Effect.result(existingRepository(options.directory, request));
  if (Result.isFailure(there)) {
    yield* builtInPlace(options.directory, path, (aside) => build(options, request, aside));
  }
  return { defaultBranch: yield* headBranch(path) };
});

/**
 * The backend over `directory`. At its start it refuses an unsuitable git, installs the push hooks and removes
 * leftovers of a dead service: one service owns the directory.
 */
export const hostedBackend = (options: HostedOptions): Layer.Layer<GitBackend, GitError> =>
  Layer.effect(
    GitBackend,
    Effect.gen(function* () {
      const { directory } = options;
      yield* requireGit;
      yield* filesystem("Creating the repositories' directory", () =>
        mkdir(directory, { recursive: true, mode: 0o700 }),
      );
      yield* installHooks(hooksDirectory(directory));
      yield* sweepLeftovers(directory);
      const at = <A>(repository: Repository, use: (path: string) => Effect.Effect<A, GitError>) =>
        Effect.flatMap(existingRepository(directory, repository), use);
      return GitBackend.of({
        create: (request) => create(options, request),
        checkUpstream: () =>
          Effect.fail(new GitError({ code: "git_failed", message: "A hosted repository has no server." })),
        setDefaultBranch: (repository, branch) => at(repository, (path) => setDefaultBranch(path, branch)),
        remove: (repository) => removeRepository(directory, repository),
        resolveBase: (repository, ref) => at(repository, (path) => resolveBase(path, ref)),
        branchTip: (repository, branch) => at(repository, (path) => branchTip(path, branch)),
        removeOldSave: (repository, sessionId) =>
          at(repository, (path) => deleteRef(path, oldSaveRef(sessionId))),
        hasChanges: (repository, request) => at(repository, (path) => hasChanges(path, request)),
        branches: (repository, { limit }) => at(repository, (path) => branchNames(path, limit)),
        createBranch: (repository, request) =>
          at(repository, (path) => createBranch(path, request.branch, request.commit)),
        commitFile: (repository, { branch, ...commit }) =>
          at(repository, (path) =>
            Effect.tap(writeFileCommit(path, commit), (commitId) => createBranch(path, branch, commitId)),
          ),
        readFile: (repository, { commit, path: file, maxBytes }) =>
          at(repository, (path) => readFile(path, { commit, file, maxBytes })),
        pack: (repository, request) => at(repository, (path) => readPack(path, request)),
        objectIds: (repository, request) => at(repository, (path) => objectIds(path, request)),
        readTree: (repository, request) => at(repository, (path) => readTree(path, request)),
        paths: (repository, request) => at(repository, (path) => listPaths(path, request)),
        compare: (repository, request) =>
          at(repository, (path) => Effect.flatMap(readSides(path, request), compareCommits)),
        diff: (repository, request) =>
          at(repository, (path) =>
            Effect.flatMap(readSides(path, request), (sides) => diffCommits(sides, request)),
          ),
        // In each round of concurrent merges one succeeds. So more concurrent merges than this are refused.
        merge: (repository, request) =>
          at(repository, (path) => mergeInto(path, request, { attempts: 10, swap: swapIn(path) })),
      });
    }),
  );
