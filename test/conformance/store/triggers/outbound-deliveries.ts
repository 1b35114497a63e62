/** Conformance: deliveries of events, which nodes claim, send and record. */
import { randomUUID } from "node:crypto";
import { describe, expect } from "vitest";
import * as Effect from "effect/Effect";
import * as Schedule from "effect/Schedule";
import {
  DISABLE_AFTER_MS,
  WARN_AFTER_MS,
} from "../../../../src/features/notifications/rules/outbound-tries.ts";
import {
  DELIVERIES_KEPT_EACH,
  OutboundDeliveries,
} from "../../../../src/features/notifications/ports/outbound-deliveries.ts";
import { OutboundWebhooks } from "../../../../src/features/notifications/ports/outbound-webhooks.ts";
import type { Check } from "../fixture.ts";
import { addDeliveries, addReceiver, claimAll, resultOf } from "../../../support/world/outbound.ts";
import { admitSession } from "../../../support/world/sessions.ts";
import { makeWorld, NOON, type World } from "../../../support/world/world.ts";

const DELIVERED = { is: "delivered" } as const;
const FAILED = { is: "failed", isGone: false } as const;
const again = (dueAt: number) => ({ is: "again", dueAt }) as const;

/** A receiver with deliveries that are due. */
const receiverWith = Effect.fnUntraced(function* (world: World, count: number, now: number = NOON) {
  const receiver = yield* addReceiver(world);
  yield* more(world, receiver, { count, now });
  return receiver;
});

const more = Effect.fnUntraced(function* (
  world: World,
  receiver: { readonly id: string; readonly projectId: string },
  { count, now }: { readonly count: number; readonly now: number },
) {
  yield* admitSession(world);
  yield* Effect.repeat((yield* OutboundWebhooks).behind(100), {
    until: (found) => found.some(({ id }) => id === receiver.id),
    schedule: Schedule.spaced("10 millis"),
  });
  return yield* addDeliveries(receiver, count, now);
});

const all = { limit: 200, cursor: null };
const listed = Effect.fnUntraced(function* (webhookId: string) {
  return (yield* (yield* OutboundDeliveries).list(webhookId, all)).items;
});
const receiverNow = Effect.fnUntraced(function* ({ id, projectId }: { id: string; projectId: string }) {
  return yield* (yield* OutboundWebhooks).get(projectId, id);
});

const checkClaims = (check: Check): void => {
  check(
    "are claimed by one node at a time, with what a node needs to send them",
    Effect.gen(function* () {
      const world = yield* makeWorld(99);
      const receiver = yield* receiverWith(world, 20);
      expect(yield* claimAll(NOON - 1)).toEqual([]);
      const both = yield* Effect.all([claimAll(NOON), claimAll(NOON), claimAll(NOON)], { concurrency: 3 });
      const ids = both.flat().map(({ id }) => id);
      expect([ids.length, new Set(ids).size]).toEqual([20, 20]);
      const [first] = both.flat();
      expect(first).toMatchObject({
        webhookId: receiver.id,
        ownerId: world.projectId,
        person: null,
        format: "standard",
        message: "{}",
        tries: 1,
        claim: 1,
        isFailing: false,
        sealed: { version: 1 },
      });
      // The leases end with their nodes.
      expect(yield* claimAll(NOON + 59_999)).toEqual([]);
      const late = yield* claimAll(NOON + 60_000);
      expect(late.map(({ tries, claim }) => [tries, claim])).toEqual(late.map(() => [2, 2]));
      expect(late).toHaveLength(20);
    }),
  );

  check(
    "are shared out: a turn for each receiver, few places for one, and one for one that fails",
    Effect.gen(function* () {
      const world = yield* makeWorld(99);
      const [a, b, failing] = [
        yield* receiverWith(world, 5),
        yield* receiverWith(world, 5),
        yield* receiverWith(world, 5),
      ];
      const { record } = yield* OutboundDeliveries;
      const first = (yield* claimAll(NOON, { each: 1 })).filter(({ webhookId }) => webhookId === failing.id);
      expect(first).toHaveLength(1);
      yield* record(
        first.map((claimed) => resultOf(claimed, 500, again(NOON + 5))),
        NOON + 1,
      );
      const ofReceivers = (claimed: readonly { readonly webhookId: string }[]) =>
        [a, b, failing].map(({ id }) => claimed.filter(({ webhookId }) => webhookId === id).length);
      // a and b have one place each in use.
      expect(ofReceivers(yield* claimAll(NOON + 9, { each: 3, failing: 0 }))).toEqual([2, 2, 0]);
      const rest = yield* claimAll(NOON + 9, { each: 5 });
      expect(ofReceivers(rest)).toEqual([2, 2, 1]);
      expect(rest.find(({ webhookId }) => webhookId === failing.id)?.isFailing).toBe(true);
      expect(yield* claimAll(NOON + 9)).toEqual([]);
    }),
  );

  check(
    "are claimed no more than there is room, the healthy receivers' first",
    Effect.gen(function* () {
      const world = yield* makeWorld(99);
      const failing = yield* receiverWith(world, 3);
      const { record } = yield* OutboundDeliveries;
      const [first] = yield* claimAll(NOON, { each: 1 });
      if (first !== undefined) yield* record([resultOf(first, null, again(NOON))], NOON);
      const healthy = yield* receiverWith(world, 3);
      const claimed = yield* claimAll(NOON, { all: 3 });
      expect(claimed.map(({ webhookId }) => webhookId)).toEqual([healthy.id, healthy.id, healthy.id]);
      expect((yield* claimAll(NOON, { all: 3 })).map(({ webhookId }) => webhookId)).toEqual([failing.id]);
    }),
  );
};

