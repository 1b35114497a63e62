/** Conformance: admission, the slot counter, the queue and the ledger. */
import { randomUUID } from "node:crypto";
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import { NOTHING_TO_SAVE } from "../../../../src/domain/save/saved.ts";
import { Admissions } from "../../../../src/store/ports/triggers/admissions.ts";
import { Fires, type NewFire } from "../../../../src/store/ports/triggers/fires.ts";
import { Identity } from "../../../../src/store/ports/people/identity.ts";
import { Projects } from "../../../../src/store/ports/projects/projects.ts";
import { Sessions } from "../../../../src/store/ports/sessions/sessions.ts";
import { activeSessions, type Check } from "../fixture.ts";
import { admitOne, admitSession, drain, fired, tellSession, wish } from "../../../support/world/sessions.ts";
import { addProject, BOOT_MS, makeWorld, NOON, type World } from "../../../support/world/world.ts";

/** Puts a fire into the queue of an account without a free slot. Returns its id. */
const enqueue = Effect.fnUntraced(function* (world: World, fields: Partial<NewFire> = {}, now?: number) {
  const answer = yield* admitOne(world, fired(world, fields, now));
  if (answer.outcome !== "queued") return yield* Effect.die(`not queued: ${answer.outcome}`);
  return answer.fireId;
});

