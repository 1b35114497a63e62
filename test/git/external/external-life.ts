/** A process of its own that keeps repositories at another server, to be killed: the backend's calls and its endpoint. */
import * as Effect from "effect/Effect";
import { openExternal, plainRemote } from "../../../src/git/upstream/external.ts";
import type { Upstream } from "../../../src/domain/repository/repository-credential.ts";
import { startGitServer } from "../git-server.ts";
import { sessionPolicy } from "../server/policies.ts";

/** Its one argument, as JSON. */
export interface LifeOrder {
  readonly directory: string;
  readonly upstream: Upstream;
  readonly projectId: string;
  /** A branch to create, or the session whose pushes must be served; the endpoint's address is then printed. */
  readonly make: { readonly branch: string; readonly commit: string } | { readonly serve: string };
}

const live = (order: LifeOrder) =>
  Effect.gen(function* () {
    const { directory, upstream, projectId, make } = order;
    const { backend, endpoint } = yield* openExternal({
      directory,
      allowHosts: ["127.0.0.1"],
      upstreams: {
        kind: () => Effect.succeed("git" as const),
        find: () => Effect.succeed({ ...upstream, defaultBranch: "main" }),
      },
      findRemote: plainRemote,
    });
    if ("branch" in make) return yield* backend.createBranch({ projectId }, make);
    const policies = new Map([[make.serve, sessionPolicy(make.serve)]]);
    const server = yield* Effect.promise(() => startGitServer(endpoint, policies));
    process.stdout.write(`${server.url(projectId, make.serve)}\n`);
    return yield* Effect.never;
  });

const [, , order] = process.argv;
if (order !== undefined) await Effect.runPromise(Effect.scoped(live(JSON.parse(order) as LifeOrder)));
