/** Conformance: waiting for a slot: the order of fires, and the ways in which a wait ends. */
import { randomUUID } from "node:crypto";
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import { Activity } from "../../../../src/features/activity/ports/activity.ts";
import { Admissions } from "../../../../src/store/ports/triggers/admissions.ts";
import { Fires } from "../../../../src/store/ports/triggers/fires.ts";
import { Identity } from "../../../../src/store/ports/people/identity.ts";
import { People } from "../../../../src/store/ports/people/people.ts";
import { Projects } from "../../../../src/store/ports/projects/projects.ts";
import { Sessions } from "../../../../src/store/ports/sessions/sessions.ts";
import { Accounts } from "../../../../src/store/ports/people/accounts.ts";
import { type Check } from "../fixture.ts";
import {
  admitOne,
  admitSession,
  due,
  fired,
  openSandbox,
  requested,
  tellSandbox,
  tellSession,
  wish,
} from "../../../support/world/sessions.ts";
import {
  accountOf,
  addPerson,
  addProject,
  makeWorld,
  NOON,
  type World,
} from "../../../support/world/world.ts";

const runningSession = Effect.fnUntraced(function* (world: World) {
  const id = yield* admitSession(world);
  const { id: sandboxId } = yield* openSandbox(id);
  yield* tellSession(id, { type: "branch.created", commit: "c", sandboxId });
  yield* tellSandbox(sandboxId, { type: "daemon.ready" });
  yield* tellSession(id, { type: "sandbox.live", sandboxId });
  return id;
});

export const checkQueue = (check: Check): void => {
  describe("a waiting fire", () => {
    check(
      "is not overtaken by a later one that finds a free slot [I13]",
      Effect.gen(function* () {
        const world = yield* makeWorld(1);
        const { drain } = yield* Admissions;
        const taken = yield* admitSession(world);
        const first = fired(world);
        expect(yield* admitOne(world, first)).toMatchObject({ outcome: "queued", slotIsFree: false });
        yield* tellSession(taken, { type: "stop.requested" });
        const second = fired(world);
        expect(yield* admitOne(world, second)).toMatchObject({ outcome: "queued", slotIsFree: true });
        const request = { sessionIds: [randomUUID(), randomUUID()], now: NOON, bootTimeoutMs: 1000 };
        const { admitted } = yield* drain(world.accountId, request);
        expect(admitted.map(({ fireId }) => fireId)).toEqual([first.fire?.id]);
        expect((yield* admitOne(world, wish(world))).outcome).toBe("refused");
      }),
    );

    check(
      "is cancelled permanently, once",
      Effect.gen(function* () {
        const world = yield* makeWorld(0);
        const { cancel } = yield* Admissions;
        const { get, queue } = yield* Fires;
        const request = fired(world, { deliveryId: "d-1" });
        const id = request.fire?.id ?? "";
        yield* admitOne(world, request);
        expect(yield* cancel(id, NOON)).toBe(true);
        expect(yield* get(id)).toMatchObject({ status: "cancelled", reason: "requested" });
        expect(yield* queue({ accountId: world.accountId, userId: null })).toEqual([]);
        expect(yield* accountOf(world)).toMatchObject({ queuedFires: 0 });
        expect(yield* cancel(id, NOON)).toBe(false);
        expect(yield* cancel(randomUUID(), NOON)).toBe(false);
        const again = yield* admitOne(world, fired(world, { deliveryId: "d-1" }));
        expect(again).toMatchObject({ outcome: "queued", fireId: id });
      }),
    );

    check(
      "stands at the head of the queue in its order, and can be refused there, once",
      Effect.gen(function* () {
        const world = yield* makeWorld(0);
        const { heads, refuse } = yield* Admissions;
        const [first, second, third] = [fired(world), fired(world), fired(world)];
        for (const request of [first, second, third]) yield* admitOne(world, request);
        const ids = Effect.map(heads(world.accountId, 2), (all) => all.map(({ fireId }) => fireId));
        expect(yield* ids).toEqual([first.fire?.id, second.fire?.id]);
        const [head] = yield* heads(world.accountId, 1);
        expect(head).toMatchObject({
          kind: first.fire?.kind,
          session: { projectId: world.projectId, triggerSlug: first.session.triggerSlug },
        });
        const [one, two] = [first.fire?.id ?? "", second.fire?.id ?? ""];
        const refused = [
          { fireId: one, status: "skipped", reason: "spend_limit" },
          { fireId: two, status: "failed", reason: "limit_needs_provider" },
          { fireId: randomUUID(), status: "skipped", reason: "spend_limit" },
        ] as const;
        yield* refuse(world.accountId, refused, NOON);
        yield* refuse(world.accountId, refused, NOON);
        const { get } = yield* Fires;
        expect(yield* get(one)).toMatchObject({ status: "skipped", reason: "spend_limit", sessionId: null });
        expect(yield* get(two)).toMatchObject({ status: "failed", reason: "limit_needs_provider" });
        expect(yield* ids).toEqual([third.fire?.id]);
        expect(yield* accountOf(world)).toMatchObject({ queuedFires: 1 });
      }),
    );

    check(
      "is counted when its wait begins and ends, whatever ends it",
      Effect.gen(function* () {
        const world = yield* makeWorld(0);
        const { drain } = yield* Admissions;
        const { setTier } = yield* Identity;
        const queued = Effect.map(accountOf(world), (account) => account?.queuedFires);
        for (let count = 0; count < 3; count += 1) yield* admitOne(world, fired(world, { queueTtlMs: 10 }));
        yield* admitOne(world, due(world, NOON));
        yield* admitOne(world, due(world, NOON + 1));
        expect(yield* queued).toBe(4);
        yield* setTier(world.accountId, "free", 1);
        yield* drain(world.accountId, { sessionIds: [randomUUID()], now: NOON, bootTimeoutMs: 1 });
        expect(yield* queued).toBe(3);
        yield* drain(world.accountId, { sessionIds: [], now: NOON + 10, bootTimeoutMs: 1 });
        expect(yield* queued).toBe(1);
        yield* (yield* Projects).update(world.projectId, { status: "archived" }, NOON);
        expect(yield* queued).toBe(0);
      }),
    );
  });
};

