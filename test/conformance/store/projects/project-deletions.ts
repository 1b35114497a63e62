/** Conformance: unique names of projects, and their deletion. */
import { randomUUID } from "node:crypto";
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import { ChangeRequests } from "../../../../src/features/change-requests/ports/change-requests.ts";
import { EnvironmentBuilds } from "../../../../src/store/ports/projects/environment-builds.ts";
import { Accounts } from "../../../../src/store/ports/people/accounts.ts";
import { Identity } from "../../../../src/store/ports/people/identity.ts";
import { People } from "../../../../src/store/ports/people/people.ts";
import { ProjectDeletions } from "../../../../src/store/ports/projects/project-deletions.ts";
import { Projects } from "../../../../src/store/ports/projects/projects.ts";
import { Fires } from "../../../../src/store/ports/triggers/fires.ts";
import { Sessions } from "../../../../src/store/ports/sessions/sessions.ts";
import {
  admitOne,
  admitSession,
  fired,
  openSandbox,
  tellSandbox,
  tellSession,
} from "../../../support/world/sessions.ts";
import { activeSessions, type Check } from "../fixture.ts";
import { addProject, hash, makeWorld, newProject, NOON, type World } from "../../../support/world/world.ts";

const LATER = NOON + 1000;
const times = { now: NOON, deletesAt: LATER };

/** Steps until the removal ends. */
const removeAll = Effect.fnUntraced(function* (id: string) {
  const { remove } = yield* ProjectDeletions;
  for (let step = 0; step < 100; step += 1) {
    const removal = yield* remove(id, LATER);
    if (removal !== "more") return removal;
  }
  return "more" as const;
});

/** A session that ended, with its sandbox. */
const endedSession = Effect.fnUntraced(function* (world: World) {
  const sessionId = yield* admitSession(world);
  const { id: sandboxId } = yield* openSandbox(sessionId);
  yield* tellSession(sessionId, { type: "stop.requested" });
  yield* tellSandbox(sandboxId, { type: "stop.requested" });
  return { sessionId, sandboxId };
});

/** Something of most kinds in the world's project. */
const fill = Effect.fnUntraced(function* (world: World) {
  const { sessionId, sandboxId } = yield* endedSession(world);
  yield* (yield* ChangeRequests).open({
    id: randomUUID(),
    projectId: world.projectId,
    sessionId,
    headRef: sessionId,
    baseRef: "main",
    title: "A change",
    description: "",
    createdBy: world.userId,
    tips: { base: "b", head: "h" },
    now: NOON,
  });
  const tokenHash = hash();
  yield* (yield* Identity).createToken({
    id: randomUUID(),
    accountId: world.accountId,
    userId: world.userId,
    projectId: world.projectId,
    name: "bound",
    hash: tokenHash,
    origin: "user",
    expiresAt: null,
    now: NOON,
  });
  yield* (yield* People).invite({
    id: randomUUID(),
    accountId: world.accountId,
    hash: hash(),
    name: "Eve",
    role: "member",
    projects: [{ projectId: world.projectId, role: "member" }],
    createdBy: world.userId,
    expiresAt: LATER,
    now: NOON,
  });
  return { sessionId, sandboxId, tokenHash };
});

const checkNames = (check: Check): void => {
  check(
    "has a name that no other project of its account has, whatever its case, also while it is deleted",
    Effect.gen(function* () {
      const world = yield* makeWorld(1);
      const { create, update } = yield* Projects;
      const make = (name: string) => create(newProject(world, { name }));
      const first = yield* make("Café");
      expect((yield* Effect.flip(make(" CAFÉ")))._tag).toBe("Taken");
      const other = yield* make("other");
      expect((yield* Effect.flip(update(other.id, { name: "café" }, NOON)))._tag).toBe("Taken");
      expect((yield* update(first.id, { name: "CAFÉ" }, NOON))?.name).toBe("CAFÉ");
      yield* (yield* ProjectDeletions).begin(first.id, times);
      expect((yield* Effect.flip(make("café")))._tag).toBe("Taken");
      expect(yield* removeAll(first.id)).toBe("removed");
      expect((yield* make("café")).name).toBe("café");
      const accountId = randomUUID();
      const account = { id: accountId, name: "theirs", tier: "free", cap: 1, now: NOON };
      yield* (yield* Accounts).create(account);
      const stranger = yield* create(newProject({ ...world, accountId }, { name: "other" }));
      expect(stranger.name).toBe("other");
    }),
  );
};

