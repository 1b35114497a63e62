/** Conformance: what connectors' servers granted, and sign-ins that are under way. */
import { randomUUID } from "node:crypto";
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import {
  ConnectorGrants,
  type NewFlow,
  type NewGrant,
} from "../../../../src/store/ports/connectors/connector-grants.ts";
import { People } from "../../../../src/store/ports/people/people.ts";
import { addPerson, makeWorld, NOON, type World } from "../../../support/world/world.ts";
import { BrowserSessions } from "../../../../src/store/ports/people/browser-sessions.ts";
import { addToken, browser } from "../people/browsers.ts";
import { type Check } from "../fixture.ts";

const ORIGIN = "https://mcp.example.com";

const grant = ({ projectId }: Pick<World, "projectId">, version: number): NewGrant => ({
  projectId,
  slug: "docs",
  personId: null,
  version,
  origin: ORIGIN,
  kind: "oauth",
  envelope: Uint8Array.from([version]),
  issuer: "https://login.example.com",
  expiresAt: NOON + 1000,
});

const key = ({ projectId }: Pick<World, "projectId">, version: number) => ({
  projectId,
  slug: "docs",
  personId: null,
  version,
});

const holderIn = (projectId: string, personId: string | null = null) => ({
  projectId,
  slug: "docs",
  personId,
});

const holder = (now = NOON, failedAt: number | null = null) => ({
  holder: randomUUID(),
  now,
  until: now + 60_000,
  failedAt,
});

