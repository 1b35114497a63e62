/**
 * What the tests of the `github` backend play in: a code host with repositories of its own (github-host.ts), and the
 * backend.
 */
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import type { RepositoryCredential, Upstream } from "../../../src/domain/repository/repository-credential.ts";
import { openExternal } from "../../../src/git/upstream/external.ts";
import type { ApiOptions } from "../../../src/git/github/api.ts";
import { githubRepositories, type GithubRepositories } from "../../../src/git/github/backend.ts";
import type { GitBackend, GitError } from "../../../src/git/port.ts";
import type { Upstreams } from "../../../src/git/upstream/upstreams.ts";
import { keptElsewhere, makePlace } from "../external/elsewhere.ts";
import { GithubHost } from "./github-host.ts";
import { OWNER } from "./github-host-pulls.ts";

export interface GithubWorld extends GithubRepositories {
  readonly host: GithubHost;
  /** The backend without what makes repositories at the host. */
  readonly bare: GitBackend["Service"];
  /** Everything lies below it. */
  readonly root: string;
  /** Where the mirrors lie. */
  readonly mirrors: string;
  /** Where the host keeps its repositories. */
  readonly upstreams: string;
  /** What projects get in with, made from now on. */
  credential: RepositoryCredential | null;
  readonly upstreamOf: (projectId: string) => Upstream;
  /** Knows what was made here. */
  readonly known: Upstreams["Service"];
}

/** In one exchange the host may run many git processes, which are slow on a loaded machine. No test waits for rate limits. */
const QUICK: ApiOptions = { exchangeMs: 20_000, backoffMs: 1, patienceMs: 2_000 };

/** As an app, the way that asks for most. */
export const asApp = ({ app }: GithubHost): RepositoryCredential => ({
  kind: "app",
  appId: app.app_id,
  installationId: app.installation_id,
  privateKey: app.private_key,
});

/** A world of its own, until the scope closes. */
export const makeGithubWorld = Effect.fnUntraced(function* (
  api: ApiOptions = {},
): Effect.fn.Return<GithubWorld, GitError, Scope.Scope> {
  const { root, upstreams, mirrors } = yield* makePlace("github");
  const host = yield* Effect.acquireRelease(
    Effect.promise(() => new GithubHost(upstreams).open()),
    (opened) => Effect.promise(() => opened.close()),
  );
  const upstreamOf = (projectId: string): Upstream => ({
    source: { kind: "github", owner: OWNER, name: projectId, api_url: host.apiUrl },
    credential: world.credential,
  });
  const { known, whole } = yield* keptElsewhere({ kind: "github", upstreams, upstreamOf });
  const allowHosts = ["127.0.0.1"];
  const { backend, endpoint, pulls, checkConnection } = yield* githubRepositories({
    upstreams: known,
    allowHosts,
    api: { ...QUICK, ...api },
    mirrored: (findRemote) => openExternal({ directory: mirrors, allowHosts, upstreams: known, findRemote }),
  });
  const world: GithubWorld = {
    backend: whole(backend),
    bare: backend,
    endpoint,
    pulls,
    checkConnection,
    host,
    root,
    mirrors,
    upstreams,
    credential: asApp(host),
    upstreamOf,
    known,
  };
  return world;
});
