/** A session's save by an earlier version, `refs/wip/<session>` in its repository, goes with the session. */
import { it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { randomUUID } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { GitBackend } from "../../src/git/port.ts";
import { hostedBackend } from "../../src/git/repository/hosted.ts";
import { makePlace } from "./external/elsewhere.ts";
import { makeExternalWorld } from "./external/external-setup.ts";
import { git, gitOk } from "./git-client.ts";

const left = (path: string, sessionId: string) =>
  Effect.promise(
    async () => (await git(path, "rev-parse", "--verify", "--quiet", `refs/wip/${sessionId}`)).code === 0,
  );

/** A project with the saves of two sessions at its server, known to the mirror. */
const atAServer = Effect.gen(function* () {
  const { backend, upstreams, mirrors } = yield* makeExternalWorld();
  const repository = { projectId: randomUUID() };
  yield* backend.create({ ...repository, importFrom: null, defaultBranch: null });
  const [server, mirror] = [upstreams, mirrors].map((directory) =>
    join(directory, `${repository.projectId}.git`),
  );
  if (server === undefined || mirror === undefined) return yield* Effect.die("no paths");
  const [gone, kept] = [randomUUID(), randomUUID()];
  for (const id of [gone, kept])
    yield* Effect.promise(() => gitOk(server, "update-ref", `refs/wip/${id}`, "refs/heads/main"));
  yield* backend.branchTip(repository, "main");
  return { backend, repository, server, mirror, gone, kept };
});

it.live("at the repository's server, and in the mirror", () =>
  Effect.gen(function* () {
    const { backend, repository, server, mirror, gone, kept } = yield* atAServer;
    expect(yield* left(mirror, gone)).toBe(true);
    yield* backend.removeOldSave(repository, gone);
    expect([yield* left(server, gone), yield* left(mirror, gone)]).toEqual([false, false]);
    expect([yield* left(server, kept), yield* left(mirror, kept)]).toEqual([true, true]);
    yield* backend.removeOldSave(repository, gone);
  }),
);

it.live("unless the server refuses, which is told", () =>
  Effect.gen(function* () {
    const { backend, repository, server, gone } = yield* atAServer;
    mkdirSync(join(server, "hooks"), { recursive: true });
    writeFileSync(join(server, "hooks/update"), "#!/bin/sh\nexit 1\n", { mode: 0o755 });
    const error = yield* Effect.flip(backend.removeOldSave(repository, gone));
    expect(error.code).toBe("refused");
    expect(yield* left(server, gone)).toBe(true);
  }),
);

it.live("in a hosted repository", () =>
  Effect.gen(function* () {
    const { root } = yield* makePlace("old-save");
    yield* Effect.gen(function* () {
      const backend = yield* GitBackend;
      const [repository, sessionId] = [{ projectId: randomUUID() }, randomUUID()];
      yield* backend.create({ ...repository, importFrom: null, defaultBranch: null });
      const path = join(root, `${repository.projectId}.git`);
      yield* Effect.promise(() => gitOk(path, "update-ref", `refs/wip/${sessionId}`, "refs/heads/main"));
      yield* backend.removeOldSave(repository, sessionId);
      yield* backend.removeOldSave(repository, sessionId);
      expect(yield* left(path, sessionId)).toBe(false);
    }).pipe(Effect.provide(Layer.fresh(hostedBackend({ directory: root }))));
  }),
);