const checkGrants = (check: Check): void => {
  check(
    "are replaced by the next version only, and keep their version when they are removed",
    Effect.gen(function* () {
      const world = yield* makeWorld(1);
      const { projectId, userId } = world;
      const store = yield* ConnectorGrants;
      const by = { userId, now: NOON };
      expect(yield* store.get(holderIn(projectId))).toBeNull();
      expect((yield* Effect.flip(store.put(grant(world, 2), by)))._tag).toBe("Fenced");
      yield* store.put(grant(world, 1), by);
      expect((yield* Effect.flip(store.put(grant(world, 1), by)))._tag).toBe("Fenced");
      const expected = {
        ...grant(world, 1),
        status: "held",
        grantedAt: NOON,
        grantedBy: userId,
        renewedAt: null,
        failure: null,
        failedAt: null,
      };
      const [listed] = yield* store.list(projectId, userId);
      expect({ ...listed, envelope: [...(listed?.envelope ?? [])] }).toEqual({ ...expected, envelope: [1] });
      const removed = yield* store.remove(holderIn(projectId), NOON + 1);
      expect({ ...removed, envelope: [...(removed?.envelope ?? [])] }).toEqual({
        ...expected,
        envelope: [1],
      });
      expect(yield* store.remove(holderIn(projectId), NOON + 1)).toBeNull();
      expect(yield* store.list(projectId, userId)).toEqual([]);
      expect(yield* store.get(holderIn(projectId))).toMatchObject({
        version: 2,
        status: "removed",
        envelope: null,
      });
      yield* store.put({ ...grant(world, 3), envelope: null, kind: "client_credentials" }, by);
      expect(yield* store.get(holderIn(projectId))).toMatchObject({ version: 3, status: "empty" });
    }),
  );

  check(
    "are renewed by the one holder of their lease",
    Effect.gen(function* () {
      const world = yield* makeWorld(1);
      const store = yield* ConnectorGrants;
      yield* store.put(grant(world, 1), { userId: world.userId, now: NOON });
      const holders = Array.from({ length: 6 }, () => holder());
      const taken = yield* Effect.forEach(holders, (by) => store.lease(key(world, 1), by), {
        concurrency: "unbounded",
      });
      expect(taken.filter((answer) => answer === "leased")).toHaveLength(1);
      expect(taken.filter((answer) => answer === "held")).toHaveLength(5);
      const winner = holders[taken.indexOf("leased")] ?? holder();
      const loser = holders[taken.indexOf("held")] ?? holder();
      expect(yield* store.renew(grant(world, 2), loser)).toBe(false);
      expect(yield* store.renew({ ...grant(world, 2), origin: "https://evil.example.com" }, winner)).toBe(
        false,
      );
      expect(yield* store.renew(grant(world, 2), { ...winner, now: NOON + 5 })).toBe(true);
      expect(yield* store.renew(grant(world, 3), winner)).toBe(false);
      expect(yield* store.lease(key(world, 1), loser)).toBe("changed");
      expect(yield* store.get(holderIn(world.projectId))).toMatchObject({
        version: 2,
        status: "held",
        grantedAt: NOON,
        renewedAt: NOON + 5,
      });
    }),
  );

  check(
    "are one for the project and one for each person, and no person sees another's",
    Effect.gen(function* () {
      const world = yield* makeWorld(1);
      const { projectId, userId } = world;
      const other = yield* addPerson(world);
      const store = yield* ConnectorGrants;
      const by = { userId, now: NOON };
      for (const personId of [null, userId, other]) yield* store.put({ ...grant(world, 1), personId }, by);
      const own = { ...key(world, 1), personId: userId };
      expect(yield* store.lease(own, holder())).toBe("leased");
      expect(yield* store.lease({ ...own, personId: other }, holder())).toBe("leased");
      expect((yield* store.list(projectId, userId)).map(({ personId }) => personId)).toEqual([null, userId]);
      expect(yield* store.left).toEqual([]);
      yield* (yield* People).deactivate(world.accountId, other, NOON);
      expect(yield* store.left).toEqual([holderIn(projectId, other)]);
      expect((yield* store.remove(holderIn(projectId, other), NOON))?.personId).toBe(other);
      expect(yield* store.left).toEqual([]);
      expect(yield* store.get(holderIn(projectId, userId))).toMatchObject({ status: "held", version: 1 });
      expect(yield* store.get(holderIn(projectId))).toMatchObject({ status: "held", version: 1 });
    }),
  );

  check(
    "are leased to another one when a holder's time is over, and to none when they are gone",
    Effect.gen(function* () {
      const world = yield* makeWorld(1);
      const store = yield* ConnectorGrants;
      yield* store.put(grant(world, 1), { userId: world.userId, now: NOON });
      const dead = holder();
      const next = holder(dead.until);
      expect(yield* store.lease(key(world, 1), dead)).toBe("leased");
      expect(yield* store.lease(key(world, 1), next)).toBe("leased");
      expect(yield* store.renew(grant(world, 2), dead)).toBe(false);
      yield* store.remove(holderIn(world.projectId), NOON);
      expect(yield* store.renew(grant(world, 2), next)).toBe(false);
      expect(yield* store.lease(key(world, 2), next)).toBe("changed");
      expect(yield* store.lease({ ...key(world, 1), slug: "none" }, next)).toBe("changed");
    }),
  );

  check(
    "stay with the reason when the server does not answer, and end when it refuses",
    Effect.gen(function* () {
      const world = yield* makeWorld(1);
      const store = yield* ConnectorGrants;
      yield* store.put(grant(world, 1), { userId: world.userId, now: NOON });
      const [first, second] = [holder(), holder(NOON + 1, NOON)];
      yield* store.lease(key(world, 1), first);
      const away = { ...first, failure: "It is away.", isRefused: false };
      expect(yield* store.fail(key(world, 1), { ...away, holder: randomUUID() })).toBe(false);
      expect(yield* store.fail(key(world, 1), away)).toBe(true);
      expect(yield* store.get(holderIn(world.projectId))).toMatchObject({
        version: 1,
        status: "held",
        failure: "It is away.",
        failedAt: NOON,
      });
      // One that looked before it failed looks again.
      expect(yield* store.lease(key(world, 1), holder(NOON + 1))).toBe("held");
      expect(yield* store.lease(key(world, 1), second)).toBe("leased");
      const refused = { ...second, failure: "It says no.", isRefused: true };
      expect(yield* store.fail(key(world, 1), refused)).toBe(true);
      expect(yield* store.get(holderIn(world.projectId))).toMatchObject({
        version: 2,
        status: "refused",
        envelope: null,
        failure: "It says no.",
      });
      expect(yield* store.lease(key(world, 2), second)).toBe("changed");
      yield* store.put(grant(world, 3), { userId: world.userId, now: NOON });
      expect(yield* store.get(holderIn(world.projectId))).toMatchObject({ status: "held", failure: null });
    }),
  );
};

