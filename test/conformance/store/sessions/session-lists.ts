/** Conformance: lists of sessions with filters, of a project and of an account. */
import { randomUUID } from "node:crypto";
import { describe, expect } from "vitest";
import type { Activity } from "../../../../src/domain/session/session-activity.ts";
import { notSaved } from "../../../../src/domain/save/saved.ts";
import * as Effect from "effect/Effect";
import { Accounts } from "../../../../src/store/ports/people/accounts.ts";
import { Approvals } from "../../../../src/features/approvals/ports/approvals.ts";
import { Conversations } from "../../../../src/store/ports/sessions/conversations.ts";
import {
  type NewSession,
  Sessions,
  type Session,
  type SessionFilter,
} from "../../../../src/store/ports/sessions/sessions.ts";
import { People } from "../../../../src/store/ports/people/people.ts";
import { Projects } from "../../../../src/store/ports/projects/projects.ts";
import type { Page } from "../../../../src/store/ports/page.ts";
import { type Check } from "../fixture.ts";
import { asked } from "../../../support/world/approvals.ts";
import { converse, report } from "../../../support/world/conversations.ts";
import { admitOne, tellSession, wish } from "../../../support/world/sessions.ts";
import { addPerson, addProject, makeWorld, NOON, type World } from "../../../support/world/world.ts";

/** A session that is made so many seconds after noon. */
const made = Effect.fnUntraced(function* (world: World, second: number, fields: Partial<NewSession>) {
  const request = { ...wish(world, { ...fields, name: fields.name ?? null }), now: NOON + second * 1000 };
  const answer = yield* admitOne(world, request);
  return answer.outcome === "admitted" ? answer.sessionId : yield* Effect.die(answer.outcome);
});

const ids = ({ items }: Page<Session>) => items.map(({ id }) => id);

/** Room for every call of these tests. */
const APPROVALS = { atOnce: 9, perConnector: 99, windowMs: 60_000, openMs: 90_000, open: 9 };

const whole = { limit: 50, cursor: null, status: null };
const labels = ({ items }: Page<Session>) =>
  items.map(({ name, triggerSlug, initialPrompt }) => name ?? triggerSlug ?? initialPrompt);

/** Five sessions: two of people with names, two of triggers, one with a prompt alone. */
const fiveSessions = Effect.gen(function* () {
  const world = yield* makeWorld(10);
  yield* made(world, 1, { name: "100% of the Docs", initialPrompt: "secret word" });
  const failed = yield* made(world, 2, { triggerSlug: "nightly", origin: "trigger" });
  yield* made(world, 3, { triggerSlug: "on-push", origin: "trigger" });
  yield* made(world, 4, { initialPrompt: `Tidy the docs.${" ".repeat(200)}late word` });
  const stopped = yield* made(world, 5, { name: "old_name" });
  const failure = { code: "branch_failed", message: "git said no" } as const;
  yield* tellSession(failed, { type: "branch.failed", failure });
  yield* tellSession(stopped, { type: "stop.requested" });
  const { list } = yield* Sessions;
  const find = (filter: Partial<SessionFilter>) =>
    Effect.map(list(world.projectId, { ...whole, ...filter }), labels);
  return { world, find };
});

/** A second account with a project. */
const anotherWorld = Effect.gen(function* () {
  const [accountId, userId] = [randomUUID(), randomUUID()];
  const accounts = yield* Accounts;
  yield* accounts.create({ id: accountId, name: "other", tier: "free", cap: 5, now: NOON });
  yield* accounts.createUser({ id: userId, accountId, name: "other", role: "owner", now: NOON });
  return { accountId, userId, tokenHash: "", projectId: yield* addProject({ accountId, userId }) };
});

const turn = (state: "requires_action" | "running") => ({ turn: { state, waiting_for: null } });