const checkMarks = (check: Check): void => {
  check(
    "is deleted once, cancels what waits, and comes back as it was until its instant",
    Effect.gen(function* () {
      const world = yield* makeWorld(0);
      const { begin, restore, due } = yield* ProjectDeletions;
      const { get, update } = yield* Projects;
      yield* update(world.projectId, { status: "archived" }, NOON);
      yield* update(world.projectId, { status: "active" }, NOON);
      const queued = yield* admitOne(world, fired(world));
      expect(queued.outcome).toBe("queued");
      const deleted = yield* begin(world.projectId, times);
      expect(deleted).toMatchObject({ status: "deleted", deletesAt: LATER });
      if (queued.outcome === "queued")
        expect((yield* (yield* Fires).get(queued.fireId))?.reason).toBe("project_deleted");
      expect(yield* begin(world.projectId, { now: NOON + 1, deletesAt: LATER + 1 })).toEqual(deleted);
      expect(yield* update(world.projectId, { status: "active" }, NOON)).toMatchObject({ status: "deleted" });
      expect(yield* due(LATER - 1)).toEqual([]);
      expect((yield* due(LATER)).map(({ id }) => id)).toEqual([world.projectId]);
      expect(yield* restore(world.projectId, LATER)).toBe(null);
      expect(yield* restore(world.projectId, LATER - 1)).toMatchObject({ status: "active", deletesAt: null });
      expect(yield* restore(world.projectId, LATER - 1)).toBe(null);
      yield* update(world.projectId, { status: "archived" }, NOON);
      yield* begin(world.projectId, times);
      expect((yield* restore(world.projectId, NOON))?.status).toBe("archived");
      expect((yield* get(world.projectId))?.status).toBe("archived");
      expect(yield* begin(randomUUID(), times)).toBe(null);
      expect(yield* restore(randomUUID(), NOON)).toBe(null);
    }),
  );
};

const checkRemoval = (check: Check): void => {
  check(
    "waits for its live sessions, which it names, and for its instant",
    Effect.gen(function* () {
      const world = yield* makeWorld(3);
      const { begin, remove, unwantedSessions } = yield* ProjectDeletions;
      const sessionId = yield* admitSession(world);
      expect(yield* unwantedSessions).toEqual([]);
      yield* begin(world.projectId, times);
      expect(yield* unwantedSessions).toEqual([{ id: sessionId, projectId: world.projectId }]);
      expect(yield* remove(world.projectId, LATER)).toBe("waits");
      yield* tellSession(sessionId, { type: "stop.requested" });
      expect(yield* unwantedSessions).toEqual([]);
      expect(yield* remove(world.projectId, LATER - 1)).toBe("waits");
      expect(yield* removeAll(world.projectId)).toBe("removed");
      expect(yield* activeSessions(world)).toBe(0);
    }),
  );

  check(
    "goes with its rows, and leaves its id and other projects",
    Effect.gen(function* () {
      const world = yield* makeWorld(30);
      const other = { ...world, projectId: yield* addProject(world) };
      const mine = yield* fill(world);
      for (let count = 0; count < 21; count += 1) yield* endedSession(world);
      const theirs = yield* fill(other);
      const { begin, due, gone } = yield* ProjectDeletions;
      const { authenticate } = yield* Identity;
      yield* begin(world.projectId, times);
      expect(yield* removeAll(world.projectId)).toBe("removed");
      expect(yield* removeAll(world.projectId)).toBe("gone");
      expect(yield* due(LATER)).toEqual([]);
      expect(yield* gone).toContain(world.projectId);
      expect(yield* gone).not.toContain(other.projectId);
      const { get } = yield* Sessions;
      expect([yield* get(mine.sessionId), yield* authenticate(mine.tokenHash, NOON)]).toEqual([null, null]);
      expect((yield* get(theirs.sessionId))?.projectId).toBe(other.projectId);
      expect((yield* authenticate(theirs.tokenHash, NOON))?.projectId).toBe(other.projectId);
      expect(yield* (yield* EnvironmentBuilds).unheld([mine.sessionId])).toEqual([mine.sessionId]);
    }),
  );
};

export const checkProjectDeletions = (check: Check): void => {
  describe("a project", () => {
    checkNames(check);
    checkMarks(check);
    checkRemoval(check);
  });
};