const flow = ({ projectId, userId }: World, name: string, fields: Partial<NewFlow> = {}): NewFlow => ({
  projectId,
  slug: "docs",
  userId,
  isOwn: false,
  origin: ORIGIN,
  ticketHash: `ticket ${projectId} ${name}`,
  stateHash: `state ${projectId} ${name}`,
  envelope: Uint8Array.from([7]),
  expiresAt: NOON + 600_000,
  now: NOON,
  ...fields,
});

const checkFlows = (check: Check): void => {
  check(
    "are opened once by their person, and ended once in her browser",
    Effect.gen(function* () {
      const world = yield* makeWorld(1);
      const store = yield* ConnectorGrants;
      const one = flow(world, "one");
      const { ticketHash, stateHash, userId } = one;
      yield* store.begin(one);
      const hers = { browserHash: "hers", browserId: (yield* addToken(world)).id, now: NOON + 1 };
      expect(yield* store.take({ stateHash, ...hers })).toBeNull();
      expect(yield* store.open({ ticketHash, userId: randomUUID(), ...hers })).toBeNull();
      expect(yield* store.open({ ticketHash: "none", userId, ...hers })).toBeNull();
      expect(yield* store.open({ ticketHash, userId, ...hers })).toMatchObject({
        stateHash,
        slug: "docs",
      });
      expect(yield* store.open({ ticketHash, userId, ...hers, browserHash: "other" })).toBeNull();
      expect(yield* store.take({ stateHash, ...hers, browserHash: "other" })).toBeNull();
      const taken = yield* Effect.forEach([1, 2, 3], () => store.take({ stateHash, ...hers }), {
        concurrency: "unbounded",
      });
      const [ended, ...more] = taken.filter((answer) => answer !== null);
      expect(more).toEqual([]);
      expect([...(ended?.envelope ?? [])]).toEqual([7]);
    }),
  );

  check(
    "end with the browser's session in which they were opened",
    Effect.gen(function* () {
      const world = yield* makeWorld(1);
      const store = yield* ConnectorGrants;
      const browsers = yield* BrowserSessions;
      const { hash: tokenHash } = yield* addToken(world);
      const session = browser();
      yield* browsers.open(tokenHash, session);
      const { ticketHash, stateHash, userId, ...rest } = flow(world, "one");
      yield* store.begin({ ticketHash, stateHash, userId, ...rest });
      const at = { browserHash: "hers", now: NOON };
      expect(yield* store.open({ ticketHash, userId, browserId: session.id, ...at })).not.toBeNull();
      yield* browsers.endAll(world.userId);
      expect(yield* store.take({ stateHash, ...at })).toBeNull();
    }),
  );

  check(
    "are replaced by a later one of the same person, and expire",
    Effect.gen(function* () {
      const world = yield* makeWorld(1);
      const store = yield* ConnectorGrants;
      const [one, two] = [flow(world, "one"), flow(world, "two")];
      const { id: browserId } = yield* addToken(world);
      const open = ({ ticketHash, userId }: NewFlow, now: number) =>
        store.open({ ticketHash, userId, browserId, browserHash: "hers", now });
      yield* store.begin(one);
      yield* store.begin(two);
      expect(yield* open(one, NOON)).toBeNull();
      expect(yield* open(two, two.expiresAt)).toBeNull();
      expect(yield* open(two, NOON)).not.toBeNull();
      const { stateHash } = two;
      expect(yield* store.take({ stateHash, browserHash: "hers", now: two.expiresAt })).toBeNull();
      yield* store.begin(flow(world, "three", { slug: "other", now: two.expiresAt, expiresAt: NOON + 9e5 }));
      expect(yield* store.take({ stateHash, browserHash: "hers", now: NOON })).toBeNull();
    }),
  );
};

export const checkConnectorGrants = (check: Check): void => {
  describe("the grants of connectors", () => checkGrants(check));
  describe("sign-ins to connectors", () => checkFlows(check));
};
