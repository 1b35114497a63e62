/** People: roles, grants, invitations, and what a lost role ends. */
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import { describe, expect } from "vitest";
import type { AccountRole, ProjectRole } from "../../../../src/domain/person/role.ts";
import { Accounts } from "../../../../src/store/ports/people/accounts.ts";
import { Identity } from "../../../../src/store/ports/people/identity.ts";
import { People } from "../../../../src/store/ports/people/people.ts";
import { Projects } from "../../../../src/store/ports/projects/projects.ts";
import { type Check } from "../fixture.ts";
import { admitSession } from "../../../support/world/sessions.ts";
import { addProject, hash, makeWorld, NOON, type World } from "../../../support/world/world.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const FIRST_PAGE = { limit: 10, cursor: null };

/** A person of the world's account, with a token. */
const addPerson = Effect.fnUntraced(function* (world: World, name: string, role: AccountRole) {
  const { accountId } = world;
  const id = randomUUID();
  yield* (yield* Accounts).createUser({ id, accountId, name, role, now: NOON });
  const token = { id: randomUUID(), hash: hash() };
  yield* (yield* Identity).createToken({
    ...token,
    accountId,
    userId: id,
    projectId: null,
    name: "people",
    origin: "user",
    expiresAt: null,
    now: NOON,
  });
  return { id, token };
});

/** The role that the holder of a token has in a project. */
const roleOf = Effect.fnUntraced(function* (tokenHash: string, projectId: string) {
  const arrival = yield* (yield* Identity).arrive(tokenHash, NOON, { projectId, sessionId: null });
  return arrival === null ? "no caller" : arrival.reached.role;
});

const invitation = (
  world: World,
  fields: { readonly hash: string; readonly projects?: [string, ProjectRole][] },
) => ({
  id: randomUUID(),
  accountId: world.accountId,
  hash: fields.hash,
  name: "Eve",
  role: "member" as const,
  projects: (fields.projects ?? []).map(([projectId, role]) => ({ projectId, role })),
  createdBy: world.userId,
  expiresAt: NOON + 7 * DAY_MS,
  now: NOON,
});

const acceptance = (codeHash: string, now = NOON) => ({
  hash: codeHash,
  userId: randomUUID(),
  name: "Eve",
  tokenId: randomUUID(),
  tokenHash: hash(),
  now,
});

