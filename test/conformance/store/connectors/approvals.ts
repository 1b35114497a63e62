/** Conformance: calls that wait for a person. */
import { randomUUID } from "node:crypto";
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import { contentText } from "../../../../src/domain/conversation/conversation.ts";
import { Approvals, type ApprovalMove } from "../../../../src/features/approvals/ports/approvals.ts";
import { Conversations } from "../../../../src/store/ports/sessions/conversations.ts";
import { ExecutorCalls, type NewCall } from "../../../../src/store/ports/connectors/executor-calls.ts";
import { asked, DAY } from "../../../support/world/approvals.ts";
import { converse } from "../../../support/world/conversations.ts";
import { endOf } from "../../../support/world/outbound.ts";
import { addProject, makeWorld, NOON, type World } from "../../../support/world/world.ts";
import { followSession, type Check } from "../fixture.ts";

const LIMITS = { atOnce: 1, perConnector: 3, windowMs: 60_000, openMs: 90_000, open: 2 };

const ended = (now: number): ApprovalMove => ({
  type: "call.ended",
  outcome: "ok",
  message: null,
  upstreamStatus: 200,
  resultBytes: 7,
  sealedResult: Uint8Array.from([3]),
  now,
});

const bytes = (envelope: Uint8Array | null | undefined) => (envelope == null ? null : [...envelope]);

const ids = (...some: readonly (string | undefined)[]) => some.toSorted();

/** Asks, and approves. @returns the id */
const approved = Effect.fnUntraced(function* (world: World, fields: Partial<NewCall> = {}) {
  const approvals = yield* Approvals;
  const one = asked(world, fields);
  expect(yield* approvals.ask(one, LIMITS)).toEqual({ id: one.call.id, isNew: true });
  const given = { type: "approval.given", by: world.userId, now: NOON + 1 } as const;
  expect((yield* approvals.move(one.call.id, given))?.status).toBe("approved");
  return one.call.id;
});