const checkResults = (check: Check): void => {
  check(
    "keep the last answer, and end or become due again",
    Effect.gen(function* () {
      const world = yield* makeWorld(9);
      const receiver = yield* receiverWith(world, 3);
      const { record, waiting } = yield* OutboundDeliveries;
      const [one, two, three] = yield* claimAll(NOON);
      if (one === undefined || two === undefined || three === undefined) return expect.unreachable();
      yield* record([], NOON);
      yield* record([resultOf(one, 204, DELIVERED), resultOf(two, 500, again(NOON + 50))], NOON + 7);
      yield* record([resultOf(three, null, FAILED)], NOON + 8);
      const rows = new Map((yield* listed(receiver.id)).map((row) => [row.id, row]));
      expect(rows.get(one.id)).toMatchObject({
        status: "delivered",
        tries: 1,
        dueAt: null,
        endedAt: NOON + 7,
        lastTry: { at: NOON + 7, status: 204, error: null, answer: "text", tookMs: 12 },
      });
      expect(rows.get(two.id)).toMatchObject({ status: "pending", dueAt: NOON + 50, endedAt: null });
      expect(rows.get(three.id)).toMatchObject({
        status: "failed",
        lastTry: { status: null, error: "It did not answer." },
      });
      expect(yield* waiting).toEqual({ count: 1, oldestAt: NOON });
      expect(yield* claimAll(NOON + 49)).toEqual([]);
      expect((yield* claimAll(NOON + 50)).map(({ id, tries }) => [id, tries])).toEqual([[two.id, 2]]);
    }),
  );

  check(
    "ignore the result of a claim whose lease another node has taken over",
    Effect.gen(function* () {
      const world = yield* makeWorld(9);
      const receiver = yield* receiverWith(world, 1);
      const { record } = yield* OutboundDeliveries;
      const [late] = yield* claimAll(NOON);
      const [present] = yield* claimAll(NOON + 60_000);
      if (late === undefined || present === undefined) return expect.unreachable();
      yield* record([resultOf(late, 410, { is: "failed", isGone: true })], NOON + 60_001);
      expect(yield* listed(receiver.id)).toMatchObject([{ status: "pending", lastTry: null }]);
      expect(yield* receiverNow(receiver)).toMatchObject({ status: "enabled", failingSince: null });
      yield* record([resultOf(present, 200, DELIVERED)], NOON + 60_002);
      expect(yield* listed(receiver.id)).toMatchObject([{ status: "delivered" }]);
    }),
  );

  check(
    "disable a receiver that is gone, and one that fails for days after a warning",
    Effect.gen(function* () {
      const world = yield* makeWorld(9);
      const gone = yield* receiverWith(world, 2);
      const { record } = yield* OutboundDeliveries;
      const [first] = yield* claimAll(NOON, { each: 1 });
      if (first === undefined) return expect.unreachable();
      yield* record([resultOf(first, 410, { is: "failed", isGone: true })], NOON);
      expect(yield* receiverNow(gone)).toMatchObject({ status: "disabled", disabledReason: "gone" });
      expect((yield* listed(gone.id)).map(({ status }) => status).toSorted()).toEqual([
        "cancelled",
        "failed",
      ]);

      const failing = yield* receiverWith(world, 1);
      const states: unknown[] = [];
      const at = [0, WARN_AFTER_MS - 1, WARN_AFTER_MS, DISABLE_AFTER_MS - 1, DISABLE_AFTER_MS];
      for (const ms of at) {
        const now = NOON + ms;
        const [claimed] = yield* claimAll(now);
        if (claimed === undefined) return expect.unreachable();
        yield* record([resultOf(claimed, 503, again(now))], now);
        const found = yield* receiverNow(failing);
        states.push([found?.failingSince, found?.warnedAt, found?.disabledReason]);
      }
      const warned = NOON + WARN_AFTER_MS;
      expect(states).toEqual([
        [NOON, null, null],
        [NOON, null, null],
        [NOON, warned, null],
        [NOON, warned, null],
        [NOON, warned, "failing"],
      ]);
    }),
  );

  check(
    "clear a receiver's failure with the first success",
    Effect.gen(function* () {
      const world = yield* makeWorld(9);
      const receiver = yield* receiverWith(world, 1);
      const { record } = yield* OutboundDeliveries;
      for (const now of [NOON, NOON + WARN_AFTER_MS]) {
        const [claimed] = yield* claimAll(now);
        if (claimed !== undefined) yield* record([resultOf(claimed, 500, again(now))], now);
      }
      expect(yield* receiverNow(receiver)).toMatchObject({ warnedAt: NOON + WARN_AFTER_MS });
      const [claimed] = yield* claimAll(NOON + WARN_AFTER_MS);
      if (claimed === undefined) return expect.unreachable();
      yield* record([resultOf(claimed, 200, DELIVERED)], NOON + WARN_AFTER_MS + 1);
      expect(yield* receiverNow(receiver)).toMatchObject({ failingSince: null, warnedAt: null });
    }),
  );
};

