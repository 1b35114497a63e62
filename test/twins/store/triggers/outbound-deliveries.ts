/** Deliveries of a project's events in memory: see features/notifications/sql/outbound-deliveries.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import {
  dueAfter,
  healthAfterAll,
  statusAfter,
} from "../../../../src/features/notifications/ports/outbound-results.ts";
import {
  DELIVERIES_KEPT_EACH,
  OutboundDeliveries,
  type ClaimedDelivery,
  type DeliveryResult,
  type OutboundDelivery,
} from "../../../../src/features/notifications/ports/outbound-deliveries.ts";
import { disableReceiver } from "./outbound-webhooks.ts";
import type { OutboundMessage } from "../../../../src/features/notifications/rules/outbound-event.ts";
import type { OutboundDeliveryRow } from "./outbound-rows.ts";
import { pageFrom } from "../pages.ts";
import { Tables, type TableSet } from "../tables.ts";

type Service = (typeof OutboundDeliveries)["Service"];
type ClaimRequest = Parameters<Service["claim"]>[0];

const rowsOf = (tables: TableSet, webhookId: string): readonly OutboundDeliveryRow[] =>
  [...tables.outboundDeliveries.values()].filter(({ record }) => record.webhookId === webhookId);

const isLeased = ({ leasedUntil }: OutboundDeliveryRow, now: number): boolean =>
  leasedUntil !== null && leasedUntil > now;

const newestFirst = (a: OutboundDelivery, b: OutboundDelivery): number =>
  b.createdAt - a.createdAt || (b.id < a.id ? -1 : 1);

/** A due delivery and its place among the due ones of its receiver. */
interface Due {
  readonly row: OutboundDeliveryRow;
  readonly turn: number;
  readonly dueAt: number;
}

const inTurn = (a: Due, b: Due): number =>
  a.turn - b.turn || a.dueAt - b.dueAt || (a.row.record.id < b.row.record.id ? -1 : 1);

/** Due deliveries of one receiver, as many as it has free places. */
const dueOf = (tables: TableSet, webhookId: string, { now, each }: { now: number; each: number }) => {
  const rows = rowsOf(tables, webhookId).filter(({ record }) => record.status === "pending");
  const free = each - rows.filter((row) => isLeased(row, now)).length;
  return rows
    .flatMap((row) => {
      const { dueAt } = row.record;
      return dueAt !== null && dueAt <= now && !isLeased(row, now) ? [{ row, turn: 0, dueAt }] : [];
    })
    .toSorted(inTurn)
    .slice(0, Math.max(free, 0))
    .map((due, turn) => Object.assign(due, { turn }));
};

/** What a claim says of a delivery's receiver. */
const receiverOf = (tables: TableSet, { webhookId, message }: OutboundDelivery) => {
  const webhook = tables.outboundWebhooks.get(webhookId)?.record;
  if (webhook !== undefined) {
    const { projectId: ownerId, format, sealed, failingSince } = webhook;
    return { ownerId, person: null, format, sealed, isFailing: failingSince !== null };
  }
  const own = tables.ownReceivers.get(webhookId)?.record;
  if (own === undefined) return null;
  const { userId, format, sealed, failingSince } = own;
  const { data } = JSON.parse(message) as OutboundMessage;
  const person = { id: userId, ...tables.personNow(userId, String(data["project_id"])) };
  return { ownerId: userId, person, format, sealed, isFailing: failingSince !== null };
};

const claim = (tables: TableSet, { now, leaseUntil, room }: ClaimRequest): readonly ClaimedDelivery[] => {
  const receivers = [...tables.outboundWebhooks.values(), ...tables.ownReceivers.values()];
  const enabled = receivers.filter(({ record }) => record.status === "enabled");
  const due = (isFailing: boolean, each: number) =>
    enabled
      .filter(({ record }) => (record.failingSince !== null) === isFailing)
      .flatMap(({ record }) => dueOf(tables, record.id, { now, each }))
      .toSorted(inTurn);
  const chosen = [...due(false, room.each), ...due(true, 1).slice(0, Math.max(room.failing, 0))];
  return chosen.slice(0, room.all).flatMap(({ row }) => {
    const receiver = receiverOf(tables, row.record);
    if (receiver === null) return [];
    const record = { ...row.record, tries: row.record.tries + 1 };
    const claimed = { record, leasedUntil: leaseUntil, claim: row.claim + 1 };
    tables.outboundDeliveries.set(record.id, claimed);
    const { id, webhookId, messageId, message, tries } = record;
    return [{ id, webhookId, messageId, message, tries, claim: claimed.claim, ...receiver }];
  });
};

