/**
 * What the tests of the `git` backend play in: a server with repositories of its own (upstream-server.ts), and the
 * backend, whose projects have their repositories there.
 */
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import type { Repositories } from "../../../src/git/backends.ts";
import { type ExternalOptions, openExternal, plainRemote } from "../../../src/git/upstream/external.ts";
import type { GitError } from "../../../src/git/port.ts";
import type { Upstream } from "../../../src/domain/repository/repository-credential.ts";
import type { Upstreams } from "../../../src/git/upstream/upstreams.ts";
import { keptElsewhere, makePlace } from "./elsewhere.ts";
import { startUpstream, type UpstreamServer } from "./upstream-server.ts";

export interface ExternalWorld extends Repositories {
  readonly server: UpstreamServer;
  /** Everything lies below it. */
  readonly root: string;
  /** Where the mirrors lie. */
  readonly mirrors: string;
  /** Where the server keeps its repositories. */
  readonly upstreams: string;
  readonly upstreamOf: (projectId: string) => Upstream;
  /** Knows what was made here. */
  readonly known: Upstreams["Service"];
}

/** A world of its own, until the scope closes. */
export const makeExternalWorld = Effect.fnUntraced(function* (
  options: Partial<ExternalOptions> = {},
): Effect.fn.Return<ExternalWorld, GitError, Scope.Scope> {
  const { root, upstreams, mirrors } = yield* makePlace("external");
  const server = yield* Effect.acquireRelease(
    Effect.promise(() => startUpstream(upstreams)),
    ({ close }) => Effect.promise(close),
  );
  const { origin, username, password } = server;
  const upstreamOf = (projectId: string): Upstream => ({
    source: { kind: "git", url: `${origin}/${projectId}.git` },
    credential: { kind: "password", username, password },
  });
  const { known, whole } = yield* keptElsewhere({ kind: "git", upstreams, upstreamOf });
  const { backend, endpoint } = yield* openExternal({
    directory: mirrors,
    allowHosts: ["127.0.0.1"],
    upstreams: known,
    findRemote: plainRemote,
    ...options,
  });
  return { backend: whole(backend), endpoint, server, root, mirrors, upstreams, upstreamOf, known };
});
