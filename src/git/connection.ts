/**
 * The port to checks of a connection: whether the service could work with a repository at another server, step by step, and
 * what a person can do where it could not. A check changes nothing at the server
 * (docs/decisions/0028).
 */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import type { Connection } from "../domain/repository/connection.ts";
import type { Upstream } from "../domain/repository/repository-credential.ts";
import type { GitError, Repository } from "./port.ts";
import type { Upstreams } from "./upstream/upstreams.ts";

/** @param branch the wanted default branch. Null means the one that the server names. */
export type CheckConnection = (upstream: Upstream, branch: string | null) => Effect.Effect<Connection>;

export interface ConnectionsPort {
  readonly check: CheckConnection;
  /** With the project's stored credential. Null if no other server has the project's repository. */
  readonly ofProject: (repository: Repository) => Effect.Effect<Connection | null, GitError>;
}

/** Without other servers, no step is tried. */
export const Connections = Context.Reference<ConnectionsPort>("platform/git/Connections", {
  defaultValue: () => ({
    check: () => Effect.succeed({ steps: [], defaultBranch: null }),
    ofProject: () => Effect.succeed(null),
  }),
});

export const connections = (upstreams: Upstreams["Service"], check: CheckConnection): ConnectionsPort => ({
  check,
  ofProject: ({ projectId }) =>
    Effect.flatMap(upstreams.find(projectId), (upstream) =>
      upstream === null ? Effect.succeed(null) : check(upstream, upstream.defaultBranch),
    ),
});
