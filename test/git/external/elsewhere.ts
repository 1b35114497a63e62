/**
 * The common parts of the worlds of external repositories: a separate directory for each one, and projects whose
 * repository is created at its server first, as another user would do.
 */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hostedBackend } from "../../../src/git/repository/hosted.ts";
import { GitBackend } from "../../../src/git/port.ts";
import type { Upstream } from "../../../src/domain/repository/repository-credential.ts";
import type { Upstreams } from "../../../src/git/upstream/upstreams.ts";

/** A directory until the scope closes: `upstreams` for the server's repositories, `mirrors` for ours. */
export const makePlace = (name: string) =>
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), `${name}-`))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true })),
  ).pipe(
    Effect.map((root) => ({ root, upstreams: join(root, "upstreams"), mirrors: join(root, "mirrors") })),
  );

export interface Kept {
  readonly kind: "git" | "github";
  /** Where the server keeps its repositories. */
  readonly upstreams: string;
  readonly upstreamOf: (projectId: string) => Upstream;
}

/** Remembers which projects were made: `known` tells them, and a backend that is `whole` makes them at the server too. */
export const keptElsewhere = Effect.fnUntraced(function* ({ kind, upstreams, upstreamOf }: Kept) {
  const there = Context.get(yield* Layer.build(hostedBackend({ directory: upstreams })), GitBackend);
  const made = new Map<string, string>();
  const known: Upstreams["Service"] = {
    kind: (projectId) => Effect.succeed(made.has(projectId) ? kind : null),
    find: (projectId) =>
      Effect.sync(() => {
        const defaultBranch = made.get(projectId);
        return defaultBranch === undefined ? null : { ...upstreamOf(projectId), defaultBranch };
      }),
  };
  const whole = (backend: GitBackend["Service"]) =>
    GitBackend.of({
      ...backend,
      create: Effect.fnUntraced(function* (request) {
        yield* there.create(request);
        const answer = yield* backend.create({ ...request, upstream: upstreamOf(request.projectId) });
        made.set(request.projectId, answer.defaultBranch);
        return answer;
      }),
      remove: (repository) =>
        Effect.andThen(
          backend.remove(repository),
          Effect.sync(() => void made.delete(repository.projectId)),
        ),
    });
  return { known, whole };
});
