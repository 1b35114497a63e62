/** Conformance: what happened, for people who read it afterwards. */
import { randomBytes, randomUUID } from "node:crypto";
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import { uuidV7 } from "../../../../src/domain/ids.ts";
import { failure } from "../../../../src/domain/session/failure.ts";
import {
  Activity,
  type ActivityEntry,
  type ActivityRequest,
} from "../../../../src/features/activity/ports/activity.ts";
import { ChangeRequests } from "../../../../src/features/change-requests/ports/change-requests.ts";
import { Remarks, type NewRemark } from "../../../../src/features/change-requests/ports/remarks.ts";
import { Reviewers } from "../../../../src/features/change-requests/ports/reviewers.ts";
import { REFUSAL_NEWS_MS } from "../../../../src/store/event-rows.ts";
import { Events, EVENTS_KEPT_MS, NEWS_KEPT_MS } from "../../../../src/store/ports/events.ts";
import { Projects } from "../../../../src/store/ports/projects/projects.ts";
import {
  WebhookRefusals,
  type WebhookRefusal,
} from "../../../../src/store/ports/triggers/webhook-refusals.ts";
import type { Check } from "../fixture.ts";
import { admitOne, admitSession, fired, tellSession } from "../../../support/world/sessions.ts";
import { addPerson, addProject, makeWorld, NOON, type World } from "../../../support/world/world.ts";

/** The owner's list. */
const read = Effect.fnUntraced(function* (world: World, request: Partial<ActivityRequest> = {}) {
  const { list } = yield* Activity;
  const reader = { accountId: world.accountId, userId: null };
  return yield* list(reader, {
    limit: 50,
    cursor: null,
    personId: world.userId,
    isOwn: false,
    projectId: null,
    ...request,
  });
});
const kinds = ({ items }: { readonly items: readonly ActivityEntry[] }) => items.map(({ kind }) => kind);

const unmade = failure("branch_failed", "The branch could not be made.");

const opened = (world: World, by: string) =>
  Effect.flatMap(ChangeRequests, ({ open }) =>
    open({
      id: randomUUID(),
      projectId: world.projectId,
      sessionId: null,
      headRef: "one",
      baseRef: "main",
      title: "Add a button",
      description: "",
      createdBy: by,
      tips: { base: "b0", head: "h0" },
      now: NOON,
    }),
  );

const remark = (requestId: string, createdBy: string, replyTo: string | null = null): NewRemark => ({
  id: randomUUID(),
  requestId,
  kind: "comment",
  body: "Why?",
  commit: "h0",
  place: null,
  replyTo,
  createdBy,
  createdAt: NOON,
});

const refusal = (projectId: string, at: number): WebhookRefusal => ({
  id: uuidV7(at, randomBytes(16)),
  projectId,
  at,
  slug: "on-push",
  status: 401,
  code: "signature_mismatched",
  reason: "signature_mismatched",
  deliveryId: null,
  event: null,
  declaredBytes: null,
  bodyBytes: null,
  address: "192.0.2.7",
  forwardedFor: null,
});

