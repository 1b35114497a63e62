/**
 * Mirrors of repositories at other servers: a bare repository each, below one directory, fetched when needed. Known
 * objects are not transferred again for clones, comparisons and merges.
 *
 *  B1 A mirror is only a copy: its refs contain nothing that the server did not send. A lost mirror is created again
 *     when needed.
 *  B2 One fetch of a mirror runs at a time. Callers that ask while it runs share the next one, including its failure.
 *     So the result always began after they asked.
 *  B3 While a ref is being pushed, no fetch moves it until the mirror has the server's commit.
 *  B4 A server that returns a web page must not remove refs here (remote.ts, R5). A fetch asks for the default branch
 *     by name, and fails if it is missing. Then the server must prove that it speaks git.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import type * as Scope from "effect/Scope";
import * as Semaphore from "effect/Semaphore";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { builtInPlace, filesystem, initBare, removeRepository } from "../repository/building.ts";
import { makeFreshness } from "./freshness.ts";
import { GitError, type Repository } from "../port.ts";
import { pointHead } from "../repository/read.ts";
import { branchTip } from "../repository/refs.ts";
import {
  openRemote,
  type Remote,
  type RemoteOptions,
  type RemoteRepository,
  requireGitServer,
  runRemote,
} from "./remote.ts";
import { existingRepository, repositoryPath, unknownRepository } from "../repository/repository-path.ts";
import { runGit } from "../run.ts";

/** Where a project's repository is kept, and the branch that a plain clone of it checks out. */
export type MirroredRepository = RemoteRepository & { readonly defaultBranch: string };

export interface MirrorOptions extends RemoteOptions {
  /** Null if the project has no repository of this kind. */
  readonly findRemote: (projectId: string) => Effect.Effect<MirroredRepository | null, GitError>;
}

export interface Mirrors {
  /** Creates the mirror of a new project. */
  readonly create: (
    projectId: string,
    remote: RemoteRepository,
    chooseBranch: (remote: Remote, path: string) => Effect.Effect<string, GitError>,
  ) => Effect.Effect<void, GitError>;
  /** Whether the server accepts the credential: the first step of `create`. */
  readonly check: (remote: RemoteRepository) => Effect.Effect<void, GitError>;
  readonly remove: (repository: Repository) => Effect.Effect<void, GitError>;
  /** The mirror's path, after a fetch that began at most `ageMs` before now. 0: after now. */
  readonly fresh: (projectId: string, ageMs: number) => Effect.Effect<string, GitError>;
  /** The mirror's path, whatever its age. */
  readonly known: (projectId: string) => Effect.Effect<string, GitError>;
  /** The connection to the project's server. Closed with the scope. */
  readonly open: (projectId: string) => Effect.Effect<Remote, GitError, Scope.Scope>;
  /** B3, until the scope closes. */
  readonly reserve: (projectId: string, refs: readonly string[]) => Effect.Effect<void, never, Scope.Scope>;
}

/** How long one fetch may take, in milliseconds. */
const fetchDeadlineMs = 30 * 60_000;
/** How many fetches run at a time: each is a git that unpacks. */
const FETCHES = 8;
/** How often a mirror in use gets its housekeeping. */
const TIDY_EVERY_MS = 60 * 60_000;
const tidyDeadlineMs = 30 * 60_000;

const refspecs = ["heads", "tags", "wip"].map((kind) => `+refs/${kind}/*:refs/${kind}/*`);

/** Removes partly received packs of a failed fetch. No other writer uses these names there. */
const sweepPacks = (path: string): Effect.Effect<void> =>
  Effect.ignore(
    filesystem("Sweeping", async () => {
      const packs = join(path, "objects", "pack");
      const names = (await readdir(packs)).filter((name) => name.startsWith("tmp_"));
      await Promise.all(names.map((name) => rm(join(packs, name), { force: true })));
    }),
  );

interface FetchOptions extends Pick<RemoteOptions, "bounds"> {
  /** Refs that must not change. */
  readonly except?: readonly string[];
  /** A ref without which the fetch fails. */
  readonly required?: string;
}

const fetchInto = (path: string, remote: Remote, options: FetchOptions): Effect.Effect<void, GitError> =>
  runRemote(remote, {
    repository: path,
    args: [
      "fetch",
      "--progress", // to distinguish a server that has stopped from a slow one
      "--prune",
      "--no-tags", // the refspec brings them all
      "--no-write-fetch-head",
      "--no-auto-maintenance",
      "--",
      remote.address,
      ...refspecs,
      ...(options.required === undefined ? [] : [`+${options.required}:${options.required}`]),
      ...(options.except ?? []).map((ref) => `^${ref}`),
    ],
    deadlineMs: fetchDeadlineMs,
    bounds: options.bounds,
  }).pipe(
    Effect.tapError(() => sweepPacks(path)),
    Effect.asVoid,
  );

