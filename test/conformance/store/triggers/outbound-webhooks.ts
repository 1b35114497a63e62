/** Conformance: receivers of a project's events, and their places in them. */
import { randomUUID } from "node:crypto";
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import * as Schedule from "effect/Schedule";
import { RECEIVERS_MAX } from "../../../../src/features/notifications/rules/outbound-receiver.ts";
import { Events, EVENTS_KEPT_MS } from "../../../../src/store/ports/events.ts";
import { OutboundDeliveries } from "../../../../src/features/notifications/ports/outbound-deliveries.ts";
import {
  DELIVERIES_WAITING_MAX,
  OutboundWebhooks,
} from "../../../../src/features/notifications/ports/outbound-webhooks.ts";
import type { Check } from "../fixture.ts";
import { addDeliveries, addReceiver, claimAll, endOf } from "../../../support/world/outbound.ts";
import { admitSession } from "../../../support/world/sessions.ts";
import { addProject, makeWorld, NOON } from "../../../support/world/world.ts";

/** A commit becomes visible when no older transaction runs on the server, including other tests'. So readers retry. */
const behindOnce = (expected: number) =>
  Effect.gen(function* () {
    return yield* Effect.repeat((yield* OutboundWebhooks).behind(100), {
      until: (found) => found.length >= expected,
      schedule: Schedule.spaced("10 millis"),
    });
  });

const checkRecords = (check: Check): void => {
  check(
    "are kept as they were added, listed newest first in pages, and of their project only",
    Effect.gen(function* () {
      const world = yield* makeWorld(1);
      const other = yield* addProject(world);
      const { get, list, remove } = yield* OutboundWebhooks;
      const first = yield* addReceiver(world, { events: ["queue.full", "session.failed"], format: "slack" });
      const second = yield* addReceiver(world, { now: NOON + 1 });
      expect(first).toMatchObject({
        format: "slack",
        events: ["queue.full", "session.failed"],
        status: "enabled",
        disabledReason: null,
        failingSince: null,
        previousSecretUntil: null,
        createdAt: NOON,
        sealed: { version: 1 },
      });
      expect(Array.from(first.sealed.envelope)).toEqual([1, 2]);
      const page = yield* list(world.projectId, { limit: 1, cursor: null });
      expect(page.items.map(({ id }) => id)).toEqual([second.id]);
      const next = yield* list(world.projectId, { limit: 1, cursor: page.nextCursor });
      expect([next.items.map(({ id }) => id), next.nextCursor]).toEqual([[first.id], null]);
      expect((yield* list(other, { limit: 9, cursor: null })).items).toEqual([]);
      expect((yield* Effect.flip(list(other, { limit: 1, cursor: "x" })))._tag).toBe("BadCursor");
      expect([yield* get(other, first.id), yield* remove(other, first.id)]).toEqual([null, false]);
      expect(yield* remove(world.projectId, first.id)).toBe(true);
      expect(yield* get(world.projectId, first.id)).toBe(null);
    }),
  );

  check(
    "are no more than a number for each project, also if several are added at once",
    Effect.gen(function* () {
      const world = yield* makeWorld(1);
      const add = Effect.match(addReceiver(world), {
        onSuccess: () => "added",
        onFailure: ({ _tag }) => _tag,
      });
      const outcomes = yield* Effect.all(
        Array.from({ length: RECEIVERS_MAX + 3 }, () => add),
        { concurrency: 4 },
      );
      expect(outcomes.filter((outcome) => outcome === "added")).toHaveLength(RECEIVERS_MAX);
      expect(outcomes.filter((outcome) => outcome === "ReceiversFull")).toHaveLength(3);
      expect((yield* addReceiver({ projectId: yield* addProject(world) })).status).toBe("enabled");
    }),
  );

  check(
    "get other events and secrets, and of two writes of the secrets only the first counts",
    Effect.gen(function* () {
      const { projectId } = yield* makeWorld(1);
      const { id } = yield* addReceiver({ projectId });
      const { change } = yield* OutboundWebhooks;
      const secrets = {
        version: 2,
        envelope: Uint8Array.from([9]),
        shownUrl: "https://other/",
        previousSecretUntil: NOON + 5,
      };
      expect(yield* change({ projectId, id, events: ["queue.full"], now: NOON + 1 })).toMatchObject({
        events: ["queue.full"],
        sealed: { version: 1 },
        updatedAt: NOON + 1,
      });
      const changed = yield* change({ projectId, id, secrets, now: NOON + 2 });
      expect(changed).toMatchObject({
        shownUrl: "https://other/",
        previousSecretUntil: NOON + 5,
        sealed: { version: 2 },
      });
      expect(Array.from(changed?.sealed.envelope ?? [])).toEqual([9]);
      expect((yield* Effect.flip(change({ projectId, id, secrets, now: NOON })))._tag).toBe("Fenced");
      expect(yield* change({ projectId, id: randomUUID(), secrets, now: NOON })).toBe(null);
    }),
  );
};

