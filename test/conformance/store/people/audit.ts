/** The audit record: rows that come and go with their change, their account, filters, pages and pruning. */
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import { describe, expect } from "vitest";
import { Accounts } from "../../../../src/store/ports/people/accounts.ts";
import { Audit, type AuditRequest, type NewAuditEvent } from "../../../../src/store/ports/audit.ts";
import { Identity } from "../../../../src/store/ports/people/identity.ts";
import { type Check } from "../fixture.ts";
import { makeWorld, NOON, type World } from "../../../support/world/world.ts";

const eventIn = (world: World, fields: Partial<NewAuditEvent> = {}): NewAuditEvent => ({
  id: randomUUID(),
  at: NOON,
  accountId: world.accountId,
  projectId: world.projectId,
  actor: { kind: "person", id: world.userId, name: "admin", tokenId: randomUUID() },
  action: "secret.set",
  target: "MODEL_KEY",
  outcome: "done",
  address: "192.0.2.7",
  userAgent: "curl/8",
  requestId: "request-1",
  changes: { new: true, events: ["queue.full"], count: 3, note: null },
  ...fields,
});

const all = (world: World, wish: Partial<AuditRequest> = {}): AuditRequest => ({
  accountId: world.accountId,
  projectId: null,
  actorId: null,
  action: null,
  since: null,
  until: null,
  limit: 50,
  cursor: null,
  ...wish,
});

const listed = (world: World, wish: Partial<AuditRequest> = {}) =>
  Effect.flatMap(Audit, ({ list }) => list(all(world, wish)));

const ids = (world: World, wish: Partial<AuditRequest> = {}) =>
  Effect.map(listed(world, wish), ({ items }) => items.map(({ id }) => id));

const newAccount = Effect.fnUntraced(function* () {
  const accountId = randomUUID();
  const { create, createUser } = yield* Accounts;
  yield* create({ id: accountId, name: "other", tier: "free", cap: 1, now: NOON + 1 });
  const userId = randomUUID();
  yield* createUser({ id: userId, accountId, name: "Otto", role: "owner", now: NOON + 1 });
  return { accountId, userId };
});

const checkRows = (check: Check): void => {
  check(
    "keeps a row as it was written, with the result of its change",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const { recorded } = yield* Audit;
      const event = eventIn(world);
      const change = Effect.as((yield* Identity).setTier(world.accountId, "pro", 7), "made");
      expect(yield* recorded(change, (made) => ({ ...event, target: made }))).toBe("made");
      expect((yield* listed(world)).items).toEqual([{ ...event, target: "made" }]);
      expect((yield* (yield* Identity).account(world.accountId))?.tier).toBe("pro");
    }),
  );

  check(
    "has no row of a change that failed or changed nothing",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const { recorded } = yield* Audit;
      const failed = yield* Effect.exit(recorded(Effect.fail("no" as const), () => eventIn(world)));
      expect(failed._tag).toBe("Failure");
      yield* recorded(Effect.void, () => null);
      expect(yield* ids(world)).toEqual([]);
    }),
  );

  check(
    "gives a row without an account to its person's, or to the operator's",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const other = yield* newAccount();
      const { append } = yield* Audit;
      const ofOther = eventIn(world, {
        accountId: null,
        projectId: null,
        actor: { kind: "person", id: other.userId, name: null, tokenId: null },
      });
      const ofNone = eventIn(world, {
        accountId: null,
        projectId: null,
        actor: { kind: "unknown", id: null, name: null, tokenId: null },
        outcome: "refused",
      });
      yield* append(ofOther);
      yield* append(ofNone);
      const [theirs] = (yield* listed({ ...world, accountId: other.accountId })).items;
      expect([theirs?.id, theirs?.actor.name]).toEqual([ofOther.id, "Otto"]);
      expect(yield* ids(world)).toEqual([ofNone.id]);
    }),
  );
};

const checkLists = (check: Check): void => {
  check(
    "lists the newest first, by actor, action, project and time, and by pages",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const { append } = yield* Audit;
      const actor = { kind: "person", id: randomUUID(), name: "Ben", tokenId: null } as const;
      const rows = [
        eventIn(world),
        eventIn(world, { at: NOON + 1, actor }),
        eventIn(world, { at: NOON + 2, action: "token.created", projectId: null }),
        eventIn(world, { at: NOON + 3, actor, action: "token.created", projectId: null }),
      ];
      for (const row of rows) yield* append(row);
      const named = (...places: readonly number[]) => places.map((place) => rows[place]?.id);
      expect(yield* ids(world)).toEqual(named(3, 2, 1, 0));
      expect(yield* ids(world, { actorId: actor.id })).toEqual(named(3, 1));
      expect(yield* ids(world, { action: "token.created" })).toEqual(named(3, 2));
      expect(yield* ids(world, { projectId: world.projectId })).toEqual(named(1, 0));
      expect(yield* ids(world, { since: NOON + 1, until: NOON + 3 })).toEqual(named(2, 1));
      expect(yield* ids(world, { action: "token.created", actorId: actor.id })).toEqual(named(3));
      const first = yield* listed(world, { limit: 3 });
      expect(first.items.map(({ id }) => id)).toEqual(named(3, 2, 1));
      expect(yield* ids(world, { limit: 3, cursor: first.nextCursor })).toEqual(named(0));
      const other = yield* newAccount();
      expect(yield* ids({ ...world, accountId: other.accountId })).toEqual([]);
    }),
  );

  check(
    "forgets the rows from before an instant",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const { append, prune } = yield* Audit;
      const kept = eventIn(world);
      yield* append(eventIn(world, { at: NOON - 1 }));
      yield* append(kept);
      expect(yield* prune(NOON)).toBe(1);
      expect(yield* prune(NOON)).toBe(0);
      expect(yield* ids(world)).toEqual([kept.id]);
    }),
  );
};

export const checkAudit = (check: Check): void => {
  describe("the audit record", () => {
    checkRows(check);
    checkLists(check);
  });
};
