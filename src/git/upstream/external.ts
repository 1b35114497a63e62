/**
 * The `git` backend: repositories at any git server, by URL, over http(s) or ssh. The server is authoritative, and the
 * service works with a mirror of it (mirror.ts):
 *
 *  E1 Every question about a branch goes to the server. A commit that the mirror has is not fetched again.
 *  E2 A ref first moves at the server, only from its known commit, and then in the mirror. After a crash in between,
 *     the next fetch corrects the mirror.
 *  E3 A client's push waits in quarantine until the server has answered for every ref (smart-http.ts). Refs that the
 *     server refused or did not accept are refused to the client. If it accepted no ref, the push leaves nothing here.
 */
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import * as Scope from "effect/Scope";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Upstream } from "../../domain/repository/repository-credential.ts";
import { isCommitId, isSessionBranch } from "../../domain/repository/git-ref.ts";
import type { Repositories } from "../backends.ts";
import type { CheckConnection } from "../connection.ts";
import { filesystem } from "../repository/building.ts";
import { writeFileCommit } from "../repository/commit-file.ts";
import { compareCommits, diffCommits } from "../repository/compare.ts";
import { installHooks } from "../server/hooks.ts";
import { defaultUnfit } from "../repository/import.ts";
import { hasChanges, mergeInto, type Swap } from "../repository/merge.ts";
import { gitConnection } from "./connection.ts";
import { type Mirrors, openMirrors } from "./mirror.ts";
import { GitBackend, GitError } from "../port.ts";
import { isPlainRef, type PushOutcome, pushRefs } from "./push.ts";
import {
  checkDefaultBranch,
  headBranch,
  readPack,
  readFile,
  resolveBase,
  setDefaultBranch,
  readSides,
} from "../repository/read.ts";
import { absent, type Forward, type RefUpdate } from "../server/ref-policy.ts";
import {
  branchNames,
  branchTaken,
  branchTip,
  checkNewBranch,
  deleteRef,
  isCommit,
  oldSaveRef,
  refTarget,
  unknownRef,
} from "../repository/refs.ts";
import { installAskpass, listRemote, type Remote, type RemoteRepository } from "./remote.ts";
import { existingRepository, hooksDirectory } from "../repository/repository-path.ts";
import { type GitBounds, requireGit, runGit } from "../run.ts";
import { type Elsewhere, type GitCall, smartHttp, type SmartHttpOptions } from "../server/smart-http.ts";
import { sweepLeftovers } from "../repository/sweep.ts";
import { listPaths, objectIds, readTree } from "../repository/tree.ts";
import type { Upstreams } from "./upstreams.ts";

export interface ExternalOptions extends Pick<SmartHttpOptions, "idleMs" | "maxPackBytes" | "places"> {
  /** The directory of the mirrors. If it is missing, it is created for the service's user alone. */
  readonly directory: string;
  /** Lower-case hosts for which private addresses or plain http are allowed (PLATFORM_GIT_ALLOW_HOSTS). */
  readonly allowHosts: readonly string[];
  readonly upstreams: Upstreams["Service"];
  /** How git reaches an upstream. Null for an upstream of another kind. */
  readonly findRemote: (upstream: Upstream) => Effect.Effect<RemoteRepository | null, GitError>;
  /** How far a clone or a client's fetch may lag behind the server, in milliseconds (2 s). */
  readonly freshMs?: number;
  /** Milliseconds without a byte from the server after which a call is given up (30 s). */
  readonly stallMs?: number;
  /** Limits for git while it receives data from the server (4 GiB of memory, a pack of 10 GiB). */
  readonly bounds?: GitBounds;
}

/** The backend with the checks of its connections. */
export interface ExternalRepositories extends Repositories {
  readonly checkConnection: CheckConnection;
}

const freshMs = 2_000;
const stallMs = 30_000;
const bounds: GitBounds = { memoryBytes: 4 * 1024 ** 3, fileBytes: 10 * 1024 ** 3 };