const checkRoles = (check: Check): void => {
  check(
    "have in each project the highest of their grants",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const { projectId } = world;
      const { grant, update } = yield* People;
      const projects = yield* Projects;
      const ben = yield* addPerson(world, "ben", "member");
      const held = () => roleOf(ben.token.hash, projectId);
      const own = (role: ProjectRole | null) => grant({ projectId, userId: ben.id, role, now: NOON });
      expect(yield* held()).toBe("member");
      yield* projects.update(projectId, { defaultRole: null }, NOON);
      expect(yield* held()).toBeNull();
      yield* own("viewer");
      expect(yield* held()).toBe("viewer");
      yield* projects.update(projectId, { defaultRole: "member" }, NOON);
      expect(yield* held()).toBe("member");
      yield* own("owner");
      expect(yield* held()).toBe("owner");
      yield* own(null);
      yield* projects.update(projectId, { defaultRole: "viewer" }, NOON);
      expect(yield* held()).toBe("viewer");
      yield* update(world.accountId, ben.id, { role: "owner" });
      expect(yield* held()).toBe("owner");
      expect((yield* projects.get(projectId))?.defaultRole).toBe("viewer");
    }),
  );

  check(
    "see the projects in which they have a role, and no other",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const ben = yield* addPerson(world, "ben", "member");
      const closed = yield* addProject(world, NOON + 1);
      const projects = yield* Projects;
      yield* projects.update(closed, { defaultRole: null }, NOON);
      const seen = Effect.map(
        projects.list({ accountId: world.accountId, userId: ben.id }, { ...FIRST_PAGE, onlyId: null }),
        ({ items }) => items.map(({ id }) => id),
      );
      expect(yield* seen).toEqual([world.projectId]);
      yield* (yield* People).grant({ projectId: closed, userId: ben.id, role: "viewer", now: NOON });
      expect(yield* seen).toEqual([closed, world.projectId]);
    }),
  );

  check(
    "are listed for a project with their roles, without those who have none",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const { projectId } = world;
      const { grant, members, deactivate } = yield* People;
      const ben = yield* addPerson(world, "ben", "member");
      const eve = yield* addPerson(world, "eve", "member");
      yield* (yield* Projects).update(projectId, { defaultRole: null }, NOON);
      yield* grant({ projectId, userId: ben.id, role: "viewer", now: NOON });
      const listed = Effect.map(members(projectId), (all) =>
        all.map(({ person, role, own }) => [person.name, role, own]),
      );
      const [owner] = yield* members(projectId);
      expect(owner?.person.id).toBe(world.userId);
      expect((yield* listed).slice(1)).toEqual([["ben", "viewer", "viewer"]]);
      yield* grant({ projectId, userId: eve.id, role: "owner", now: NOON });
      expect((yield* listed).slice(1)).toEqual([
        ["ben", "viewer", "viewer"],
        ["eve", "owner", "owner"],
      ]);
      yield* deactivate(world.accountId, ben.id, NOON);
      expect((yield* listed).slice(1)).toEqual([["eve", "owner", "owner"]]);
      expect(yield* grant({ projectId, userId: randomUUID(), role: "viewer", now: NOON })).toBeNull();
    }),
  );

  check(
    "who lose a role end what needs it, and their listeners hear of it",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const { projectId } = world;
      const { grant } = yield* People;
      const { ended, endings } = yield* Identity;
      const ben = yield* addPerson(world, "ben", "member");
      const holding = (needs: ProjectRole) =>
        ({ credential: { kind: "token", id: ben.token.id }, projectId, needs, session: null }) as const;
      const all = [holding("viewer"), holding("member"), holding("owner")];
      const open = Effect.map(ended(all, NOON), (over) => all.filter((one) => !over.includes(one)).length);
      yield* grant({ projectId, userId: ben.id, role: "owner", now: NOON });
      expect(yield* open).toBe(3);
      const heard: (string | null)[] = [];
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* endings((id) => void heard.push(id));
          yield* grant({ projectId, userId: ben.id, role: null, now: NOON });
          yield* (yield* Projects).update(projectId, { defaultRole: "viewer" }, NOON);
          expect(yield* open).toBe(1);
          yield* Effect.suspend(() =>
            heard.includes(ben.id) && heard.includes(projectId) ? Effect.void : Effect.fail("not yet"),
          ).pipe(Effect.eventually);
        }),
      );
    }),
  );
};

const checkEnds = (check: Check): void => {
  check(
    "who are deactivated lose their tokens, keep their name, and get their roles back without a token",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const { accountId, projectId } = world;
      const { deactivate, reactivate, list, isActive } = yield* People;
      const ben = yield* addPerson(world, "ben", "member");
      expect(yield* deactivate(accountId, ben.id, NOON + 5)).toMatchObject({ deactivatedAt: NOON + 5 });
      expect(yield* isActive(ben.id)).toBe(false);
      expect(yield* deactivate(accountId, ben.id, NOON + 9)).toMatchObject({ deactivatedAt: NOON + 5 });
      expect(yield* roleOf(ben.token.hash, projectId)).toBe("no caller");
      const named = Effect.map(list(accountId, FIRST_PAGE), ({ items }) => items.map(({ name }) => name));
      expect(yield* named).toContain("ben");
      expect(yield* reactivate(accountId, ben.id)).toMatchObject({ deactivatedAt: null, role: "member" });
      expect([yield* isActive(ben.id), yield* isActive(randomUUID())]).toEqual([true, false]);
      expect(yield* roleOf(ben.token.hash, projectId)).toBe("no caller");
      expect(yield* deactivate(randomUUID(), ben.id, NOON)).toBeNull();
      expect(yield* reactivate(randomUUID(), ben.id)).toBeNull();
    }),
  );

  check(
    "who are deactivated have sessions that are to stop; the sessions of triggers go on",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const people = yield* People;
      yield* addPerson(world, "ada", "owner");
      const id = yield* admitSession(world);
      expect(yield* people.unwantedSessions).toEqual([]);
      yield* people.deactivate(world.accountId, world.userId, NOON);
      expect(yield* people.unwantedSessions).toEqual([{ id, projectId: world.projectId }]);
    }),
  );

  check(
    "never leave the account without an active owner",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const { accountId, userId } = world;
      const { update, deactivate, reactivate } = yield* People;
      const ben = yield* addPerson(world, "ben", "member");
      expect(yield* update(accountId, userId, { role: "member" })).toBe("last_owner");
      expect(yield* deactivate(accountId, userId, NOON)).toBe("last_owner");
      expect(yield* update(accountId, userId, { name: "chief" })).toMatchObject({
        name: "chief",
        role: "owner",
      });
      yield* update(accountId, ben.id, { role: "owner" });
      const both = yield* Effect.all(
        [deactivate(accountId, userId, NOON), deactivate(accountId, ben.id, NOON)],
        { concurrency: 2 },
      );
      expect(both.filter((answer) => answer === "last_owner")).toHaveLength(1);
      yield* Effect.all([reactivate(accountId, userId), reactivate(accountId, ben.id)]);
      expect(yield* update(randomUUID(), ben.id, { role: "member" })).toBeNull();
    }),
  );
};

