/** Conformance: events that exist for receivers outside, each written with the fact that it tells. */
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import * as Schedule from "effect/Schedule";
import { Conversations } from "../../../../src/store/ports/sessions/conversations.ts";
import { Events } from "../../../../src/store/ports/events.ts";
import { Projects } from "../../../../src/store/ports/projects/projects.ts";
import type { Check } from "../fixture.ts";
import { converse, itemsOf, nativeItem, report } from "../../../support/world/conversations.ts";
import { endOf } from "../../../support/world/outbound.ts";
import { admitOne, admitSession, fired } from "../../../support/world/sessions.ts";
import { makeWorld, NOON, type World } from "../../../support/world/world.ts";

/** The events of one type after a place, when another event has followed them. */
const eventsOf = Effect.fnUntraced(function* (world: World, start: string, type: string) {
  yield* (yield* Projects).recordManifest(world.projectId, {
    commit: "end",
    good: null,
    failure: { message: "the end", path: null, line: null },
    now: NOON + 99,
  });
  const { after } = yield* Events;
  const { events } = yield* Effect.repeat(
    after({ projectId: world.projectId, sessionId: null, cursor: start, limit: 500 }),
    {
      until: (read) =>
        read.events.some(({ type: found, at }) => found === "manifest.stale" && at === NOON + 99),
      schedule: Schedule.spaced("10 millis"),
    },
  );
  return events.filter((event) => event.type === type && event.at !== NOON + 99);
});

const plans = (id: string, rev: number) =>
  nativeItem(id, rev, {
    kind: "request",
    status: "pending",
    request: { kind: "plan", title: "Plan", patterns: [], always: [], questions: [] },
  });
const asks = (id: string, rev: number, status: "pending" | "completed") =>
  nativeItem(id, rev, { kind: "request", status });
const good = (commit: string) => ({
  commit,
  good: { commit, text: "", agents: [], bringsModel: null, environment: null },
  failure: null,
  now: NOON,
});
const bad = (commit: string, now: number) => ({
  commit,
  good: null,
  failure: { message: `broken at ${commit}`, path: null, line: 1 },
  now,
});

export const checkOutboundEvents = (check: Check): void => {
  describe("events for receivers", () => {
    check(
      "say once that the agent asks a person, and not that it answered or asked long ago",
      Effect.gen(function* () {
        const world = yield* makeWorld(9);
        const { sessionId, sandboxId } = yield* converse(world);
        const start = yield* endOf(world.projectId);
        const { note } = yield* Conversations;
        const noted = yield* note(sessionId, report(sandboxId, 1, { items: [asks("q1", 1, "pending")] }));
        yield* note(sessionId, report(sandboxId, 2, { items: [asks("q1", 2, "pending")] }));
        yield* note(sessionId, report(sandboxId, 3, { items: [asks("q1", 3, "completed")] }));
        yield* note(sessionId, report(sandboxId, 4, { items: [asks("q2", 4, "completed")] }));
        yield* note(sessionId, report(sandboxId, 5, { items: [nativeItem("m1", 5)] }));
        const planned = yield* note(sessionId, report(sandboxId, 6, { items: [plans("p1", 6)] }));
        const [[question], [plan]] = [itemsOf(noted), itemsOf(planned)];
        expect(yield* eventsOf(world, start, "session.waiting")).toMatchObject([
          { sessionId, at: NOON, data: { request_id: question?.id, reason: "question" } },
          { sessionId, at: NOON, data: { request_id: plan?.id, reason: "plan" } },
        ]);
      }),
    );

    check(
      "say that a fire took the last place of the queue, each time that it fills",
      Effect.gen(function* () {
        const world = yield* makeWorld(1);
        const start = yield* endOf(world.projectId);
        yield* admitSession(world);
        const wishes = [1, 2, 3].map(() => fired(world, { queueMax: 2 }));
        const outcomes: string[] = [];
        for (const wish of wishes) outcomes.push((yield* admitOne(world, wish)).outcome);
        expect(outcomes).toEqual(["queued", "queued", "queue_full"]);
        expect(yield* eventsOf(world, start, "queue.full")).toMatchObject([
          {
            sessionId: null,
            at: NOON,
            data: { fire_id: wishes[1]?.fire?.id, trigger_slug: "on-push", limit: 2 },
          },
        ]);
      }),
    );

    check(
      "say that the manifest cannot be read, once until it could be read again",
      Effect.gen(function* () {
        const world = yield* makeWorld(1);
        const { projectId } = world;
        const start = yield* endOf(projectId);
        const { recordManifest } = yield* Projects;
        yield* recordManifest(projectId, good("c1"));
        yield* recordManifest(projectId, bad("c2", NOON + 2));
        yield* recordManifest(projectId, bad("c2", NOON + 3));
        yield* recordManifest(projectId, bad("c3", NOON + 4));
        yield* recordManifest(projectId, good("c4"));
        yield* recordManifest(projectId, bad("c5", NOON + 5));
        yield* recordManifest(projectId, good("c6"));
        const told = yield* eventsOf(world, start, "manifest.stale");
        expect(told.map(({ at, data }) => [at, data])).toEqual([
          [NOON + 2, { commit: "c2" }],
          [NOON + 5, { commit: "c5" }],
        ]);
      }),
    );
  });
};