/** Conformance: a person's request for a session, which waits in the same queue. */
export const checkQueuedRequests = (check: Check): void => {
  describe("a person's request", () => {
    check(
      "starts in a free slot, and leaves no fire",
      Effect.gen(function* () {
        const world = yield* makeWorld(1);
        const first = requested(world);
        expect(yield* admitOne(world, first)).toEqual({
          outcome: "admitted",
          sessionId: first.session.id,
          fireId: null,
        });
        expect(yield* (yield* Fires).get(first.fire.id)).toBeNull();
        const second = requested(world);
        expect((yield* admitOne(world, second)).outcome).toBe("queued");
        expect(yield* (yield* Sessions).get(second.session.id)).toBeNull();
      }),
    );

    check(
      "waits at the cap as fires do, with the person who asked, and becomes her session once",
      Effect.gen(function* () {
        const world = yield* makeWorld(1);
        const { drain } = yield* Admissions;
        const { get, list, position, queue } = yield* Fires;
        const taken = yield* admitSession(world);
        const elsewhere = yield* addProject(world);
        yield* admitOne(world, fired(world));
        const wished = requested(world, { projectId: elsewhere, initialPrompt: null, name: "A draft" });
        const { id } = wished.fire;
        const expiresAt = NOON + wished.fire.queueTtlMs;
        expect(yield* admitOne(world, wished)).toEqual({
          outcome: "queued",
          fireId: id,
          slotIsFree: false,
          expiresAt,
        });
        const later = requested(world, { initialPrompt: "Say\nhello." });
        yield* admitOne(world, later);
        const waiting = yield* queue({ accountId: world.accountId, userId: null });
        const person = { id: world.userId, name: expect.any(String) };
        expect(waiting.find(({ fireId }) => fireId === id)).toMatchObject({
          kind: "session",
          triggerSlug: null,
          title: "A draft",
          person,
          expiresAt,
        });
        expect(waiting.at(-1)).toMatchObject({ fireId: later.fire.id, title: "Say\nhello.", position: 3 });
        expect(waiting.find(({ kind }) => kind === "webhook")).toMatchObject({ person: null });
        expect(yield* position(world.accountId, later.fire.id)).toBe(3);
        expect(yield* position(world.accountId, randomUUID())).toBeNull();

        yield* (yield* Identity).setTier(world.accountId, "free", 4);
        const sessionIds = Array.from({ length: 5 }, () => randomUUID());
        const { admitted } = yield* drain(world.accountId, { sessionIds, now: NOON, bootTimeoutMs: 1000 });
        expect(admitted).toHaveLength(3);
        const started = admitted.find(({ fireId }) => fireId === id)?.sessionId ?? "";
        expect(started).toBe(wished.session.id);
        expect(yield* (yield* Sessions).get(started)).toMatchObject({
          projectId: elsewhere,
          name: "A draft",
          initialPrompt: null,
          triggerSlug: null,
          fireId: id,
          createdBy: world.userId,
          origin: "session",
        });
        expect(yield* get(id)).toMatchObject({ status: "fired", sessionId: started, triggerSlug: null });
        expect((yield* list(elsewhere, { limit: 10, cursor: null, slug: null, status: null })).items).toEqual(
          [],
        );
        const again = { sessionIds: [randomUUID()], now: NOON, bootTimeoutMs: 1000 };
        expect((yield* drain(world.accountId, again)).admitted).toEqual([]);
        expect(taken).not.toBe(started);
      }),
    );

    check(
      "wants as much room as no free slot and no session about to stop gives it",
      Effect.gen(function* () {
        const world = yield* makeWorld(2);
        const { roomWanted } = yield* Sessions;
        const { setTier } = yield* Identity;
        const wanted = Effect.map(roomWanted, (all) => all.get(world.accountId) ?? 0);
        const [id = ""] = yield* Effect.forEach([1, 2], () => runningSession(world));
        yield* admitOne(world, fired(world));
        expect(yield* wanted).toBe(0);
        for (const _ of [1, 2, 3]) yield* admitOne(world, requested(world));
        expect(yield* wanted).toBe(3);
        yield* setTier(world.accountId, "free", 3);
        expect(yield* wanted).toBe(2);
        yield* tellSession(id, { type: "idle.elapsed", makesRoom: true });
        expect(yield* wanted).toBe(1);
        // It takes its slot back.
        const sandboxId = randomUUID();
        yield* tellSession(id, { type: "stop.requested" });
        yield* tellSession(id, { type: "restart.requested", sandboxId });
        expect(yield* wanted).toBe(2);
        // A lower cap frees no slot.
        yield* setTier(world.accountId, "free", 1);
        expect(yield* wanted).toBe(3);
      }),
    );

    check(
      "is refused if the queue is full, expires, and ends when its person is deactivated",
      Effect.gen(function* () {
        const world = yield* makeWorld(0);
        const { get, queue, requester } = yield* Fires;
        const { drain } = yield* Admissions;
        const full = requested(world);
        const none = { ...full, fire: { ...full.fire, queueMax: 0 } };
        expect(yield* admitOne(world, none)).toEqual({ outcome: "queue_full", limit: 0 });
        const late = requested(world);
        yield* admitOne(world, { ...late, fire: { ...late.fire, queueTtlMs: 10 } });
        expect(yield* requester(late.fire.id)).toBe(world.userId);
        yield* drain(world.accountId, { sessionIds: [], now: NOON + 10, bootTimeoutMs: 1 });
        expect(yield* get(late.fire.id)).toMatchObject({ status: "expired", reason: "queue_ttl" });
        expect(yield* requester(late.fire.id)).toBeNull();
        const reader = { accountId: world.accountId, userId: null };
        const page = { limit: 1, cursor: null, personId: world.userId, isOwn: false, projectId: null };
        expect((yield* (yield* Activity).list(reader, page)).items).toMatchObject([
          { kind: "fire.expired", person: { id: world.userId }, isOwn: true },
        ]);

        const other = { id: randomUUID(), accountId: world.accountId, name: "Eve", role: "member" as const };
        yield* (yield* Accounts).createUser({ ...other, now: NOON });
        const [hers, mine] = [requested(world, { createdBy: other.id }), requested(world)];
        yield* admitOne(world, hers);
        yield* admitOne(world, mine);
        yield* (yield* People).deactivate(world.accountId, other.id, NOON);
        expect(yield* get(hers.fire.id)).toMatchObject({ status: "cancelled", reason: "user_deactivated" });
        const left = yield* queue({ accountId: world.accountId, userId: null });
        expect(left.map(({ fireId }) => fireId)).toEqual([mine.fire.id]);
        expect(yield* accountOf(world)).toMatchObject({ queuedFires: 1 });
      }),
    );

    check(
      "is cancelled when its turn comes, if its person has lost the role since",
      Effect.gen(function* () {
        const world = yield* makeWorld(0);
        const [hers, mine] = [requested(world, { createdBy: yield* addPerson(world) }), requested(world)];
        yield* admitOne(world, hers);
        yield* admitOne(world, mine);
        yield* (yield* Projects).update(world.projectId, { defaultRole: "viewer" }, NOON);
        yield* (yield* Identity).setTier(world.accountId, "free", 2);
        const request = { sessionIds: [randomUUID(), randomUUID()], now: NOON, bootTimeoutMs: 1000 };
        const { admitted } = yield* (yield* Admissions).drain(world.accountId, request);
        expect(admitted.map(({ fireId }) => fireId)).toEqual([mine.fire.id]);
        const { get } = yield* Fires;
        expect(yield* get(hers.fire.id)).toMatchObject({ status: "cancelled", reason: "role_lost" });
        expect(yield* accountOf(world)).toMatchObject({ queuedFires: 0, activeSessions: 1 });
      }),
    );
  });
};