/** Whether the result belongs to the present claim. */
const write = (tables: TableSet, result: DeliveryResult, now: number): boolean => {
  const row = tables.outboundDeliveries.get(result.id);
  if (row?.claim !== result.claim || row.record.status !== "pending") return false;
  const { status, error, answer, tookMs } = result.outcome;
  const dueAt = dueAfter(result);
  const record = {
    ...row.record,
    status: statusAfter(result),
    dueAt,
    endedAt: dueAt === null ? now : null,
    lastTry: { at: now, status, error, answer, tookMs: Math.round(tookMs) },
  };
  tables.outboundDeliveries.set(result.id, { ...row, record, leasedUntil: null });
  return true;
};

const record = (tables: TableSet, results: readonly DeliveryResult[], now: number): void => {
  const counted = results.filter((result) => write(tables, result, now));
  for (const [id, own] of Map.groupBy(counted, ({ webhookId }) => webhookId)) {
    const [row, person] = [tables.outboundWebhooks.get(id), tables.ownReceivers.get(id)];
    const known = row ?? person;
    if (known === undefined) continue;
    const { disable, failingSince, warnedAt } = healthAfterAll(known.record, own, now);
    const health = { failingSince, warnedAt };
    if (row !== undefined) tables.outboundWebhooks.set(id, { ...row, record: { ...row.record, ...health } });
    if (person !== undefined)
      tables.ownReceivers.set(id, { ...person, record: { ...person.record, ...health } });
    if (disable !== null) disableReceiver(tables, id, { reason: disable, now });
  }
};

const replay = (tables: TableSet, ...[webhookId, id, now]: Parameters<Service["replay"]>) => {
  const row = tables.outboundDeliveries.get(id);
  if (row?.record.webhookId !== webhookId) return null;
  if (tables.outboundWebhooks.get(webhookId)?.record.status !== "enabled") return "disabled";
  if (isLeased(row, now)) return "sending";
  const tries = row.record.status === "pending" ? row.record.tries : 0;
  const due = { ...row.record, status: "pending", dueAt: now, endedAt: null, tries } as const;
  tables.outboundDeliveries.set(id, { ...row, record: due, leasedUntil: null });
  return due;
};

const prune = (tables: TableSet, before: number): number => {
  const ended = [...tables.outboundDeliveries.values()].flatMap(({ record: each }) =>
    each.endedAt === null ? [] : [each],
  );
  const kept = [...Map.groupBy(ended, ({ webhookId }) => webhookId).values()].flatMap((own) =>
    own
      .toSorted(newestFirst)
      .slice(0, DELIVERIES_KEPT_EACH)
      .filter(({ endedAt }) => (endedAt ?? 0) >= before),
  );
  const keptIds = new Set(kept.map(({ id }) => id));
  for (const { id } of ended) if (!keptIds.has(id)) tables.outboundDeliveries.delete(id);
  return ended.length - kept.length;
};

export const layer = Layer.effect(
  OutboundDeliveries,
  Effect.map(Tables, (tables): Service => ({
    claim: (request) => Effect.sync(() => claim(tables, request)),
    record: (results, now) => Effect.sync(() => record(tables, results, now)),
    list: (webhookId, request) =>
      Effect.suspend(() => {
        const records = rowsOf(tables, webhookId).map((row) => row.record);
        return pageFrom(records, request, ({ createdAt, id }) => ({ at: createdAt, id }));
      }),
    newest: (webhookIds) =>
      Effect.sync(
        () =>
          new Map(
            webhookIds.flatMap((webhookId) => {
              const [first] = rowsOf(tables, webhookId)
                .map((row) => row.record)
                .toSorted(newestFirst);
              return first === undefined ? [] : [[webhookId, first] as const];
            }),
          ),
      ),
    replay: (...given) => Effect.sync(() => replay(tables, ...given)),
    prune: (before) => Effect.sync(() => prune(tables, before)),
    waiting: Effect.sync(() => {
      const pending = [...tables.outboundDeliveries.values()].flatMap(({ record: each }) =>
        each.status === "pending" ? [each.createdAt] : [],
      );
      return { count: pending.length, oldestAt: pending.length === 0 ? null : Math.min(...pending) };
    }),
  })),
);
