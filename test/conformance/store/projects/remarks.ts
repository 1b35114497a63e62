/** Conformance: what people say of change requests. */
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import * as Schedule from "effect/Schedule";
import { describe, expect } from "vitest";
import {
  ChangeRequests,
  type ChangeRequest,
} from "../../../../src/features/change-requests/ports/change-requests.ts";
import { Remarks, type NewRemark } from "../../../../src/features/change-requests/ports/remarks.ts";
import { Reviewers, REVIEWERS_MAX } from "../../../../src/features/change-requests/ports/reviewers.ts";
import { Events } from "../../../../src/store/ports/events.ts";
import { People } from "../../../../src/store/ports/people/people.ts";
import { Projects } from "../../../../src/store/ports/projects/projects.ts";
import type { Check } from "../fixture.ts";
import { tellRequest } from "../../../support/world/change-requests.ts";
import { addPerson, makeWorld, NOON } from "../../../support/world/world.ts";

const opened = Effect.fnUntraced(function* () {
  const world = yield* makeWorld(3);
  const { open } = yield* ChangeRequests;
  const request = yield* open({
    id: randomUUID(),
    projectId: world.projectId,
    sessionId: null,
    headRef: "one",
    baseRef: "main",
    title: "Add a button",
    description: "",
    createdBy: world.userId,
    tips: { base: "b0", head: "h0" },
    now: NOON,
  });
  const said = (fields: Partial<NewRemark> = {}): NewRemark => ({
    id: randomUUID(),
    requestId: request.id,
    kind: "comment",
    body: "Why?",
    commit: "h0",
    place: null,
    replyTo: null,
    createdBy: world.userId,
    createdAt: NOON,
    ...fields,
  });
  return { world, request, said };
});

/** @returns reads what a project tells of reviewers from now on, once it is so many events */
const toldOf = Effect.fnUntraced(function* (projectId: string) {
  const { after } = yield* Events;
  const read = (cursor: string | null) => after({ projectId, sessionId: null, cursor, limit: 100 });
  const { cursor } = yield* read(null);
  return (count: number) =>
    read(cursor).pipe(
      Effect.map(({ events }) => events.filter(({ type }) => type === "change_request.review_requested")),
      // A commit becomes visible when no older transaction runs on the server, including other tests'.
      Effect.repeat({ until: (events) => events.length === count, schedule: Schedule.spaced("10 millis") }),
      Effect.map((events) => events.map(({ data }) => data)),
    );
});

const all = (request: ChangeRequest) =>
  Effect.flatMap(Remarks, ({ list }) => list(request.id, { limit: 50, cursor: null }));