/** A `git` upstream is reached as configured. */
export const plainRemote = ({ source, credential }: Upstream): Effect.Effect<RemoteRepository | null> => {
  if (source.kind !== "git" || credential?.kind === "token" || credential?.kind === "app")
    return Effect.succeed(null);
  return Effect.succeed({ url: source.url, credential });
};

const failure = (code: GitError["code"], message: string): GitError => new GitError({ code, message });

const ofAnotherKind = Effect.fail(
  failure("git_failed", "This backend does not support this kind of repository."),
);

const refusedBy = (reason: string): GitError =>
  failure("refused", `The repository's server refused the change: ${reason}.`);

/** The outcome of a push with one update. */
const readOutcome = Effect.fnUntraced(function* (
  remote: Remote,
  repository: string,
  update: Pick<RefUpdate, "ref" | "oldCommit" | "newCommit">,
) {
  const { outcomes, said } = yield* pushRefs(remote, { repository, updates: [update], atomic: false });
  const outcome = outcomes.get(update.ref);
  if (outcome === undefined) return yield* Effect.die(new Error("a pushed ref has no outcome"));
  // The server's hook says more than git's summary of it.
  return outcome.kind === "refused" ? { ...outcome, reason: [outcome.reason, ...said].join("; ") } : outcome;
});

/** The server has the ref, so the mirror gets it too. If this fails, the next fetch does it. */
const follow = (path: string, ref: string, commit: string): Effect.Effect<void> =>
  Effect.ignore(runGit({ repository: path, args: ["update-ref", ref, commit] }));

/** The mirror knows what its server has: it fetched it, or passed it on. Without it there nothing is asked. */
const removeOldSave = Effect.fnUntraced(function* (
  { mirrors, directory }: { readonly mirrors: Mirrors; readonly directory: string },
  projectId: string,
  sessionId: string,
) {
  const ref = oldSaveRef(sessionId);
  const path = yield* existingRepository(directory, { projectId });
  const commit = yield* refTarget(path, ref);
  if (commit === null) return;
  const remote = yield* mirrors.open(projectId);
  yield* mirrors.reserve(projectId, [ref]);
  const outcome = yield* readOutcome(remote, path, { ref, oldCommit: commit, newCommit: absent });
  if (outcome.kind === "refused") return yield* refusedBy(outcome.reason);
  if (outcome.kind === "moved")
    return yield* failure("unavailable", `${ref} changed on the repository's server.`);
  if (outcome.kind !== "taken") return yield* outcome.error;
  yield* deleteRef(path, ref);
}, Effect.scoped);

interface NewBranch {
  readonly projectId: string;
  readonly branch: string;
  readonly commit: string;
}

const createBranch = Effect.fnUntraced(function* (
  mirrors: Mirrors,
  { projectId, branch, commit }: NewBranch,
) {
  yield* checkNewBranch(branch, commit);
  const path = yield* mirrors.known(projectId);
  const isHere = isCommit(path, commit);
  if (!(yield* isHere) && !(yield* Effect.andThen(mirrors.fresh(projectId, 0), isHere))) {
    return yield* unknownRef(`Commit ${commit} not found.`);
  }
  const ref = `refs/heads/${branch}`;
  const remote = yield* mirrors.open(projectId);
  yield* mirrors.reserve(projectId, [ref]);
  const outcome = yield* readOutcome(remote, path, { ref, oldCommit: absent, newCommit: commit });
  switch (outcome.kind) {
    case "taken":
      return yield* follow(path, ref, commit);
    case "refused":
      return yield* refusedBy(outcome.reason);
    case "moved":
      return yield* outcome.tip === null
        ? failure("unavailable", `The repository's server did not accept the branch ${branch}. Try again.`)
        : branchTaken(branch, outcome.tip);
    default:
      return yield* outcome.error;
  }
}, Effect.scoped);

