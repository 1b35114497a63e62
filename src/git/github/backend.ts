/**
 * The `github` backend. It uses a code host's API for branches (spec, branch model 3), and the mirror of the `git`
 * backend for everything that needs objects: files, comparisons, clones and pushes. For the mirror, the host is a git
 * server whose password is the current token.
 *
 * The mirror also merges. It computes a merge for one tip and pushes it on the condition that the tip is unchanged, so
 * G4 of git/port.ts holds exactly: the result is a fast-forward or the platform's own commit, and a concurrent merge is computed
 * again. The host's merge API cannot compare with a tip, and produces neither. If the host's rules require a pull
 * request, the open one of that head is merged there, by its commit id.
 */
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import type * as Scope from "effect/Scope";
import { parseBaseRef } from "../../domain/repository/git-ref.ts";
import type { RepositoryCredential, Upstream } from "../../domain/repository/repository-credential.ts";
import type { Repositories } from "../backends.ts";
import { GitBackend, GitError, type MergeResult, type MergeRequest, type Repository } from "../port.ts";
import type { PullRequestsPort } from "../pull-requests.ts";
import { unknownRef } from "../repository/refs.ts";
import type { SmartHttp } from "../server/smart-http.ts";
import type { RemoteRepository } from "../upstream/remote.ts";
import type { Upstreams } from "../upstream/upstreams.ts";
import { type ApiOptions, makeApi } from "./api.ts";
import type { CheckConnection } from "../connection.ts";
import { githubConnection } from "./connection.ts";
import { githubPulls, mergePull } from "./pulls.ts";
import {
  branchTip,
  createBranch,
  namedCommit,
  commitParents,
  type Place,
  requireRepository,
} from "./refs.ts";
import { type GithubSource, makeAccesses } from "./tokens.ts";
import { makeWire } from "./wire.ts";

export interface GithubOptions {
  readonly upstreams: Upstreams["Service"];
  /** Lower-case hosts of PLATFORM_GIT_ALLOW_HOSTS. */
  readonly allowHosts: readonly string[];
  /** The `git` backend, with its own mirrors, over the given remotes. */
  readonly mirrored: (findRemote: RemoteOf) => Effect.Effect<Repositories, GitError, Scope.Scope>;
  readonly api?: ApiOptions;
}

/** How git reaches an upstream. Null for an upstream of another kind. */
export type RemoteOf = (upstream: Upstream) => Effect.Effect<RemoteRepository | null, GitError>;

export interface GithubRepositories extends Repositories {
  readonly pulls: PullRequestsPort;
  readonly checkConnection: CheckConnection;
}

/** The host requires a user name beside the token, but ignores it. */
const USERNAME = "x-access-token";

const notGithub = (): GitError =>
  new GitError({ code: "unknown_repository", message: "The project has no repository at a code host." });

/** Requests to the host's API about projects' repositories. */
interface Host {
  readonly openPlace: (
    source: GithubSource,
    credential: RepositoryCredential | null,
  ) => Effect.Effect<Place, GitError>;
  readonly at: <A>(
    repository: Repository,
    use: (place: Place) => Effect.Effect<A, GitError>,
  ) => Effect.Effect<A, GitError>;
}

const makeHost = Effect.fnUntraced(function* ({ upstreams, allowHosts, api: options }: GithubOptions) {
  const wire = yield* makeWire(allowHosts);
  const api = makeApi(wire, options);
  const accesses = makeAccesses(api, allowHosts);
  const openPlace: Host["openPlace"] = (source, credential) =>
    Effect.map(accesses(source, credential), (access) => ({ api, access, source }));
  const host: Host = {
    openPlace,
    at: (repository, use) =>
      Effect.flatMap(upstreams.find(repository.projectId), (upstream) =>
        upstream?.source.kind === "github"
          ? Effect.flatMap(openPlace(upstream.source, upstream.credential), use)
          : Effect.fail(notGithub()),
      ),
  };
  return { host, checkConnection: githubConnection({ api, wire, allowHosts }) };
});

/** The repository as a git server's. */
const asGit =
  ({ openPlace }: Host): RemoteOf =>
  ({ source, credential }) =>
    source.kind === "github"
      ? Effect.flatMap(openPlace(source, credential), ({ access }) =>
          Effect.map(access.token(null), (password) => ({
            url: access.host.git,
            credential: { kind: "password", username: USERNAME, password },
          })),
        )
      : Effect.succeed(null);

/** Whether there is another token than the one that the host refused over git. */
const renewal = ({ at }: Host, repository: Repository): Effect.Effect<boolean, GitError> =>
  at(
    repository,
    Effect.fnUntraced(function* (place) {
      const before = yield* place.access.token(null);
      // The API finds out whether the token is the reason, and then renews it.
      yield* Effect.ignore(requireRepository(place));
      return before !== (yield* place.access.token(null));
    }),
  );

/**
 * Runs work that uses the token over git. If the host refuses the token and there is another one, runs it once more.
 */
const renewing = <A>(
  host: Host,
  repository: Repository,
  work: Effect.Effect<A, GitError>,
): Effect.Effect<A, GitError> =>
  Effect.catchIf(
    work,
    ({ code }) => code === "refused",
    (error) =>
      Effect.flatMap(renewal(host, repository), (isRenewed) => (isRenewed ? work : Effect.fail(error))),
  );