const checkInvitations = (check: Check): void => {
  check(
    "come in by an invitation, once, with the roles that it names",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const { projectId } = world;
      const { invite, openInvitation, accept, invitations } = yield* People;
      yield* (yield* Projects).update(projectId, { defaultRole: null }, NOON);
      const code = hash();
      const made = yield* invite(invitation(world, { hash: code, projects: [[projectId, "viewer"]] }));
      expect(made).toMatchObject({ name: "Eve", projects: [{ projectId, role: "viewer" }] });
      expect(yield* openInvitation(code, NOON)).toMatchObject({
        role: "member",
        projects: [{ role: "viewer" }],
      });
      const [one, other] = [acceptance(code), acceptance(code)];
      const answers = yield* Effect.all([accept(one), accept(other)], { concurrency: 2 });
      const winners = answers.filter((answer) => answer !== null);
      expect(winners).toHaveLength(1);
      const winner = answers[0] === null ? other : one;
      expect(winners[0]).toMatchObject({ id: winner.userId, role: "member" });
      expect(yield* roleOf(winner.tokenHash, projectId)).toBe("viewer");
      expect(yield* openInvitation(code, NOON)).toBeNull();
      expect((yield* invitations(world.accountId, { ...FIRST_PAGE, now: NOON })).items).toEqual([]);
    }),
  );

  check(
    "do not come in by an invitation whose sender is no owner any more [T12]",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const { invite, accept, openInvitation, update, deactivate } = yield* People;
      const [owners, sent] = [
        [hash(), hash()],
        [hash(), hash()],
      ];
      yield* Effect.forEach(owners, (code) =>
        invite({ ...invitation(world, { hash: code }), role: "owner" }),
      );
      const [ada, eve] = yield* Effect.forEach(owners, (code) => accept(acceptance(code)));
      yield* Effect.forEach([ada, eve], (sender, at) =>
        invite({ ...invitation(world, { hash: sent[at] ?? "" }), createdBy: sender?.id ?? "" }),
      );
      yield* update(world.accountId, ada?.id ?? "", { role: "member" });
      yield* deactivate(world.accountId, eve?.id ?? "", NOON);
      for (const code of sent) {
        expect(yield* openInvitation(code, NOON)).toBeNull();
        expect(yield* accept(acceptance(code))).toBeNull();
      }
    }),
  );

  check(
    "do not come in by an invitation that is expired, revoked or unknown",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const { invite, accept, revokeInvitation, openInvitation, invitations } = yield* People;
      const [late, revoked] = [hash(), hash()];
      yield* invite(invitation(world, { hash: late }));
      const { id } = yield* invite(invitation(world, { hash: revoked }));
      const after = NOON + 7 * DAY_MS;
      expect(yield* openInvitation(late, after - 1)).not.toBeNull();
      expect(yield* accept(acceptance(late, after))).toBeNull();
      expect(yield* revokeInvitation(randomUUID(), id, NOON)).toBe(false);
      expect(yield* revokeInvitation(world.accountId, id, NOON)).toBe(true);
      expect(yield* revokeInvitation(world.accountId, id, NOON)).toBe(false);
      expect(yield* accept(acceptance(revoked))).toBeNull();
      expect(yield* accept(acceptance(hash()))).toBeNull();
      const open = yield* invitations(world.accountId, { ...FIRST_PAGE, now: NOON });
      expect(open.items).toHaveLength(1);
      expect((yield* invitations(world.accountId, { ...FIRST_PAGE, now: after })).items).toEqual([]);
    }),
  );
};

export const checkPeople = (check: Check): void => {
  describe("people", () => {
    checkRoles(check);
    checkEnds(check);
    checkInvitations(check);
  });
};
