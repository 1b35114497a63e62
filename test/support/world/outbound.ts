/** Receivers of a project's events, and their deliveries, in any store. */
import { randomBytes, randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import { uuidV7 } from "../../../src/domain/ids.ts";
import { OUTBOUND_EVENTS } from "../../../src/features/notifications/rules/events.ts";
import type { TryOutcome, Verdict } from "../../../src/features/notifications/rules/outbound-tries.ts";
import type { ClaimedDelivery } from "../../../src/features/notifications/ports/outbound-deliveries.ts";
import { OutboundDeliveries } from "../../../src/features/notifications/ports/outbound-deliveries.ts";
import {
  OutboundWebhooks,
  type NewOutboundWebhook,
} from "../../../src/features/notifications/ports/outbound-webhooks.ts";
import { Events } from "../../../src/store/ports/events.ts";
import { NOON, type World } from "./world.ts";

/** The end of a project's events. */
export const endOf = Effect.fnUntraced(function* (projectId: string) {
  const { after } = yield* Events;
  return (yield* after({ projectId, sessionId: null, cursor: null, limit: 1 })).cursor;
});

/** Adds a receiver that hears of the events from now on. */
export const addReceiver = Effect.fnUntraced(function* (
  { projectId }: Pick<World, "projectId">,
  fields: Partial<NewOutboundWebhook> = {},
) {
  return yield* (yield* OutboundWebhooks).create({
    id: uuidV7(NOON, randomBytes(16)),
    projectId,
    format: "standard",
    shownUrl: "https://receiver.example.org/",
    events: OUTBOUND_EVENTS,
    sealed: { version: 1, envelope: Uint8Array.from([1, 2]) },
    cursor: yield* endOf(projectId),
    now: NOON,
    ...fields,
  });
});

/** Gives a receiver deliveries, as if its project had events. @returns their ids */
export const addDeliveries = Effect.fnUntraced(function* (
  { id, projectId }: { readonly id: string; readonly projectId: string },
  count: number,
  now: number = NOON,
) {
  const { behind, collect } = yield* OutboundWebhooks;
  const from = (yield* behind(1000)).find((receiver) => receiver.id === id)?.cursor;
  const deliveries = Array.from({ length: count }, () => ({
    id: uuidV7(now, randomBytes(16)),
    messageId: `evt_${randomUUID()}`,
    type: "session.stopped",
    message: "{}",
  }));
  const to = yield* endOf(projectId);
  const isDone = yield* collect({ projectId, id, from: from ?? "", to, deliveries, now });
  if (!isDone) return yield* Effect.die(new Error("the receiver has no event to read"));
  return deliveries.map((delivery) => delivery.id);
});

export const ROOM = { all: 100, failing: 100, each: 100 } as const;

/** Claims everything that is due. */
export const claimAll = Effect.fnUntraced(function* (now: number, room = {}) {
  const { claim } = yield* OutboundDeliveries;
  return yield* claim({ now, leaseUntil: now + 60_000, room: { ...ROOM, ...room } });
});

export const answer = (status: number | null): TryOutcome => ({
  status,
  error: status === null ? "It did not answer." : null,
  answer: "text",
  tookMs: 12,
  retryAfterMs: null,
});

export const resultOf = (
  { id, webhookId, claim }: Pick<ClaimedDelivery, "id" | "webhookId" | "claim">,
  status: number | null,
  verdict: Verdict,
) => ({ id, webhookId, claim, outcome: answer(status), verdict });