const checkList = (check: Check): void => {
  check(
    "is read page by page, newest first, with the names of what it is about",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const run = fired(world);
      yield* admitOne(world, run);
      const id = yield* admitSession(world);
      yield* tellSession(id, { type: "branch.failed", failure: unmade }, NOON + 5);
      const all = yield* read(world);
      expect(kinds(all)).toEqual(["session.failed", "trigger.fired"]);
      expect(all.items).toMatchObject([
        { at: NOON + 5, session: { id }, isOwn: true, person: null, changeRequest: null },
        {
          project: { id: world.projectId },
          session: { id: run.session.id, triggerSlug: "on-push" },
          isOwn: false,
          data: { fire_id: run.fire?.id },
        },
      ]);
      const first = yield* read(world, { limit: 1 });
      expect(kinds(first)).toEqual(["session.failed"]);
      const own = yield* read(world, { limit: 1, isOwn: true });
      expect([kinds(own), own.nextCursor]).toEqual([["session.failed"], null]);
      const rest = yield* read(world, { limit: 1, cursor: first.nextCursor });
      expect([kinds(rest), rest.nextCursor]).toEqual([["trigger.fired"], null]);
      expect((yield* Effect.flip(read(world, { cursor: "x" })))._tag).toBe("BadCursor");
    }),
  );

  check(
    "says who did what to a change request, and marks the entries of its reader",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const ben = yield* addPerson(world);
      const request = yield* opened(world, world.userId);
      const remarks = yield* Remarks;
      const comment = remark(request.id, ben);
      yield* remarks.add(request, comment);
      yield* remarks.add(request, remark(request.id, world.userId, comment.id));
      yield* (yield* Reviewers).ask(request, { userId: ben, askedBy: world.userId, askedAt: NOON });
      const seenBy = Effect.fnUntraced(function* (personId: string) {
        const { items } = yield* read(world, { personId });
        return items.toReversed().map(({ kind, person, isOwn }) => [kind, person?.id, isOwn]);
      });
      expect(yield* seenBy(world.userId)).toEqual([
        ["change_request.opened", world.userId, true],
        ["change_request.remarked", ben, true],
        ["change_request.remarked", world.userId, true],
        ["change_request.review_requested", world.userId, true],
      ]);
      expect((yield* seenBy(ben)).map(([, , isOwn]) => isOwn)).toEqual([false, false, true, true]);
      expect((yield* read(world)).items[0]?.changeRequest).toEqual({ number: 1, title: "Add a button" });
    }),
  );

  check(
    "has the projects that its reader sees, or one of them",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const other = { ...world, projectId: yield* addProject(world) };
      const ben = yield* addPerson(world);
      yield* (yield* Projects).update(world.projectId, { defaultRole: null }, NOON);
      yield* admitOne(world, fired(world));
      yield* admitOne(other, fired(other));
      const { list } = yield* Activity;
      const ofBen = yield* list(
        { accountId: world.accountId, userId: ben },
        { limit: 9, cursor: null, personId: ben, isOwn: false, projectId: null },
      );
      const projects = ({ items }: typeof ofBen) => items.map(({ project }) => project.id);
      expect(projects(ofBen)).toEqual([other.projectId]);
      expect(projects(yield* read(world, { projectId: world.projectId }))).toEqual([world.projectId]);
      expect(projects(yield* read(world))).toEqual([other.projectId, world.projectId]);
    }),
  );
};

const checkKept = (check: Check): void => {
  check(
    "is kept for 30 days, when other events of the stream are gone",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      yield* admitOne(world, fired(world));
      const { prune, after } = yield* Events;
      const scope = { projectId: world.projectId, sessionId: null, limit: 9 };
      const { cursor } = yield* after({ ...scope, cursor: null });
      yield* prune(NOON + EVENTS_KEPT_MS + 1);
      expect(kinds(yield* read(world))).toEqual(["trigger.fired"]);
      expect((yield* after({ ...scope, cursor })).events).toEqual([]);
      yield* prune(NOON + NEWS_KEPT_MS);
      expect(kinds(yield* read(world))).toEqual(["trigger.fired"]);
      yield* prune(NOON + NEWS_KEPT_MS + 1);
      expect(kinds(yield* read(world))).toEqual([]);
    }),
  );

  check(
    "has refused deliveries once in an hour",
    Effect.gen(function* () {
      const world = yield* makeWorld(5);
      const { projectId } = world;
      const { add } = yield* WebhookRefusals;
      yield* add([refusal(projectId, NOON), refusal(projectId, NOON + 1)]);
      yield* add([refusal(projectId, NOON + REFUSAL_NEWS_MS - 1)]);
      expect((yield* read(world)).items).toMatchObject([
        { at: NOON, data: { trigger_slug: "on-push", code: "signature_mismatched" } },
      ]);
      yield* add([refusal(projectId, NOON + REFUSAL_NEWS_MS)]);
      expect(kinds(yield* read(world))).toEqual(["delivery.refused", "delivery.refused"]);
    }),
  );
};

export const checkActivity = (check: Check): void => {
  describe("what happened", () => {
    checkList(check);
    checkKept(check);
    check(
      "was seen by a person until the latest instant that she said",
      Effect.gen(function* () {
        const world = yield* makeWorld(1);
        const ben = yield* addPerson(world);
        const { see, seenAt } = yield* Activity;
        expect(yield* seenAt(ben)).toBe(null);
        yield* see(ben, NOON + 1);
        yield* see(ben, NOON);
        expect([yield* seenAt(ben), yield* seenAt(world.userId)]).toEqual([NOON + 1, null]);
      }),
    );
  });
};