export const checkSessionLists = (check: Check): void => {
  describe("a list of sessions", () => {
    check(
      "have archived sessions or others, and one that failed since is not archived",
      Effect.gen(function* () {
        const { world, find } = yield* fiveSessions;
        const { list, rename } = yield* Sessions;
        const { items } = yield* list(world.projectId, whole);
        const away = (label: string, archivedAt: number | null) =>
          rename(items.find(({ name, triggerSlug }) => label === (name ?? triggerSlug))?.id ?? "", {
            archivedAt,
            now: NOON,
          });
        yield* away("old_name", NOON + 60_000);
        yield* away("nightly", NOON - 60_000);
        // It starts, and cannot be put away.
        yield* away("on-push", NOON + 60_000);
        expect(yield* find({ archived: true })).toEqual(["old_name"]);
        expect(yield* find({ archived: false })).toHaveLength(4);
        yield* away("old_name", null);
        expect(yield* find({ archived: true })).toEqual([]);
      }),
    );

    check(
      "say until when their reader has seen each session",
      Effect.gen(function* () {
        const world = yield* makeWorld(3);
        const id = yield* made(world, 1, { name: "one" });
        const { list, see } = yield* Sessions;
        const seen = (reader?: string) =>
          Effect.map(list(world.projectId, { ...whole, reader }), (page) => page.items[0]?.seenAt);
        // Before she came, nothing is news to her.
        expect([yield* seen(), yield* seen(world.userId)]).toEqual([null, NOON]);
        yield* see(id, { userId: world.userId, at: NOON + 5000 });
        yield* see(id, { userId: world.userId, at: NOON + 2000 });
        expect(yield* seen(world.userId)).toBe(NOON + 5000);
        expect(yield* seen(yield* addPerson(world))).toBe(NOON);
      }),
    );

    check(
      "is narrowed by status, by the trigger, and by who started them",
      Effect.gen(function* () {
        const { world, find } = yield* fiveSessions;
        const [tidy] = yield* find({ search: "tidy" });
        expect(yield* find({ status: "failed" })).toEqual(["nightly"]);
        expect(yield* find({ status: "stopped" })).toEqual(["old_name"]);
        expect(yield* find({ triggerSlug: "on-push" })).toEqual(["on-push"]);
        expect(yield* find({ startedBy: "trigger" })).toEqual(["on-push", "nightly"]);
        expect(yield* find({ startedBy: "person" })).toEqual(["old_name", tidy, "100% of the Docs"]);
        expect(yield* find({ startedBy: "trigger", status: "failed" })).toEqual(["nightly"]);
        expect(yield* find({ createdBy: world.userId, startedBy: "trigger" })).toHaveLength(2);
        expect(yield* find({ createdBy: world.projectId })).toEqual([]);
      }),
    );

    check(
      "finds a part of what stands for a session's name, as text and not as a pattern",
      Effect.gen(function* () {
        const { find } = yield* fiveSessions;
        expect(yield* find({ search: "DOCS" })).toHaveLength(2);
        expect(yield* find({ search: "0% of" })).toEqual(["100% of the Docs"]);
        expect(yield* find({ search: "%" })).toEqual(["100% of the Docs"]);
        expect(yield* find({ search: "_" })).toEqual(["old_name"]);
        expect(yield* find({ search: "\\" })).toEqual([]);
        expect(yield* find({ search: "push" })).toEqual(["on-push"]);
        // A session with a name is not found by its prompt, and no prompt by its end.
        expect(yield* find({ search: "secret word" })).toEqual([]);
        expect(yield* find({ search: "late word" })).toEqual([]);
      }),
    );

    check(
      "tells which agents work, rest, and wait for a person, among live sessions",
      Effect.gen(function* () {
        const world = yield* makeWorld(10);
        const { note } = yield* Conversations;
        const { list } = yield* Sessions;
        const [asks, works] = [yield* converse(world), yield* converse(world)];
        const rests = yield* made(world, 1, {});
        const ended = yield* made(world, 2, {});
        yield* tellSession(ended, { type: "stop.requested" });
        yield* note(asks.sessionId, report(asks.sandboxId, 1, turn("requires_action")));
        yield* note(works.sessionId, report(works.sandboxId, 1, turn("running")));
        const find = (filter: Partial<SessionFilter>) =>
          Effect.map(list(world.projectId, { ...whole, ...filter }), ({ items }) =>
            items.map(({ id }) => id),
          );
        expect(yield* find({ turn: "requires_action" })).toEqual([asks.sessionId]);
        expect(yield* find({ turn: "running" })).toEqual([works.sessionId]);
        expect(yield* find({ turn: "idle" })).toEqual([rests]);
        expect(yield* find({ turn: "requires_action", status: "stopped" })).toEqual([]);
        // An idle session whose work cannot be saved waits for a person too.
        yield* tellSession(works.sessionId, { type: "idle.elapsed" });
        const unsaved = { since: NOON, tries: 1, nextAt: NOON + 60_000 };
        const { sandboxId } = works;
        yield* tellSession(works.sessionId, {
          type: "sandbox.kept",
          order: "pause",
          sandboxId,
          saved: notSaved("no"),
          unsaved,
        });
        const waiting = yield* find({ turn: "requires_action" });
        expect(waiting.toSorted()).toEqual([works.sessionId, asks.sessionId].toSorted());
      }),
    );

    check(
      "has those, also ended ones, with a call that waits for an approval which the reader may give",
      Effect.gen(function* () {
        const world = yield* makeWorld(10);
        const { list, listForReader, shown } = yield* Sessions;
        const approvals = yield* Approvals;
        const [live, ended] = [yield* made(world, 1, {}), yield* made(world, 2, {})];
        yield* made(world, 3, {});
        const calls = [asked(world, { sessionId: live }), asked(world, { sessionId: ended })];
        for (const one of calls) yield* approvals.ask(one, APPROVALS);
        yield* tellSession(ended, { type: "stop.requested" });
        const filter = { ...whole, turn: "requires_action", mayApprove: true } as const;
        const inProject = Effect.map(list(world.projectId, filter), ids);
        const { accountId, projectId } = world;
        const seenBy = (userId: string | null) =>
          Effect.map(listForReader({ accountId, userId }, filter), ids);
        expect(yield* inProject).toEqual([ended, live]);
        expect(ids(yield* list(projectId, { ...filter, mayApprove: false }))).toEqual([]);
        expect(ids(yield* list(projectId, { ...filter, status: "stopped" }))).toEqual([ended]);
        yield* (yield* Projects).update(projectId, { defaultRole: null }, NOON);
        const [viewer, member] = [randomUUID(), randomUUID()];
        for (const [id, role] of [
          [viewer, "viewer"],
          [member, "member"],
        ] as const) {
          yield* (yield* Accounts).createUser({ id, accountId, name: role, role: "member", now: NOON });
          yield* (yield* People).grant({ projectId, userId: id, role, now: NOON });
        }
        expect(yield* seenBy(null)).toEqual([ended, live]);
        expect(yield* seenBy(member)).toEqual([ended, live]);
        expect(yield* seenBy(viewer)).toEqual([]);
        expect((yield* shown(live))?.pendingApprovals).toBe(1);
        const given = { type: "approval.given", by: world.userId, now: NOON + 1 } as const;
        yield* approvals.move(calls[0]?.call.id ?? "", given);
        expect(yield* inProject).toEqual([ended]);
        expect((yield* shown(live))?.pendingApprovals).toBe(0);
      }),
    );

    check(
      "is narrowed to activities, page by page, with ended sessions whose calls wait among those that need a person",
      Effect.gen(function* () {
        const world = yield* makeWorld(10);
        const { list, listForReader } = yield* Sessions;
        const [waits, first, starts, stopped] = [
          yield* made(world, 1, {}),
          yield* made(world, 2, {}),
          yield* made(world, 3, {}),
          yield* made(world, 4, {}),
        ];
        yield* (yield* Approvals).ask(asked(world, { sessionId: waits }), APPROVALS);
        for (const id of [waits, stopped]) yield* tellSession(id, { type: "stop.requested" });
        const find = (activities: readonly Activity[], fields: Partial<SessionFilter> = {}) =>
          Effect.map(list(world.projectId, { ...whole, ...fields, activities }), ids);
        expect(yield* find(["needs_you"])).toEqual([waits]);
        expect(yield* find(["starting", "working"])).toEqual([starts, first]);
        expect(yield* find(["asleep"])).toEqual([stopped]);
        expect(yield* find(["asleep"], { status: "running" })).toEqual([]);
        expect(yield* find([])).toEqual([]);
        const reader = { accountId: world.accountId, userId: null };
        const activities: readonly Activity[] = ["needs_you", "starting"];
        const page = yield* listForReader(reader, { ...whole, activities, limit: 2 });
        expect(ids(page)).toEqual([starts, first]);
        const next = yield* listForReader(reader, {
          ...whole,
          activities,
          limit: 2,
          cursor: page.nextCursor,
        });
        expect(ids(next)).toEqual([waits]);
        expect(next.nextCursor).toBe(null);
      }),
    );

    check(
      "of an account has the sessions of all its projects, and of no other account",
      Effect.gen(function* () {
        const world = yield* makeWorld(10);
        const second = { ...world, projectId: yield* addProject(world) };
        const other = yield* anotherWorld;
        yield* made(world, 1, { name: "first" });
        yield* made(second, 2, { name: "second" });
        yield* made(other, 3, { name: "another" });
        const { list, listForReader } = yield* Sessions;
        expect(labels(yield* listForReader({ accountId: world.accountId, userId: null }, whole))).toEqual([
          "second",
          "first",
        ]);
        expect(
          labels(
            yield* listForReader({ accountId: world.accountId, userId: null }, { ...whole, search: "sec" }),
          ),
        ).toEqual(["second"]);
        expect(labels(yield* list(second.projectId, whole))).toEqual(["second"]);
        const { nextCursor } = yield* listForReader(
          { accountId: world.accountId, userId: null },
          { ...whole, limit: 1 },
        );
        expect(
          labels(
            yield* listForReader(
              { accountId: world.accountId, userId: null },
              { ...whole, cursor: nextCursor },
            ),
          ),
        ).toEqual(["first"]);
      }),
    );

    check(
      "looks at a bounded number of sessions, and continues where it stopped",
      Effect.gen(function* () {
        const { world } = yield* fiveSessions;
        const { list } = yield* Sessions;
        const pages: unknown[] = [];
        let cursor: string | null = null;
        do {
          const page: Page<Session> = yield* list(world.projectId, {
            ...whole,
            cursor,
            search: "docs",
            lookedAt: 2,
          });
          pages.push(labels(page).map((label) => label?.slice(0, 9)));
          cursor = page.nextCursor;
        } while (cursor !== null);
        // Of five: the two newest, the next two, and the oldest.
        expect(pages).toEqual([["Tidy the "], [], ["100% of t"]]);
        // Live sessions are found however old they are.
        const live = yield* list(world.projectId, { ...whole, turn: "idle", lookedAt: 3 });
        expect(live.items).toHaveLength(3);
      }),
    );
  });
};