/** B4. */
const fetchSurely = (
  path: string,
  remote: Remote,
  { branch, ...options }: FetchOptions & { readonly branch: string },
): Effect.Effect<void, GitError> => {
  const requiredRef = `refs/heads/${branch}`;
  const without = Effect.andThen(requireGitServer(remote), fetchInto(path, remote, options));
  if (options.except?.includes(requiredRef) === true) return without;
  return Effect.catchIf(
    fetchInto(path, remote, { ...options, required: requiredRef }),
    ({ message }) => message.includes(`couldn't find remote ref ${requiredRef}`),
    () => without,
  );
};

const followDefault = Effect.fnUntraced(function* (path: string, branch: string) {
  if ((yield* branchTip(path, branch)) !== null) yield* pointHead(path, branch);
});

/** Fetches into the mirror, or creates a missing one. */
const makeFetch = (
  options: MirrorOptions,
  repositoryOf: (projectId: string) => Effect.Effect<Place, GitError>,
) => {
  const { directory, bounds } = options;
  const places = Semaphore.makeUnsafe(FETCHES);
  return Effect.fnUntraced(function* (projectId: string, reservedRefs: Iterable<string>) {
    const except = [...reservedRefs];
    const { path, repository } = yield* repositoryOf(projectId);
    const remote = yield* openRemote(repository, options);
    const branch = repository.defaultBranch;
    const fetching = (yield* isThere(directory, projectId))
      ? fetchSurely(path, remote, { bounds, except, branch })
      : builtInPlace(directory, path, (aside) =>
          Effect.andThen(initBare(aside), fetchSurely(aside, remote, { bounds, branch })),
        );
    yield* places.withPermit(fetching);
    yield* followDefault(path, repository.defaultBranch);
  }, Effect.scoped);
};

/** Housekeeping after many small fetches, from time to time, in the background. */
const makeTidy = (scope: Scope.Scope) => {
  const tidyTimes = new Map<string, number>();
  return Effect.fnUntraced(function* (path: string) {
    const now = yield* Clock.currentTimeMillis;
    if (now - (tidyTimes.get(path) ?? 0) < TIDY_EVERY_MS) return;
    tidyTimes.set(path, now);
    const gc = runGit({
      repository: path,
      args: ["gc", "--auto", "--quiet"],
      config: { "gc.autoDetach": "false" },
      deadlineMs: tidyDeadlineMs,
    });
    yield* Effect.forkIn(Effect.ignore(gc), scope);
  });
};

const isThere = (directory: string, projectId: string): Effect.Effect<boolean> =>
  Effect.map(Effect.result(existingRepository(directory, { projectId })), Result.isSuccess);

interface Place {
  readonly path: string;
  readonly repository: MirroredRepository;
}

/** Opens the mirrors below the options' directory. Fetches without waiting callers end with the scope. */
export const openMirrors = Effect.fnUntraced(function* (
  options: MirrorOptions,
): Effect.fn.Return<Mirrors, never, Scope.Scope> {
  const { directory, findRemote, bounds } = options;
  const requireRepository = Effect.fnUntraced(function* (projectId: string) {
    const path = repositoryPath(directory, projectId);
    const repository = path === null ? null : yield* findRemote(projectId);
    return path === null || repository === null ? yield* unknownRepository() : { path, repository };
  });
  const freshness = yield* makeFreshness(makeFetch(options, requireRepository));
  const tidy = makeTidy(yield* Effect.scope);

  const fresh = Effect.fnUntraced(function* (projectId: string, ageMs: number) {
    const { path } = yield* requireRepository(projectId);
    if (!(yield* isThere(directory, projectId))) freshness.lose(projectId);
    yield* freshness.after(projectId, (yield* Clock.currentTimeMillis) - ageMs);
    yield* tidy(path);
    return path;
  });

  const create: Mirrors["create"] = Effect.fnUntraced(function* (projectId, wish, chooseBranch) {
    const path = repositoryPath(directory, projectId);
    if (path === null) return yield* unknownRepository();
    const began = yield* Clock.currentTimeMillis;
    const remote = yield* openRemote(wish, options);
    yield* builtInPlace(directory, path, (aside) =>
      Effect.gen(function* () {
        yield* initBare(aside);
        yield* requireGitServer(remote);
        yield* fetchInto(aside, remote, { bounds });
        yield* followDefault(aside, yield* chooseBranch(remote, aside));
      }),
    );
    freshness.note(projectId, began);
  }, Effect.scoped);

  return {
    fresh,
    create,
    check: (remote) => Effect.scoped(Effect.flatMap(openRemote(remote, options), requireGitServer)),
    reserve: freshness.reserve,
    remove: (repository) =>
      Effect.tap(removeRepository(directory, repository), () =>
        Effect.sync(() => freshness.forget(repository.projectId)),
      ),
    known: Effect.fnUntraced(function* (projectId) {
      const { path } = yield* requireRepository(projectId);
      return (yield* isThere(directory, projectId)) ? path : yield* fresh(projectId, 0);
    }),
    open: (projectId) =>
      Effect.flatMap(requireRepository(projectId), ({ repository }) => openRemote(repository, options)),
  };
});