export const checkAdmission = (check: Check): void => {
  describe("admission", () => {
    check(
      "gives a user a session up to the cap and then reports how full the account is",
      Effect.gen(function* () {
        const world = yield* makeWorld(2);
        const { admit } = yield* Admissions;
        const answers = yield* admit(world.accountId, [wish(world), wish(world), wish(world)]);
        expect(answers.map(({ outcome }) => outcome)).toEqual(["admitted", "admitted", "refused"]);
        expect(answers[2]).toEqual({ outcome: "refused", limit: 2, activeSessions: 2 });
        expect(yield* activeSessions(world)).toBe(2);
        const { list } = yield* Sessions;
        const page = yield* list(world.projectId, { limit: 10, cursor: null, status: "provisioning" });
        expect(page.items).toHaveLength(2);
        expect(page.items[0]).toMatchObject({ createdBy: world.userId, origin: "session", fireId: null });
      }),
    );

    check(
      "gives a session the saved work with which it begins",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const saved = { ...NOTHING_TO_SAVE, files: 1 };
        const { admit } = yield* Admissions;
        const { get } = yield* Sessions;
        const [one, other] = [wish(world, { saved }), wish(world)];
        yield* admit(world.accountId, [one, other]);
        expect(yield* get(one.session.id)).toMatchObject({ saved, restoreSaved: true });
        expect(yield* get(other.session.id)).toMatchObject({ saved: null, restoreSaved: false });
      }),
    );

    check(
      "gives the agent of a session five live sessions, in one batch and in many at once, and one more when one ends",
      Effect.gen(function* () {
        const world = yield* makeWorld(20);
        const [parent, other] = [yield* admitSession(world), yield* admitSession(world)];
        const child = (parentSessionId: string) => wish(world, { parentSessionId });
        const { admit } = yield* Admissions;
        const one = yield* admit(world.accountId, [child(parent), child(parent), child(other)]);
        expect(one.map(({ outcome }) => outcome)).toEqual(["admitted", "admitted", "admitted"]);
        const batches = Array.from({ length: 3 }, () =>
          admit(world.accountId, [child(parent), child(parent)]),
        );
        const many = (yield* Effect.all(batches, { concurrency: "unbounded" })).flat();
        const outcomes = many.map(({ outcome }) => outcome);
        expect(outcomes.toSorted()).toEqual([
          ...Array.from({ length: 3 }, () => "admitted"),
          ...Array.from({ length: 3 }, () => "children_full"),
        ]);
        const { list, liveChildren, get } = yield* Sessions;
        expect([yield* liveChildren(parent), yield* liveChildren(other)]).toEqual([5, 1]);
        const page = { limit: 10, cursor: null, status: null, parentSessionId: parent };
        const children = (yield* list(world.projectId, page)).items;
        expect(children.map(({ parentSessionId }) => parentSessionId)).toEqual(
          Array.from({ length: 5 }, () => parent),
        );
        expect((yield* get(parent))?.parentSessionId).toBeNull();
        yield* tellSession(children[0]?.id ?? "", { type: "stop.requested" });
        const [next, last] = yield* admit(world.accountId, [child(parent), child(parent)]);
        expect([next?.outcome, last]).toEqual(["admitted", { outcome: "children_full", limit: 5 }]);
        expect(yield* activeSessions(world)).toBe(8);
        const { session, ...fire } = fired(world, { kind: "manual" });
        const byHand = (of: string) =>
          ({ ...fire, session: { ...session, parentSessionId: of }, kind: "hand" }) as const;
        expect((yield* admit(world.accountId, [byHand(parent)]))[0]?.outcome).toBe("children_full");
        expect((yield* admit(world.accountId, [byHand(other)]))[0]?.outcome).toBe("admitted");
      }),
    );

    check(
      "counts a slot from creation to the end, and once only [I1, I12]",
      Effect.gen(function* () {
        const world = yield* makeWorld(1);
        const id = yield* admitSession(world);
        yield* tellSession(id, { type: "stop.requested" });
        expect(yield* activeSessions(world)).toBe(0);
        yield* tellSession(id, { type: "restart.requested", sandboxId: randomUUID() });
        expect(yield* activeSessions(world)).toBe(1);
        for (let round = 0; round < 2; round += 1) {
          yield* tellSession(id, { type: "delete.requested" });
          expect(yield* activeSessions(world)).toBe(0);
        }
      }),
    );

    check(
      "refuses a restart without a free slot and leaves the session as it was",
      Effect.gen(function* () {
        const world = yield* makeWorld(1);
        const stopped = yield* admitSession(world);
        yield* tellSession(stopped, { type: "stop.requested" });
        yield* admitSession(world);
        const { memory } = yield* Sessions;
        const before = yield* memory.load(stopped);
        const error = yield* Effect.flip(
          tellSession(stopped, { type: "restart.requested", sandboxId: randomUUID() }),
        );
        expect(error).toMatchObject({ _tag: "CapReached", limit: 1, activeSessions: 1 });
        expect(yield* memory.load(stopped)).toEqual(before);
        expect(yield* activeSessions(world)).toBe(1);
      }),
    );

    check(
      "starts no session if the cap was lowered below the live ones, and ends none [R07]",
      Effect.gen(function* () {
        const world = yield* makeWorld(2);
        const { setTier, applyCaps, account } = yield* Identity;
        yield* admitSession(world);
        yield* admitSession(world);
        yield* setTier(world.accountId, "pro", 1);
        expect(yield* admitOne(world, wish(world))).toEqual({
          outcome: "refused",
          limit: 1,
          activeSessions: 2,
        });
        yield* applyCaps({ free: 9, pro: 3 });
        expect(yield* account(world.accountId)).toMatchObject({
          tier: "pro",
          sessionCap: 3,
          activeSessions: 2,
        });
        expect((yield* admitOne(world, wish(world))).outcome).toBe("admitted");
      }),
    );

    check(
      "starts nothing in a project that is archived or that belongs to another account",
      Effect.gen(function* () {
        const world = yield* makeWorld(2);
        const { update } = yield* Projects;
        expect((yield* admitOne(world, wish(world, { projectId: randomUUID() }))).outcome).toBe("inactive");
        yield* update(world.projectId, { status: "archived" }, NOON);
        expect((yield* admitOne(world, wish(world))).outcome).toBe("inactive");
        expect((yield* admitOne(world, fired(world))).outcome).toBe("inactive");
        expect(yield* activeSessions(world)).toBe(0);
      }),
    );

    check(
      "writes a fire's row, its session and when its trigger last fired, which never moves back [I14]",
      Effect.gen(function* () {
        const world = yield* makeWorld(5);
        const { get } = yield* Fires;
        const { lastFired } = yield* Projects;
        const request = fired(world, { kind: "manual" }, NOON + 10);
        const answer = yield* admitOne(world, request);
        expect(answer).toEqual({
          outcome: "admitted",
          sessionId: request.session.id,
          fireId: request.fire?.id,
        });
        expect(yield* get(request.fire?.id ?? "")).toMatchObject({
          status: "fired",
          sessionId: request.session.id,
          attempts: 1,
          reason: null,
        });
        yield* admitOne(world, fired(world, {}, NOON));
        expect(yield* lastFired(world.projectId)).toEqual(new Map([["on-push", NOON + 10]]));
        const sessions = yield* Sessions;
        expect(yield* sessions.get(request.session.id)).toMatchObject({ fireId: request.fire?.id });
      }),
    );

    check(
      "decides an empty batch",
      Effect.gen(function* () {
        const world = yield* makeWorld(1);
        const { admit } = yield* Admissions;
        expect(yield* admit(world.accountId, [])).toEqual([]);
      }),
    );
  });

  describe("the queue", () => {
    check(
      "accepts fires at the cap until it is full, and leaves no row of a refused one",
      Effect.gen(function* () {
        const world = yield* makeWorld(0);
        const { list } = yield* Fires;
        const fireId = yield* enqueue(world, { queueMax: 1 });
        const refused = yield* admitOne(world, fired(world, { queueMax: 1 }));
        expect(refused).toEqual({ outcome: "queue_full", limit: 1 });
        const page = yield* list(world.projectId, { limit: 10, cursor: null, slug: null, status: null });
        expect(page.items.map(({ id, status, reason }) => [id, status, reason])).toEqual([
          [fireId, "queued", "account_session_cap"],
        ]);
        const { account } = yield* Identity;
        expect((yield* account(world.accountId))?.queuedFires).toBe(1);
        const { waitingAccounts } = yield* Admissions;
        expect(yield* waitingAccounts).toEqual([world.accountId]);
      }),
    );

    check(
      "refuses a user's fire at the cap and leaves no row of it",
      Effect.gen(function* () {
        const world = yield* makeWorld(0);
        const request = { ...fired(world, { kind: "manual" }), kind: "hand" } as const;
        expect((yield* admitOne(world, request)).outcome).toBe("refused");
        const { get } = yield* Fires;
        expect(yield* get(request.fire?.id ?? "")).toBe(null);
      }),
    );

    check(
      "starts first come, first served in a project and round robin between projects [R08, I13]",
      Effect.gen(function* () {
        const world = yield* makeWorld(0);
        const { setTier } = yield* Identity;
        const { queue, get } = yield* Fires;
        const other = yield* addProject(world);
        const mine = [yield* enqueue(world), yield* enqueue(world), yield* enqueue(world)];
        const theirs = [
          yield* enqueue(world, { projectId: other }),
          yield* enqueue(world, { projectId: other }),
        ];
        yield* setTier(world.accountId, "free", 1);
        const shown = yield* queue({ accountId: world.accountId, userId: null });
        expect(shown.map(({ position }) => position)).toEqual([1, 2, 3, 4, 5]);
        const started: string[] = [];
        for (const _ of shown) {
          const { admitted } = yield* drain(world, 5);
          expect(admitted).toHaveLength(1);
          started.push(...admitted.map(({ fireId }) => fireId));
          for (const { fireId, sessionId } of admitted) {
            expect(yield* get(fireId)).toMatchObject({ status: "fired", sessionId, reason: null });
            yield* tellSession(sessionId, { type: "stop.requested" });
          }
        }
        expect(started).toEqual(shown.map(({ fireId }) => fireId));
        expect(started.filter((id) => mine.includes(id))).toEqual(mine);
        expect(started.filter((id) => theirs.includes(id))).toEqual(theirs);
        const owners = started.slice(0, 4).map((id) => mine.includes(id));
        expect(owners.slice(0, 2)).not.toEqual([owners[0], owners[0]]);
        expect(owners.slice(2)).toEqual(owners.slice(0, 2));
      }),
    );

    check(
      "is drained as far as slots and ids allow, and reports whether more could start",
      Effect.gen(function* () {
        const world = yield* makeWorld(0);
        const { setTier } = yield* Identity;
        const sessions = yield* Sessions;
        for (const _ of [1, 2, 3, 4]) yield* enqueue(world);
        expect(yield* drain(world, 5)).toEqual({ admitted: [], more: false });
        yield* setTier(world.accountId, "free", 3);
        const first = yield* drain(world, 2, NOON + 5);
        expect(first.admitted).toHaveLength(2);
        expect(first.more).toBe(true);
        expect(yield* sessions.get(first.admitted[0]?.sessionId ?? "")).toMatchObject({
          status: "provisioning",
          createdAt: NOON + 5,
          bootDeadlineAt: NOON + 5 + BOOT_MS,
          initialPrompt: "Look at the push.",
          origin: "trigger",
        });
        const second = yield* drain(world, 2);
        expect(second.admitted).toHaveLength(1);
        expect(second.more).toBe(false);
        expect(yield* activeSessions(world)).toBe(3);
      }),
    );

    check(
      "expires fires that waited too long, and cancels fires of an archived project [R09]",
      Effect.gen(function* () {
        const world = yield* makeWorld(0);
        const { setTier } = yield* Identity;
        const { update } = yield* Projects;
        const { get, queue } = yield* Fires;
        const other = yield* addProject(world);
        const old = yield* enqueue(world, { queueTtlMs: 10 });
        const orphan = yield* enqueue(world, { projectId: other });
        yield* update(other, { status: "archived" }, NOON);
        yield* setTier(world.accountId, "free", 5);
        expect((yield* drain(world, 5, NOON + 10)).admitted).toEqual([]);
        expect((yield* get(old))?.status).toBe("expired");
        expect((yield* get(orphan))?.status).toBe("cancelled");
        expect(yield* queue({ accountId: world.accountId, userId: null })).toEqual([]);
      }),
    );
  });
};