/** A merge's swap: at the server, with a lease on the tip for which the merge was computed. */
const swapAt =
  (mirrors: Mirrors, projectId: string, path: string): Swap =>
  (branch, { from, to }) =>
    Effect.gen(function* () {
      const ref = `refs/heads/${branch}`;
      const remote = yield* mirrors.open(projectId);
      yield* mirrors.reserve(projectId, [ref]);
      const outcome = yield* readOutcome(remote, path, { ref, oldCommit: from, newCommit: to });
      if (outcome.kind === "moved") return false;
      if (outcome.kind === "refused") return yield* refusedBy(outcome.reason);
      if (outcome.kind !== "taken") return yield* outcome.error;
      yield* follow(path, ref, to);
      return true;
    }).pipe(Effect.scoped);

/** The default branch of a new project: the requested one, otherwise the server's HEAD. */
const chooseBranch = (requestedBranch: string | null) =>
  Effect.fnUntraced(function* (remote: Remote, path: string): Effect.fn.Return<string, GitError> {
    const branches = yield* runGit({
      repository: path,
      args: ["for-each-ref", "--count=1", "refs/heads/"],
    });
    if (branches.stdout.length === 0) {
      return yield* failure("import_failed", "The repository has no branches. Push a first commit to it.");
    }
    const head = requestedBranch === null ? (yield* listRemote(remote, ["HEAD"])).get("HEAD") : undefined;
    const branch = requestedBranch ?? /^ref: refs\/heads\/(.+)$/.exec(head ?? "")?.[1] ?? "main";
    yield* Effect.mapError(checkDefaultBranch(branch), defaultUnfit);
    if ((yield* branchTip(path, branch)) !== null) return branch;
    return yield* failure(
      "import_failed",
      `The repository has no branch ${branch}. Give the name of its default branch.`,
    );
  });

type Sides = Parameters<typeof readSides>[1];

/** E1: resolves the sides of a comparison, with a fetch if one of them is a branch, or a commit that is not here. */
const currentSides = Effect.fnUntraced(function* (mirrors: Mirrors, projectId: string, sides: Sides) {
  const path = yield* mirrors.known(projectId);
  for (const side of [sides.base, sides.head]) {
    if (isCommitId(side) && (yield* isCommit(path, side))) continue;
    return yield* readSides(yield* mirrors.fresh(projectId, 0), sides);
  }
  return yield* readSides(path, sides);
});

/** E1: the mirror, after a fetch if it does not have the commit. */
const withCommit = Effect.fnUntraced(function* (mirrors: Mirrors, projectId: string, commit: string) {
  const path = yield* mirrors.known(projectId);
  const isHere = isCommitId(commit) && (yield* isCommit(path, commit));
  if (!isHere) yield* mirrors.fresh(projectId, 0);
  return path;
});