export const checkRemarks = (check: Check): void => {
  describe("what people say of a change request", () => {
    check(
      "is listed in order, page by page, with answers and resolutions",
      Effect.gen(function* () {
        const { world, request, said } = yield* opened();
        const { add, edit, resolve, list, remove, get } = yield* Remarks;
        const place = { file: "a.ts", side: "head", firstLine: 3, lastLine: 5 } as const;
        const first = said({ place });
        const answer = said({ replyTo: first.id, createdAt: NOON + 1, body: "Because." });
        expect(yield* add(request, first)).toMatchObject({ ...first, editedAt: null, resolved: null });
        yield* add(request, answer);
        const page = yield* list(request.id, { limit: 1, cursor: null });
        expect(page.items.map(({ id }) => id)).toEqual([first.id]);
        const next = yield* list(request.id, { limit: 1, cursor: page.nextCursor });
        expect([next.items.map(({ id }) => id), next.nextCursor]).toEqual([[answer.id], null]);

        // Only to a remark of this request, and not to an answer.
        expect(yield* add(request, said({ replyTo: answer.id }))).toBeNull();
        expect(yield* add(request, said({ replyTo: randomUUID() }))).toBeNull();

        expect(yield* edit(request, first.id, { body: "How?", at: NOON + 2 })).toMatchObject({
          body: "How?",
          editedAt: NOON + 2,
        });
        const by = world.userId;
        expect(yield* resolve(request, first.id, { by, at: NOON + 3 })).toMatchObject({
          resolved: { by, at: NOON + 3 },
        });
        expect(yield* resolve(request, first.id, { by: null, at: NOON + 4 })).toMatchObject({
          resolved: null,
        });
        expect(yield* edit(request, randomUUID(), { body: "x", at: NOON })).toBeNull();
        expect(yield* get(request.id, first.id)).toMatchObject({ body: "How?", place });

        expect(yield* remove(request, first.id, NOON + 5)).toBe(true);
        expect((yield* all(request)).items).toEqual([]);
        expect(yield* remove(request, first.id, NOON + 6)).toBe(false);
      }),
    );

    check(
      "has each person's newest verdict",
      Effect.gen(function* () {
        const { world, request, said } = yield* opened();
        const { add, verdicts } = yield* Remarks;
        const other = yield* addPerson(world);
        yield* add(request, said({ kind: "approval", createdAt: NOON }));
        yield* add(request, said({ kind: "changes_requested", createdAt: NOON + 1 }));
        yield* add(request, said({ kind: "approval", createdBy: other, createdAt: NOON + 2, commit: "h1" }));
        yield* add(request, said({ createdAt: NOON + 3 }));
        const name: unknown = expect.any(String);
        const owners = { kind: "changes_requested", by: world.userId, name, at: NOON + 1, commit: "h0" };
        const others = { kind: "approval", by: other, name, at: NOON + 2, commit: "h1" };
        expect(yield* verdicts(request.id)).toEqual([
          { ...owners, isActive: true, role: "owner" },
          { ...others, isActive: true, role: "member" },
        ]);
        const change = { defaultRole: "viewer" } as const;
        yield* (yield* Projects).update(world.projectId, change, NOON + 4);
        yield* (yield* People).deactivate(world.accountId, other, NOON + 4);
        expect((yield* verdicts(request.id))[1]).toEqual({ ...others, isActive: false, role: "viewer" });
      }),
    );

    check(
      "has the people who are asked for a review, at most so many, and tells each time",
      Effect.gen(function* () {
        const { world, request } = yield* opened();
        const { ask, list, withdraw } = yield* Reviewers;
        const told = yield* toldOf(world.projectId);
        const [ben, other] = [yield* addPerson(world), yield* addPerson(world)];
        const asked = (userId: string, askedAt: number) => ({ userId, askedBy: world.userId, askedAt });
        expect(yield* ask(request, asked(ben, NOON + 1))).toEqual({
          ...asked(ben, NOON + 1),
          name: "Ben",
          hasSpoken: false,
        });
        yield* ask(request, asked(other, NOON + 2));
        yield* ask(request, asked(ben, NOON + 3));
        const order = Effect.map(list(request.id), (rows) =>
          rows.map(({ userId, askedAt }) => [userId, askedAt]),
        );
        expect(yield* order).toEqual([
          [other, NOON + 2],
          [ben, NOON + 3],
        ]);
        expect([
          yield* withdraw(request, other, NOON + 4),
          yield* withdraw(request, other, NOON + 5),
        ]).toEqual([true, false]);
        for (let at = 1; at < REVIEWERS_MAX; at += 1)
          yield* ask(request, asked(yield* addPerson(world), NOON + 5));
        expect(yield* ask(request, asked(other, NOON + 6))).toBeNull();
        expect(yield* ask(request, asked(ben, NOON + 7))).toMatchObject({ askedAt: NOON + 7 });
        expect(yield* list(request.id)).toHaveLength(REVIEWERS_MAX);
        // Three before the others, each of those once, and one at the end.
        expect((yield* told(3 + REVIEWERS_MAX))[0]).toEqual({
          number: 1,
          status: "open",
          reviewer_id: ben,
          reviewer_name: "Ben",
          asked_by: world.userId,
        });
      }),
    );

    check(
      "is listed for each person that it waits for, until she says something, or it has ended",
      Effect.gen(function* () {
        const { world, request, said } = yield* opened();
        const { add } = yield* Remarks;
        const { ask, list: reviewers } = yield* Reviewers;
        const { list, listForReader } = yield* ChangeRequests;
        const [ben, other] = [yield* addPerson(world), yield* addPerson(world)];
        const { projectId, accountId } = world;
        const owes = (reader: string) =>
          Effect.map(
            listForReader(
              { accountId, userId: null },
              { limit: 9, cursor: null, status: null, reader, isReviewAsked: true },
            ),
            ({ items }) => items.map(({ id, reviewAsked }) => [id, reviewAsked]),
          );
        const asked = { by: world.userId, name: expect.any(String), at: NOON + 1 };
        yield* add(request, said({ createdBy: ben }));
        yield* ask(request, { userId: ben, askedBy: world.userId, askedAt: NOON + 1 });
        expect(yield* owes(ben)).toEqual([[request.id, asked]]);
        expect(yield* owes(other)).toEqual([]);
        const seen = yield* list(projectId, { limit: 9, cursor: null, status: "open", reader: other });
        expect(seen.items).toEqual([{ ...request, reviewAsked: null }]);
        yield* add(request, said({ createdBy: ben, createdAt: NOON + 1 }));
        expect(yield* owes(ben)).toEqual([]);
        expect(yield* reviewers(request.id)).toMatchObject([{ hasSpoken: true }]);
        yield* ask(request, { userId: ben, askedBy: world.userId, askedAt: NOON + 2 });
        expect(yield* owes(ben)).toHaveLength(1);
        yield* tellRequest(request.id, { type: "close.requested" });
        expect(yield* owes(ben)).toEqual([]);
      }),
    );

    check(
      "and its own texts can be changed",
      Effect.gen(function* () {
        const { request } = yield* opened();
        const { edit, get } = yield* ChangeRequests;
        const { projectId, number } = request;
        expect(yield* edit(projectId, number, { title: "Add two", now: NOON + 1 })).toEqual({
          ...request,
          title: "Add two",
          updatedAt: NOON + 1,
        });
        expect(yield* edit(projectId, 99, { title: "x", now: NOON })).toBeNull();
        expect(yield* get(projectId, number)).toMatchObject({ title: "Add two", description: "" });
      }),
    );
  });
};