const checkAsking = (check: Check): void => {
  check(
    "have their row in the record, and an event, when they are asked for",
    Effect.gen(function* () {
      const world = yield* makeWorld(1);
      const { projectId } = world;
      const approvals = yield* Approvals;
      const one = asked(world);
      const { id, sessionId } = one.call;
      const follow = yield* followSession({ projectId, sessionId }, "approval.waiting");
      yield* approvals.ask(one, LIMITS);
      const found = yield* approvals.find(projectId, id);
      expect(found).toMatchObject({ id, status: "pending", expiresAt: NOON + DAY, deliveredAt: null });
      expect(bytes(found?.sealedArguments)).toEqual([1, 2]);
      expect(found?.call).toMatchObject({ ...one.call, outcome: "pending", endedAt: null, begunAt: null });
      expect(yield* approvals.find(yield* addProject(world), id)).toBeNull();
      const { items } = yield* (yield* ExecutorCalls).list(projectId, { limit: 9, cursor: null });
      expect(items).toEqual([found?.call]);
      const [event] = yield* follow(1);
      expect(event?.data).toEqual({ approval_id: id, connector: "docs", tool: "delete" });
    }),
  );

  check(
    "are told in their conversation, with the person who decided",
    Effect.gen(function* () {
      const world = yield* makeWorld(9);
      const approvals = yield* Approvals;
      const { sessionId } = yield* converse(world);
      const limits = { ...LIMITS, open: 9, perConnector: 99 };
      const moves: readonly ApprovalMove[] = [
        { type: "approval.given", by: world.userId, now: NOON + 1 },
        { type: "denial.given", by: world.userId, reason: "Not today.", now: NOON + 2 },
        { type: "deadline.passed", now: NOON + DAY },
      ];
      for (const [index, move] of moves.entries()) {
        const one = asked(world, { sessionId, argumentsDigest: String(index) });
        yield* approvals.ask(one, limits);
        expect(yield* approvals.move(one.call.id, move)).not.toBeNull();
        expect(yield* approvals.move(one.call.id, move)).toBeNull();
      }
      const page = yield* (yield* Conversations).page(sessionId, { before: null, limit: 99 });
      const notes = page?.items.filter(({ kind }) => kind === "note").toReversed() ?? [];
      const call = "the call of delete of the connector docs";
      const waits = ["platform", `A person must approve ${call}.`];
      expect(notes.map(({ author, content }) => [author?.name, contentText(content)])).toEqual([
        waits,
        ["admin", `admin approved ${call}.`],
        waits,
        ["admin", `admin denied ${call}. The reason: Not today.`],
        waits,
        ["platform", `No person decided in time on ${call}. It expired.`],
      ]);
      expect(notes[1]).toMatchObject({ status: "completed", createdAt: NOON + 1 });
      expect(notes[1]?.author).toMatchObject({ kind: "user", userId: world.userId });
    }),
  );

  check(
    "are joined by the same call until its result is delivered, and by no other call",
    Effect.gen(function* () {
      const world = yield* makeWorld(1);
      const approvals = yield* Approvals;
      const limits = { ...LIMITS, open: 9, perConnector: 99 };
      const id = yield* approved(world);
      expect(yield* approvals.ask(asked(world), limits)).toEqual({ id, isNew: false });
      for (const other of [
        { argumentsDigest: "1".repeat(64) },
        { tool: "other" },
        { pin: "q" },
        { sessionId: randomUUID() },
      ])
        expect(yield* approvals.ask(asked(world, other), limits)).toMatchObject({ isNew: true });
      yield* approvals.begin(id, { limits: LIMITS, now: NOON + 2 });
      yield* approvals.move(id, ended(NOON + 3));
      expect(yield* approvals.ask(asked(world), limits)).toEqual({ id, isNew: false });
      yield* approvals.move(id, { type: "result.delivered", now: NOON + 4 });
      expect(yield* approvals.ask(asked(world), limits)).toMatchObject({ isNew: true });
    }),
  );

  check(
    "are refused over the limit of a session, until one of them is decided",
    Effect.gen(function* () {
      const world = yield* makeWorld(1);
      const approvals = yield* Approvals;
      const ask = (digest: string) => approvals.ask(asked(world, { argumentsDigest: digest }), LIMITS);
      const all = yield* Effect.forEach(["1", "2", "3", "4"], ask, { concurrency: "unbounded" });
      expect(all.filter((answer) => answer === "session_full")).toHaveLength(2);
      const [held] = all.flatMap((answer) => (typeof answer === "string" ? [] : [answer.id]));
      yield* approvals.move(held ?? "", { type: "deadline.passed", now: NOON });
      expect(yield* ask("5")).toMatchObject({ isNew: true });
    }),
  );
};