const backendOver = (mirrors: Mirrors, { directory, findRemote }: ExternalOptions): GitBackend["Service"] => {
  const now = (projectId: string) => mirrors.fresh(projectId, 0);
  const reach = (upstream: Upstream): Effect.Effect<RemoteRepository, GitError> =>
    Effect.flatMap(findRemote(upstream), (remote) =>
      remote === null ? ofAnotherKind : Effect.succeed(remote),
    );
  return GitBackend.of({
    create: Effect.fnUntraced(function* ({ projectId, defaultBranch, upstream }) {
      const requestedBranch = defaultBranch === null ? null : yield* checkDefaultBranch(defaultBranch);
      const remote = upstream === undefined ? yield* ofAnotherKind : yield* reach(upstream);
      const there = existingRepository(directory, { projectId });
      if (Result.isFailure(yield* Effect.result(there)))
        yield* mirrors.create(projectId, remote, chooseBranch(requestedBranch));
      return { defaultBranch: yield* Effect.flatMap(there, headBranch) };
    }),
    checkUpstream: (upstream) => Effect.flatMap(reach(upstream), mirrors.check),
    setDefaultBranch: ({ projectId }, branch) =>
      Effect.flatMap(now(projectId), (path) => setDefaultBranch(path, branch)),
    remove: mirrors.remove,
    resolveBase: ({ projectId }, ref) => Effect.flatMap(now(projectId), (path) => resolveBase(path, ref)),
    branchTip: ({ projectId }, branch) => Effect.flatMap(now(projectId), (path) => branchTip(path, branch)),
    removeOldSave: ({ projectId }, sessionId) => removeOldSave({ mirrors, directory }, projectId, sessionId),
    hasChanges: ({ projectId }, request) =>
      Effect.flatMap(now(projectId), (path) => hasChanges(path, request)),
    branches: ({ projectId }, request) =>
      Effect.flatMap(now(projectId), (path) => branchNames(path, request.limit)),
    createBranch: ({ projectId }, request) => createBranch(mirrors, { projectId, ...request }),
    commitFile: Effect.fnUntraced(function* ({ projectId }, { branch, ...commit }) {
      const path = yield* mirrors.known(projectId);
      if (isCommitId(commit.parent) && !(yield* isCommit(path, commit.parent))) yield* now(projectId);
      const commitId = yield* writeFileCommit(path, commit);
      yield* createBranch(mirrors, { projectId, branch, commit: commitId });
      return commitId;
    }),
    readFile: ({ projectId }, { commit, path: file, maxBytes }) =>
      Effect.flatMap(withCommit(mirrors, projectId, commit), (path) =>
        readFile(path, { commit, file, maxBytes }),
      ),
    pack: ({ projectId }, request) =>
      Effect.flatMap(withCommit(mirrors, projectId, request.commit), (path) => readPack(path, request)),
    objectIds: ({ projectId }, request) =>
      Effect.flatMap(withCommit(mirrors, projectId, request.commit), (path) => objectIds(path, request)),
    readTree: ({ projectId }, request) =>
      Effect.flatMap(withCommit(mirrors, projectId, request.commit), (path) => readTree(path, request)),
    paths: ({ projectId }, request) =>
      Effect.flatMap(withCommit(mirrors, projectId, request.commit), (path) => listPaths(path, request)),
    compare: ({ projectId }, sides) =>
      Effect.flatMap(currentSides(mirrors, projectId, sides), compareCommits),
    diff: ({ projectId }, { base, head, ...part }) =>
      Effect.flatMap(currentSides(mirrors, projectId, { base, head }), (sides) => diffCommits(sides, part)),
    merge: ({ projectId }, request) =>
      Effect.flatMap(mirrors.known(projectId), (path) =>
        mergeInto(path, request, {
          attempts: 10,
          swap: swapAt(mirrors, projectId, path),
          refresh: now(projectId),
        }),
      ),
  });
};

/** The sentence for the client about a ref that its server did not accept. Null if it did. */
const sentenceFor = (ref: string, outcome: PushOutcome | undefined): string | null => {
  switch (outcome?.kind) {
    case "taken":
      return null;
    case "refused":
      return `The repository's server refused ${ref}: ${outcome.reason}.`;
    case "moved":
      return `${ref} changed on the repository's server. Fetch, then push again.`;
    case "failed":
      return `${ref} was not pushed. ${outcome.error.message}`;
    default:
      return `It is not known whether the repository's server accepted ${ref}. Fetch before you push again. ${outcome?.error.message ?? ""}`;
  }
};

/** Git reads a path that begins with a quote in C notation, where a colon is not a separator. */
const quote = (path: string): string => `"${path.replaceAll(/["\\]/g, String.raw`\$&`)}"`;

/**
 * The session branch among these that is the server's default branch. Null if none is. The server's people may make any
 * branch the default, and a session's push would then write it (spec 1). Checked only for pushes to session branches.
 */
const sessionsDefault = Effect.fnUntraced(function* (remote: Remote, updates: readonly RefUpdate[]) {
  const own = updates.filter(({ ref }) => isSessionBranch(ref.replace("refs/heads/", "")));
  if (own.length === 0) return null;
  const head = (yield* listRemote(remote, ["HEAD"])).get("HEAD");
  return own.find(({ ref }) => head === `ref: ${ref}`)?.ref ?? null;
});

