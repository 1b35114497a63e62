/** Conformance: what people say of change requests. */
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import { describe, expect } from "vitest";
import {
  ChangeRequests,
  type ChangeRequest,
} from "../../src/features/change-requests/ports/change-requests.ts";
import { Remarks, type NewRemark } from "../../src/features/change-requests/ports/remarks.ts";
import type { Check } from "./store-fixture.ts";
import { addPerson, makeWorld, NOON } from "../support/world/world.ts";

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
        expect(yield* verdicts(request.id)).toEqual([
          {
            kind: "changes_requested",
            by: world.userId,
            name: expect.any(String),
            at: NOON + 1,
            commit: "h0",
          },
          { kind: "approval", by: other, name: expect.any(String), at: NOON + 2, commit: "h1" },
        ]);
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