const resolveBase = Effect.fnUntraced(function* (
  { at }: Host,
  mirror: GitBackend["Service"],
  { repository, ref }: { readonly repository: Repository; readonly ref: string },
) {
  const baseRef = parseBaseRef(ref);
  if (Result.isFailure(baseRef)) return yield* unknownRef(baseRef.failure.message);
  const { name, commit } = baseRef.success;
  const tip = yield* at(repository, (place) => namedCommit(place, name));
  if (tip !== null) return tip;
  // The mirror decides reachability: the host also serves commits of forks, which are on no branch here.
  if (commit !== null) return yield* mirror.resolveBase(repository, ref);
  return yield* unknownRef(`${name} is not a branch, a tag or a reachable commit.`);
});

/** Merges on the host, if a pull request of exactly this head and branch is open. */
const mergeByPull = Effect.fnUntraced(function* (
  place: Place,
  pulls: PullRequestsPort,
  {
    repository,
    request,
    refusal,
  }: { readonly repository: Repository; readonly request: MergeRequest; readonly refusal: GitError },
): Effect.fn.Return<MergeResult, GitError> {
  const { branch, head } = request;
  const open = yield* pulls.open(repository);
  const pull = open.find((candidate) => candidate.head === head && candidate.baseRef === branch);
  if (pull === undefined) return yield* refusal;
  const commit = yield* mergePull(place, pull, request);
  const parents = yield* commitParents(place, commit);
  return { outcome: "merged", base: parents?.[0] ?? commit, commit };
});

/** The repository as the host shows it, if the credential is sufficient. */
const checkRepository = Effect.fnUntraced(function* ({ openPlace }: Host, { source, credential }: Upstream) {
  if (source.kind !== "github") return yield* notGithub();
  const place = yield* openPlace(source, credential);
  const repository = yield* requireRepository(place);
  // For an app, the host shows no permissions here.
  if (credential?.kind === "token" && repository.permissions?.push === false) {
    return yield* new GitError({
      code: "refused",
      message:
        "The token can read the repository but not write to it. It needs write access to the repository's contents.",
    });
  }
  return repository;
});

const create = Effect.fnUntraced(function* (
  host: Host,
  mirror: GitBackend["Service"],
  request: Parameters<GitBackend["Service"]["create"]>[0],
) {
  const { upstream, defaultBranch } = request;
  if (upstream === undefined) return yield* notGithub();
  const repository = yield* checkRepository(host, upstream);
  return yield* mirror.create({ ...request, defaultBranch: defaultBranch ?? repository.default_branch });
});

/** Repositories at code hosts: their backend, the smart protocol over them, and their pull requests. */
export const githubRepositories = Effect.fnUntraced(function* (
  options: GithubOptions,
): Effect.fn.Return<GithubRepositories, GitError, Scope.Scope> {
  const { host, checkConnection } = yield* makeHost(options);
  const mirroring = yield* options.mirrored(asGit(host));
  const mirror = mirroring.backend;
  const pulls = githubPulls(host.at);
  /** Updates the mirror before the caller gets its answer, so that a clone that begins then is up to date. */
  const follow = (repository: Repository, branch: string) =>
    Effect.ignore(mirror.branchTip(repository, branch));
  const over = <A>(repository: Repository, work: Effect.Effect<A, GitError>) =>
    renewing(host, repository, work);
  const backend = GitBackend.of({
    create: (request) => create(host, mirror, request),
    checkUpstream: (upstream) =>
      Effect.andThen(checkRepository(host, upstream), mirror.checkUpstream(upstream)),
    setDefaultBranch: (repository, branch) => over(repository, mirror.setDefaultBranch(repository, branch)),
    remove: (repository) => mirror.remove(repository),
    resolveBase: (repository, ref) => over(repository, resolveBase(host, mirror, { repository, ref })),
    branchTip: (repository, branch) => host.at(repository, (place) => branchTip(place, branch)),
    removeOldSave: (repository, sessionId) => over(repository, mirror.removeOldSave(repository, sessionId)),
    hasChanges: (repository, request) => over(repository, mirror.hasChanges(repository, request)),
    branches: (repository, request) => over(repository, mirror.branches(repository, request)),
    createBranch: (repository, request) =>
      host
        .at(repository, (place) => createBranch(place, request))
        .pipe(Effect.andThen(follow(repository, request.branch))),
    // The host's API makes commits as the token's owner. A push keeps the author.
    commitFile: (repository, request) => over(repository, mirror.commitFile(repository, request)),
    readFile: (repository, request) => over(repository, mirror.readFile(repository, request)),
    pack: (repository, request) => over(repository, mirror.pack(repository, request)),
    objectIds: (repository, request) => over(repository, mirror.objectIds(repository, request)),
    readTree: (repository, request) => over(repository, mirror.readTree(repository, request)),
    paths: (repository, request) => over(repository, mirror.paths(repository, request)),
    compare: (repository, request) => over(repository, mirror.compare(repository, request)),
    diff: (repository, request) => over(repository, mirror.diff(repository, request)),
    merge: (repository, request) =>
      over(repository, mirror.merge(repository, request)).pipe(
        Effect.catchIf(
          ({ code }) => code === "refused",
          (refusal) =>
            Effect.ensuring(
              host.at(repository, (place) => mergeByPull(place, pulls, { repository, request, refusal })),
              follow(repository, request.branch),
            ),
        ),
      ),
  });
  const endpoint: SmartHttp = {
    advertise: Effect.fnUntraced(function* (call) {
      const answer = yield* mirroring.endpoint.advertise(call);
      // A refused credential appears as an answer here, and the mirror shares a failed fetch for a while. So the fetch
      // is repeated.
      if (answer.status !== 502) return answer;
      if (!(yield* Effect.orElseSucceed(renewal(host, call.repository), () => false))) return answer;
      yield* follow(call.repository, "HEAD");
      return yield* mirroring.endpoint.advertise(call);
    }),
    serve: (call) => mirroring.endpoint.serve(call),
  };
  return { backend, endpoint, pulls, checkConnection };
});