const forwarding = (mirrors: Mirrors, projectId: string): Effect.Effect<Forward, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope): Forward => {
    const push = Effect.fnUntraced(function* (
      updates: readonly RefUpdate[],
      { quarantine, atomic }: Parameters<Forward>[1],
    ) {
      const path = yield* mirrors.known(projectId);
      const remote = yield* mirrors.open(projectId);
      const sessionsBranch = yield* sessionsDefault(remote, updates);
      if (sessionsBranch !== null) {
        const why = `${sessionsBranch} is the default branch on the repository's server. Choose another default branch there.`;
        return { refusals: new Map(updates.map(({ ref }) => [ref, why])), said: [] };
      }
      yield* mirrors.reserve(
        projectId,
        updates.map(({ ref }) => ref),
      );
      const objects = join(path, "objects");
      const environment: Record<string, string> =
        quarantine === ""
          ? {}
          : {
              GIT_OBJECT_DIRECTORY: join(objects, quarantine),
              GIT_ALTERNATE_OBJECT_DIRECTORIES: quote(objects),
            };
      const result = yield* pushRefs(remote, { repository: path, updates, atomic, environment });
      const refusals = new Map<string, string>();
      for (const { ref } of updates) {
        const sentence = sentenceFor(ref, result.outcomes.get(ref));
        if (sentence !== null) refusals.set(ref, sentence);
      }
      return { refusals, said: result.said };
    });
    return (updates, how) => {
      const odd = updates.find(({ ref }) => !isPlainRef(ref));
      const all = (sentence: string) => ({
        refusals: new Map(updates.map(({ ref }) => [ref, sentence])),
        said: [],
      });
      if (odd !== undefined) return Effect.succeed(all(`The ref name ${odd.ref} is not supported.`));
      return push(updates, how).pipe(
        Scope.provide(scope),
        Effect.catchTag("GitError", ({ message }) => Effect.succeed(all(message))),
      );
    };
  });

/**
 * A session's clone begins right after its branch was created, here or on another node, so that branch must be visible.
 */
const freshen = (mirrors: Mirrors, ageMs: number) =>
  Effect.fnUntraced(function* ({ repository: { projectId }, policy }: GitCall) {
    const path = yield* mirrors.fresh(projectId, ageMs);
    const { writer } = policy;
    if (writer.kind !== "session" || (yield* branchTip(path, writer.sessionId)) !== null) return;
    yield* mirrors.fresh(projectId, 0);
  });

/**
 * Opens the backend. It refuses an unsuitable git, and removes leftovers of a dead service: one service owns the
 * directory.
 */
export const openExternal = Effect.fnUntraced(function* (
  options: ExternalOptions,
): Effect.fn.Return<ExternalRepositories, GitError, Scope.Scope> {
  const { directory, allowHosts, upstreams, findRemote } = options;
  yield* requireGit;
  yield* filesystem("Creating the mirrors' directory", () =>
    mkdir(directory, { recursive: true, mode: 0o700 }),
  );
  yield* installHooks(hooksDirectory(directory));
  yield* installAskpass(directory);
  yield* sweepLeftovers(directory);
  const reaching = {
    directory,
    allowHosts,
    stallMs: options.stallMs ?? stallMs,
    bounds: options.bounds ?? bounds,
  };
  const mirrors = yield* openMirrors({
    ...reaching,
    findRemote: Effect.fnUntraced(function* (projectId: string) {
      const upstream = yield* upstreams.find(projectId);
      const remote = upstream === null ? null : yield* findRemote(upstream);
      return upstream === null || remote === null
        ? null
        : { ...remote, defaultBranch: upstream.defaultBranch };
    }),
  });
  const elsewhere: Elsewhere = {
    freshen: freshen(mirrors, options.freshMs ?? freshMs),
    forwarding: (projectId) => forwarding(mirrors, projectId),
  };
  return {
    backend: backendOver(mirrors, options),
    endpoint: smartHttp({ ...options, elsewhere }),
    checkConnection: gitConnection(findRemote, reaching),
  };
});