const checkCalling = (check: Check): void => {
  check(
    "begin once, also if several nodes begin them at the same time",
    Effect.gen(function* () {
      const world = yield* makeWorld(1);
      const approvals = yield* Approvals;
      const id = yield* approved(world);
      const begin = approvals.begin(id, { limits: LIMITS, now: NOON + 2 });
      const begun = yield* Effect.all([begin, begin, begin], { concurrency: "unbounded" });
      expect(begun.toSorted()).toEqual(["begun", "moved", "moved"]);
      expect((yield* approvals.get(id))?.call).toMatchObject({ outcome: null, begunAt: NOON + 2 });
    }),
  );

  check(
    "count by the instant at which they begin, and wait while their session has a call under way",
    Effect.gen(function* () {
      const world = yield* makeWorld(1);
      const approvals = yield* Approvals;
      const calls = yield* ExecutorCalls;
      const first = yield* approved(world, { argumentsDigest: "1" });
      const second = yield* approved(world, { argumentsDigest: "2" });
      const fourth = yield* approved(world, { argumentsDigest: "4", sessionId: randomUUID() });
      const late = NOON + DAY / 2;
      expect(yield* approvals.begin(first, { limits: LIMITS, now: late })).toBe("begun");
      expect(yield* approvals.begin(second, { limits: LIMITS, now: late })).toBe("busy");
      expect(yield* calls.begin(asked(world, { at: late }).call, LIMITS)).toBe("session_busy");
      expect(yield* calls.abandon(late, late)).toBe(0);
      yield* approvals.move(first, ended(late + 1));
      expect(yield* approvals.begin(second, { limits: LIMITS, now: late + 1 })).toBe("begun");
      yield* approvals.move(second, ended(late + 2));
      const third = yield* approved(world, { argumentsDigest: "3", at: late });
      expect(yield* approvals.begin(third, { limits: LIMITS, now: late + 2 })).toBe("begun");
      yield* approvals.move(third, ended(late + 3));
      expect(yield* approvals.begin(fourth, { limits: LIMITS, now: late + 3 })).toBe("busy");
    }),
  );

  check(
    "are settled together with their row in the record, and lose their arguments",
    Effect.gen(function* () {
      const world = yield* makeWorld(1);
      const approvals = yield* Approvals;
      const id = yield* approved(world);
      yield* approvals.begin(id, { limits: LIMITS, now: NOON + 2 });
      const done = yield* approvals.move(id, ended(NOON + 3));
      const read = yield* approvals.get(id);
      expect({ ...read, sealedResult: bytes(read?.sealedResult) }).toEqual({ ...done, sealedResult: [3] });
      expect(done).toMatchObject({ status: "done", sealedArguments: null, movedAt: NOON + 3 });
      expect(bytes(done?.sealedResult)).toEqual([3]);
      expect(done?.call).toMatchObject({
        approver: world.userId,
        outcome: "ok",
        endedAt: NOON + 3,
        upstreamStatus: 200,
        resultBytes: 7,
      });
      expect(yield* approvals.move(id, ended(NOON + 4))).toBeNull();
      const lost = { type: "call.lost", message: "Lost.", upstreamStatus: null, now: NOON + 4 } as const;
      expect(yield* approvals.move(id, lost)).toBeNull();
    }),
  );

  check(
    "are decided once, with an event for each change",
    Effect.gen(function* () {
      const world = yield* makeWorld(1);
      const approvals = yield* Approvals;
      const one = asked(world);
      const { id, projectId, sessionId } = one.call;
      yield* approvals.ask(one, LIMITS);
      yield* endOf(projectId);
      const follow = yield* followSession({ projectId, sessionId }, "approval.changed");
      const by = { by: world.userId, now: NOON + 1 };
      const moves = [
        approvals.move(id, { type: "approval.given", ...by }),
        approvals.move(id, { type: "denial.given", reason: "No.", ...by }),
      ];
      const decided = yield* Effect.all(moves, { concurrency: "unbounded" });
      expect(decided.filter((answer) => answer !== null)).toHaveLength(1);
      const { status } = (yield* approvals.get(id)) ?? {};
      const events = yield* follow(1);
      expect(events.map(({ data }) => data)).toEqual([{ approval_id: id, status, previous: "pending" }]);
    }),
  );
};

