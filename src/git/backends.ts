/**
 * One backend for every kind of repository. Each call, including the smart protocol's, goes to the backend of the
 * project's kind (git/port.ts). That backend may itself dispatch, for example to other nodes.
 */
import * as Effect from "effect/Effect";
import { GitBackend, GitError, type Repository } from "./port.ts";
import { unknownRepository } from "./repository/repository-path.ts";
import type { SmartHttp } from "./server/smart-http.ts";
import type { RepositoryKind, Upstreams } from "./upstream/upstreams.ts";

/** A backend with the smart protocol over its repositories. */
export interface Repositories {
  readonly backend: GitBackend["Service"];
  readonly endpoint: SmartHttp;
}

/** A kind without an entry is refused. */
export type Kinds = Readonly<Partial<Record<RepositoryKind, Repositories>>>;

const notKept = (kind: RepositoryKind): GitError =>
  new GitError({
    code: "unknown_repository",
    message: `This service does not support repositories of the kind ${kind}.`,
  });

/** Selects the backend by the project's kind. An unknown project has no repository. */
export const byKind = (upstreams: Upstreams["Service"], kinds: Kinds): Repositories => {
  const keeper = (kind: RepositoryKind): Effect.Effect<Repositories, GitError> => {
    const repositories = kinds[kind];
    return repositories === undefined ? Effect.fail(notKept(kind)) : Effect.succeed(repositories);
  };
  const backendFor = ({ projectId }: Repository): Effect.Effect<Repositories, GitError> =>
    Effect.flatMap(upstreams.kind(projectId), (kind) =>
      kind === null ? Effect.fail(unknownRepository()) : keeper(kind),
    );
  const at = <A>(
    repository: Repository,
    use: (backend: GitBackend["Service"]) => Effect.Effect<A, GitError>,
  ): Effect.Effect<A, GitError> => Effect.flatMap(backendFor(repository), ({ backend }) => use(backend));
  const backend = GitBackend.of({
    create: (request) =>
      Effect.flatMap(keeper(request.upstream?.source.kind ?? "hosted"), (repositories) =>
        repositories.backend.create(request),
      ),
    checkUpstream: (upstream) =>
      Effect.flatMap(keeper(upstream.source.kind), (repositories) =>
        repositories.backend.checkUpstream(upstream),
      ),
    setDefaultBranch: (repository, branch) =>
      at(repository, (git) => git.setDefaultBranch(repository, branch)),
    remove: (repository) => at(repository, (git) => git.remove(repository)),
    resolveBase: (repository, ref) => at(repository, (git) => git.resolveBase(repository, ref)),
    branchTip: (repository, branch) => at(repository, (git) => git.branchTip(repository, branch)),
    removeOldSave: (repository, sessionId) =>
      at(repository, (git) => git.removeOldSave(repository, sessionId)),
    hasChanges: (repository, request) => at(repository, (git) => git.hasChanges(repository, request)),
    branches: (repository, request) => at(repository, (git) => git.branches(repository, request)),
    createBranch: (repository, request) => at(repository, (git) => git.createBranch(repository, request)),
    commitFile: (repository, request) => at(repository, (git) => git.commitFile(repository, request)),
    readFile: (repository, request) => at(repository, (git) => git.readFile(repository, request)),
    pack: (repository, request) => at(repository, (git) => git.pack(repository, request)),
    objectIds: (repository, request) => at(repository, (git) => git.objectIds(repository, request)),
    readTree: (repository, request) => at(repository, (git) => git.readTree(repository, request)),
    paths: (repository, request) => at(repository, (git) => git.paths(repository, request)),
    compare: (repository, request) => at(repository, (git) => git.compare(repository, request)),
    diff: (repository, request) => at(repository, (git) => git.diff(repository, request)),
    merge: (repository, request) => at(repository, (git) => git.merge(repository, request)),
  });
  const endpoint: SmartHttp = {
    advertise: (call) =>
      Effect.flatMap(backendFor(call.repository), (repositories) => repositories.endpoint.advertise(call)),
    serve: (call) =>
      Effect.flatMap(backendFor(call.repository), (repositories) => repositories.endpoint.serve(call)),
  };
  return { backend, endpoint };
};