const checkKeeping = (check: Check): void => {
  check(
    "are sent again when a person asks, under their id",
    Effect.gen(function* () {
      const world = yield* makeWorld(9);
      const receiver = yield* receiverWith(world, 2);
      const { record, replay } = yield* OutboundDeliveries;
      const [one, two] = yield* claimAll(NOON);
      if (one === undefined || two === undefined) return expect.unreachable();
      expect(yield* replay(receiver.id, one.id, NOON + 1)).toBe("sending");
      expect(yield* replay(receiver.id, randomUUID(), NOON + 1)).toBe(null);
      expect(yield* replay(randomUUID(), one.id, NOON + 1)).toBe(null);
      yield* record([resultOf(one, 500, FAILED), resultOf(two, 500, again(NOON + 900))], NOON + 2);
      expect(yield* replay(receiver.id, one.id, NOON + 3)).toMatchObject({
        status: "pending",
        tries: 0,
        dueAt: NOON + 3,
        endedAt: null,
        messageId: one.messageId,
      });
      expect(yield* replay(receiver.id, two.id, NOON + 3)).toMatchObject({ tries: 1, dueAt: NOON + 3 });
      const claimed: unknown[] = [];
      for (const _ of [one, two])
        for (const each of yield* claimAll(NOON + 3)) {
          claimed.push([each.id, each.messageId, each.tries]);
          yield* record([resultOf(each, 200, DELIVERED)], NOON + 4);
        }
      expect(new Set(claimed)).toEqual(
        new Set([
          [one.id, one.messageId, 1],
          [two.id, two.messageId, 2],
        ]),
      );
      yield* (yield* OutboundWebhooks).disable(world.projectId, receiver.id, {
        reason: "requested",
        now: NOON + 5,
      });
      expect(yield* replay(receiver.id, one.id, NOON + 6)).toBe("disabled");
    }),
  );

  check(
    "are listed newest first, and removed when they are old or too many, but not while they wait",
    Effect.gen(function* () {
      const world = yield* makeWorld(99);
      const receiver = yield* receiverWith(world, DELIVERIES_KEPT_EACH + 1);
      const { record, prune, newest, list } = yield* OutboundDeliveries;
      const claimed = yield* claimAll(NOON, { all: 5000, each: 5000 });
      yield* record(
        claimed.map((each) => resultOf(each, 200, DELIVERED)),
        NOON,
      );
      const [waiting] = yield* more(world, receiver, { count: 1, now: NOON + 1 });
      expect((yield* newest([receiver.id, randomUUID()])).get(receiver.id)?.id).toBe(waiting);
      expect((yield* newest([receiver.id, randomUUID()])).size).toBe(1);
      expect(yield* prune(NOON)).toBe(1);
      expect(yield* prune(NOON)).toBe(0);
      const page = yield* list(receiver.id, { limit: 1, cursor: null });
      expect(page.items.map(({ id }) => id)).toEqual([waiting]);
      expect((yield* list(receiver.id, { limit: 1, cursor: page.nextCursor })).items).toMatchObject([
        { status: "delivered" },
      ]);
      let removed = 0;
      for (let step = -1; step !== 0; removed += step) step = yield* prune(NOON + 1);
      expect(removed).toBe(DELIVERIES_KEPT_EACH);
      expect((yield* listed(receiver.id)).map(({ id }) => id)).toEqual([waiting]);
    }),
  );
};

export const checkOutboundDeliveries = (check: Check): void => {
  describe("deliveries of events", () => {
    checkClaims(check);
    checkResults(check);
    checkKeeping(check);
  });
};
