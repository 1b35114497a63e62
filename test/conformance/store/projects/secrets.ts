/** Conformance: a project's secrets, and which of them each sandbox received. */
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import { Projects } from "../../../../src/store/ports/projects/projects.ts";
import { Sandboxes } from "../../../../src/store/ports/sessions/sandboxes.ts";
import { Secrets } from "../../../../src/store/ports/projects/secrets.ts";
import { type Check } from "../fixture.ts";
import { admitSession, openSandbox, tellSandbox } from "../../../support/world/sessions.ts";
import { addProject, makeWorld, NOON } from "../../../support/world/world.ts";

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

export const checkSecrets = (check: Check): void => {
  describe("secrets", () => {
    check(
      "are stored byte for byte under rising versions, fenced, and revised with every change",
      Effect.gen(function* () {
        const { projectId, userId } = yield* makeWorld(3);
        const { put, get, list, nextVersion, sealed, current } = yield* Secrets;
        expect(yield* current(projectId)).toEqual({ sealed: [], revision: 0 });
        const by = (now: number) => ({ userId, now });
        const envelope = Uint8Array.from([0, 255, 10, 39, 92]);
        expect(yield* nextVersion(projectId, "KEY")).toBe(1);
        expect(yield* put({ projectId, name: "KEY", version: 1, envelope }, by(NOON))).toBe(true);
        const stored = yield* get(projectId, "KEY");
        expect(Uint8Array.from(stored?.envelope ?? [])).toEqual(envelope);
        const fenced = yield* Effect.flip(put({ projectId, name: "KEY", version: 1, envelope }, by(NOON)));
        expect(fenced._tag).toBe("Fenced");
        expect(yield* nextVersion(projectId, "KEY")).toBe(2);
        expect(yield* put({ projectId, name: "KEY", version: 2, envelope }, by(NOON + 1))).toBe(false);
        yield* put({ projectId, name: "A_KEY", version: 1, envelope }, by(NOON + 2));
        expect(yield* list(projectId)).toEqual({
          secrets: [
            {
              name: "A_KEY",
              createdAt: NOON + 2,
              updatedAt: NOON + 2,
              updatedBy: userId,
              service: false,
              previousUntil: null,
            },
            {
              name: "KEY",
              createdAt: NOON,
              updatedAt: NOON + 1,
              updatedBy: userId,
              service: false,
              previousUntil: null,
            },
          ],
          revision: 3,
        });
        expect((yield* sealed(projectId)).map(({ name, version }) => [name, version])).toEqual([
          ["A_KEY", 1],
          ["KEY", 2],
        ]);
        expect(yield* current(projectId)).toEqual({ sealed: yield* sealed(projectId), revision: 3 });
      }),
    );

    check(
      "stay the service's own until they are removed or delivered again",
      Effect.gen(function* () {
        const { projectId, userId } = yield* makeWorld(3);
        const { put, list, nextVersion, remove, current } = yield* Secrets;
        const { states } = yield* Projects;
        const write = Effect.fnUntraced(function* (service?: boolean) {
          const version = yield* nextVersion(projectId, "KEY");
          const secret = { projectId, name: "KEY", version, envelope: Uint8Array.from([1]) };
          yield* put(secret, { userId, now: NOON, service });
          const [state] = yield* states([projectId]);
          const [listed, sealed] = [(yield* list(projectId)).secrets, (yield* current(projectId)).sealed];
          return [listed, sealed, state?.secrets ?? []].map(([one]) => one?.service);
        });
        expect(yield* write()).toEqual([false, false, false]);
        expect(yield* write(true)).toEqual([true, true, true]);
        expect(yield* write()).toEqual([true, true, true]);
        expect(yield* write(false)).toEqual([false, false, false]);
        yield* write(true);
        yield* remove(projectId, "KEY", NOON);
        expect(yield* write()).toEqual([false, false, false]);
      }),
    );

    check(
      "that were removed are gone, and their versions never return [S07]",
      Effect.gen(function* () {
        const { projectId, userId } = yield* makeWorld(3);
        const { put, get, list, nextVersion, remove, sealed, current } = yield* Secrets;
        const envelope = Uint8Array.from([1]);
        yield* put({ projectId, name: "KEY", version: 1, envelope }, { userId, now: NOON });
        expect(yield* remove(projectId, "KEY", NOON + 1)).toBe(true);
        expect(yield* remove(projectId, "KEY", NOON + 1)).toBe(false);
        expect(yield* get(projectId, "KEY")).toBe(null);
        expect(yield* sealed(projectId)).toEqual([]);
        expect(yield* list(projectId)).toEqual({ secrets: [], revision: 2 });
        expect(yield* current(projectId)).toEqual({ sealed: [], revision: 2 });
        expect(yield* nextVersion(projectId, "KEY")).toBe(2);
        const isNew = yield* put({ projectId, name: "KEY", version: 2, envelope }, { userId, now: NOON + 2 });
        expect(isNew).toBe(true);
        expect((yield* list(projectId)).secrets[0]?.createdAt).toBe(NOON + 2);
      }),
    );

    check(
      "have one key check value, the first one",
      Effect.gen(function* () {
        const { keyCheck, masterKey } = yield* Secrets;
        expect(yield* masterKey).toBeNull();
        expect(yield* keyCheck("first")).toBe("first");
        expect(yield* keyCheck("second")).toBe("first");
        expect(yield* masterKey).toEqual({ check: "first", former: null });
      }),
    );
  });
};

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
        const session = {
          id: sessionId,
          accountId: world.accountId,
          projectId: world.projectId,
          triggerSlug: null,
          createdBy: world.userId,
          parentSessionId: null,
          agentName: "default",
        };
        const found = { id, session, given };
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
