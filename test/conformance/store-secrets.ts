/** Conformance: which of the project's secrets each sandbox received. */
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import { Sandboxes } from "../../src/store/ports/sandboxes.ts";
import { Secrets } from "../../src/store/ports/secrets.ts";
import { type Check } from "./store-fixture.ts";
import { admitSession, openSandbox, tellSandbox } from "../support/world/sessions.ts";
import { addProject, makeWorld, NOON } from "../support/world/world.ts";

/** A world with an active sandbox, and a function that changes its project's secrets. */
const begin = Effect.gen(function* () {
  const world = yield* makeWorld(5);
  const { projectId, userId } = world;
  const { put, nextVersion } = yield* Secrets;
  const sessionId = yield* admitSession(world);
  const { id } = yield* openSandbox(sessionId);
  const change = Effect.fnUntraced(function* (name: string) {
    const version = yield* nextVersion(projectId, name);
    yield* put({ projectId, name, version, envelope: Uint8Array.from([1]) }, { userId, now: NOON });
  });
  return { world, sessionId, id, change };
});

export const checkGivenSecrets = (check: Check): void => {
  describe("the secrets of a sandbox", () => {
    check(
      "replace only the record that was read",
      Effect.gen(function* () {
        const { id, change } = yield* begin;
        const { noteSecrets, outdated } = yield* Sandboxes;
        yield* tellSandbox(id, { type: "daemon.ready" });
        yield* change("KEY");
        expect(yield* outdated("node-1")).toEqual([]);
        const first = { revision: 0, versions: {} };
        expect(yield* noteSecrets(id, 0, first)).toBe(false);
        expect(yield* noteSecrets(id, null, first)).toBe(true);
        expect(yield* noteSecrets(id, null, { revision: 1, versions: { KEY: 1 } })).toBe(false);
        expect((yield* outdated("node-1")).map(({ given }) => given)).toEqual([first]);
        expect(yield* noteSecrets(id, 0, { revision: 1, versions: { KEY: 1 } })).toBe(true);
        expect(yield* outdated("node-1")).toEqual([]);
      }),
    );

    check(
      "are outdated while it is active, on its own node, once the project has others",
      Effect.gen(function* () {
        const { world, sessionId, id, change } = yield* begin;
        const { noteSecrets, outdated } = yield* Sandboxes;
        yield* change("KEY");
        const given = { revision: 1, versions: { KEY: 1 } };
        yield* noteSecrets(id, null, given);
        yield* change("KEY");
        expect(yield* outdated("node-1")).toEqual([]);
        yield* tellSandbox(id, { type: "daemon.ready" });
        const found = { id, sessionId, projectId: world.projectId, given };
        expect(yield* outdated("node-1")).toEqual([found]);
        expect(yield* outdated("node-2")).toEqual([]);
        yield* tellSandbox(id, { type: "sandbox.lost", failure: { code: "sandbox_lost", message: "gone" } });
        expect(yield* outdated("node-1")).toEqual([]);
      }),
    );

    check(
      "are outdated when one was removed, and not when another project changed",
      Effect.gen(function* () {
        const { world, id, change } = yield* begin;
        const { noteSecrets, outdated } = yield* Sandboxes;
        const { put, remove } = yield* Secrets;
        yield* tellSandbox(id, { type: "daemon.ready" });
        yield* change("KEY");
        yield* noteSecrets(id, null, { revision: 1, versions: { KEY: 1 } });
        const other = yield* addProject(world);
        const secret = { projectId: other, name: "KEY", version: 1, envelope: Uint8Array.from([1]) };
        yield* put(secret, { userId: world.userId, now: NOON });
        expect(yield* outdated("node-1")).toEqual([]);
        yield* remove(world.projectId, "KEY", NOON);
        expect((yield* outdated("node-1")).map((sandbox) => sandbox.id)).toEqual([id]);
      }),
    );
  });
};