const checkPlaces = (check: Check): void => {
  check(
    "are behind while their project has later events, and each event is collected once",
    Effect.gen(function* () {
      const world = yield* makeWorld(9);
      const receiver = yield* addReceiver(world, { events: ["session.failed"] });
      const { behind, collect } = yield* OutboundWebhooks;
      expect(yield* behind(9)).toEqual([]);
      yield* admitSession(world);
      const [found] = yield* behindOnce(1);
      expect(found).toMatchObject({
        id: receiver.id,
        projectId: world.projectId,
        events: ["session.failed"],
      });
      expect(found?.projectName).not.toBe("");
      const to = yield* endOf(world.projectId);
      const deliveries = [{ id: randomUUID(), messageId: "evt_1", type: "session.failed", message: "{}" }];
      const moved = {
        projectId: world.projectId,
        id: receiver.id,
        from: found?.cursor ?? "",
        to,
        deliveries,
      };
      const twice = yield* Effect.all([collect({ ...moved, now: NOON }), collect({ ...moved, now: NOON })], {
        concurrency: 2,
      });
      expect(twice.toSorted()).toEqual([false, true]);
      expect(yield* behind(9)).toEqual([]);
      const { list } = yield* OutboundDeliveries;
      expect((yield* list(receiver.id, { limit: 9, cursor: null })).items).toEqual([
        {
          ...deliveries[0],
          webhookId: receiver.id,
          status: "pending",
          tries: 0,
          dueAt: NOON,
          lastTry: null,
          createdAt: NOON,
          endedAt: null,
        },
      ]);
    }),
  );

  check(
    "keep the events that they have yet to read, unless they are disabled [O02]",
    Effect.gen(function* () {
      const world = yield* makeWorld(9);
      const receiver = yield* addReceiver(world);
      const { after, prune } = yield* Events;
      const start = yield* endOf(world.projectId);
      yield* admitSession(world);
      yield* behindOnce(1);
      const read = Effect.map(
        after({ projectId: world.projectId, sessionId: null, cursor: start, limit: 9 }),
        ({ events, reset }) => [events.length, reset],
      );
      const late = NOON + EVENTS_KEPT_MS + 1;
      yield* prune(late);
      expect(yield* read).toEqual([1, false]);
      yield* (yield* OutboundWebhooks).disable(world.projectId, receiver.id, {
        reason: "requested",
        now: late,
      });
      yield* prune(late);
      expect(yield* read).toEqual([0, true]);
    }),
  );
};

const checkStatus = (check: Check): void => {
  check(
    "are disabled once, with an event, and what waits for them is cancelled",
    Effect.gen(function* () {
      const world = yield* makeWorld(9);
      const receiver = yield* addReceiver(world);
      const { projectId } = world;
      const start = yield* endOf(projectId);
      yield* admitSession(world);
      yield* behindOnce(1);
      yield* addDeliveries(receiver, 2);
      const { disable, enable, behind } = yield* OutboundWebhooks;
      const gone = yield* disable(projectId, receiver.id, { reason: "gone", now: NOON + 1 });
      expect(gone).toMatchObject({ status: "disabled", disabledReason: "gone", updatedAt: NOON + 1 });
      expect(yield* disable(projectId, receiver.id, { reason: "requested", now: NOON + 2 })).toMatchObject({
        disabledReason: "gone",
        updatedAt: NOON + 1,
      });
      expect(yield* disable(yield* addProject(world), receiver.id, { reason: "gone", now: NOON })).toBe(null);
      const { list } = yield* OutboundDeliveries;
      const { items } = yield* list(receiver.id, { limit: 9, cursor: null });
      expect(items.map(({ status, dueAt, endedAt }) => [status, dueAt, endedAt])).toEqual([
        ["cancelled", null, NOON + 1],
        ["cancelled", null, NOON + 1],
      ]);
      expect(yield* claimAll(NOON + 9)).toEqual([]);
      const { after } = yield* Events;
      const told = yield* Effect.repeat(after({ projectId, sessionId: null, cursor: start, limit: 9 }), {
        until: ({ events }) => events.length >= 2,
        schedule: Schedule.spaced("10 millis"),
      });
      expect(told.events.map(({ type, data }) => [type, data]).slice(1)).toEqual([
        ["webhook.disabled", { webhook_id: receiver.id, reason: "gone" }],
      ]);
      expect(yield* behind(9)).toEqual([]);
      const cursor = yield* endOf(projectId);
      expect(yield* enable(projectId, receiver.id, { cursor, now: NOON + 3 })).toMatchObject({
        status: "enabled",
        disabledReason: null,
        updatedAt: NOON + 3,
      });
      expect(yield* behind(9)).toEqual([]);
    }),
  );

  check(
    "are disabled when too much waits for them",
    Effect.gen(function* () {
      const world = yield* makeWorld(9);
      const receiver = yield* addReceiver(world);
      const { get } = yield* OutboundWebhooks;
      const statusNow = Effect.map(get(world.projectId, receiver.id), (found) => found?.disabledReason);
      yield* admitSession(world);
      yield* behindOnce(1);
      yield* addDeliveries(receiver, DELIVERIES_WAITING_MAX);
      expect(yield* statusNow).toBe(null);
      yield* admitSession(world);
      yield* behindOnce(1);
      yield* addDeliveries(receiver, 1);
      expect(yield* statusNow).toBe("backlog");
    }),
  );
};

export const checkOutboundWebhooks = (check: Check): void => {
  describe("receivers of events", () => {
    checkRecords(check);
    checkPlaces(check);
    checkStatus(check);
  });
};