export const checkApprovals = (check: Check): void => {
  describe("calls that wait for a person", () => {
    checkAsking(check);
    checkCalling(check);

    check(
      "are due when they are approved, late, lost, or settled without a caller who waits",
      Effect.gen(function* () {
        const world = yield* makeWorld(1);
        const approvals = yield* Approvals;
        const limits = { ...LIMITS, open: 9, perConnector: 99, atOnce: 9 };
        const ask = Effect.fnUntraced(function* (digest: string) {
          const one = asked(world, { argumentsDigest: digest });
          yield* approvals.ask(one, limits);
          return one.call.id;
        });
        const [open, yes, sent, no] = yield* Effect.forEach(["1", "2", "3", "4"], ask);
        const by = { by: world.userId, now: NOON + 1 };
        for (const id of [yes, sent]) yield* approvals.move(id ?? "", { type: "approval.given", ...by });
        yield* approvals.begin(sent ?? "", { limits, now: NOON + 2 });
        yield* approvals.move(no ?? "", { type: "denial.given", reason: null, ...by });
        const due = (now: number, lostBefore: number) =>
          Effect.map(approvals.due(now, lostBefore, 9), (rows) => rows.map(({ id }) => id).toSorted());
        expect(yield* due(NOON + 3, NOON)).toEqual(ids(yes));
        expect(yield* due(NOON + 3, NOON + 3)).toEqual(ids(yes, sent));
        expect(yield* due(NOON + 30_000, NOON)).toEqual(ids(yes, no));
        yield* approvals.attend(no ?? "", NOON + 60_000);
        expect(yield* due(NOON + 30_000, NOON)).toEqual(ids(yes));
        expect(yield* due(NOON + DAY, NOON)).toEqual(ids(yes, no, open));
        yield* approvals.move(no ?? "", { type: "result.delivered", now: NOON + DAY });
        expect(yield* due(NOON + DAY, NOON)).toEqual(ids(yes, open));
        expect(yield* approvals.due(NOON + DAY, NOON, 1)).toHaveLength(1);
      }),
    );

    check(
      "are listed newest first, by session and state, and go with their calls",
      Effect.gen(function* () {
        const world = yield* makeWorld(1);
        const { projectId } = world;
        const approvals = yield* Approvals;
        const other = randomUUID();
        const limits = { ...LIMITS, open: 9, perConnector: 99 };
        const all = [1, 2, 3].map((n) => asked(world, { at: NOON + n, argumentsDigest: String(n) }));
        const apart = asked(world, { sessionId: other });
        for (const one of [...all, apart]) yield* approvals.ask(one, limits);
        const [first, second, third] = all.map(({ call }) => call.id);
        const page = yield* approvals.list(projectId, { limit: 2, cursor: null });
        expect(page.items.map(({ id }) => id)).toEqual([third, second]);
        const rest = yield* approvals.list(projectId, { limit: 2, cursor: page.nextCursor });
        expect(rest.items.map(({ id }) => id)).toEqual([first, apart.call.id]);
        yield* approvals.move(third ?? "", { type: "deadline.passed", now: NOON + 9 });
        const listed = (about: object) =>
          Effect.map(approvals.list(projectId, { limit: 9, cursor: null, ...about }), ({ items }) =>
            items.map(({ id }) => id),
          );
        expect(yield* listed({ status: "expired" })).toEqual([third]);
        expect(yield* listed({ sessionId: other })).toEqual([apart.call.id]);
        // A call that waits stays, however short the record is kept.
        expect(yield* (yield* ExecutorCalls).prune(NOON + DAY)).toBe(1);
        expect(yield* listed({})).toEqual([second, first, apart.call.id]);
      }),
    );

    check(
      "lose a result some time after it was delivered",
      Effect.gen(function* () {
        const world = yield* makeWorld(1);
        const approvals = yield* Approvals;
        const id = yield* approved(world);
        yield* approvals.begin(id, { limits: LIMITS, now: NOON + 2 });
        yield* approvals.move(id, ended(NOON + 3));
        expect(yield* approvals.pruneResults(NOON + DAY)).toBe(0);
        yield* approvals.move(id, { type: "result.delivered", now: NOON + 4 });
        expect(yield* approvals.pruneResults(NOON + 4)).toBe(0);
        expect(yield* approvals.pruneResults(NOON + 5)).toBe(1);
        expect((yield* approvals.get(id))?.sealedResult).toBeNull();
        expect(yield* approvals.pruneResults(NOON + 5)).toBe(0);
      }),
    );
  });
};
