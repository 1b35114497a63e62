/** Receivers of a project's events in memory: see features/notifications/sql/outbound-webhooks.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { RECEIVERS_MAX } from "../../../../src/features/notifications/rules/outbound-receiver.ts";
import type { DisabledReason } from "../../../../src/features/notifications/rules/outbound-tries.ts";
import { webhookDisabledEvent } from "../../../../src/store/event-rows.ts";
import { Fenced } from "../../../../src/store/ports/journal.ts";
import {
  DELIVERIES_WAITING_MAX,
  OutboundWebhooks,
  ReceiversFull,
  type NewDelivery,
  type NewOutboundWebhook,
  type OutboundWebhook,
  type ReceiverBehind,
} from "../../../../src/features/notifications/ports/outbound-webhooks.ts";
import type { OutboundWebhookRow } from "./outbound-rows.ts";
import { pageFrom } from "../pages.ts";
import { Tables, type TableSet } from "../tables.ts";

type Service = (typeof OutboundWebhooks)["Service"];

const rowOf = (tables: TableSet, projectId: string, id: string): OutboundWebhookRow | null => {
  const row = tables.outboundWebhooks.get(id);
  return row?.record.projectId === projectId ? row : null;
};

/** Writes a part of a receiver's record. */
const edit = (tables: TableSet, row: OutboundWebhookRow, part: Partial<OutboundWebhook>): OutboundWebhook => {
  const record = { ...row.record, ...part };
  tables.outboundWebhooks.set(record.id, { ...row, record });
  return record;
};

/** Disables an enabled receiver: cancels what waits, and writes the event of its project (ports/outbound-webhooks.ts O3). */
export const disableReceiver = (
  tables: TableSet,
  id: string,
  { reason, now }: { readonly reason: DisabledReason; readonly now: number },
): void => {
  const [row, own] = [tables.outboundWebhooks.get(id), tables.ownReceivers.get(id)];
  if ((row ?? own)?.record.status !== "enabled") return;
  const disabled = { status: "disabled", disabledReason: reason, updatedAt: now } as const;
  if (row !== undefined) edit(tables, row, disabled);
  if (own !== undefined) tables.ownReceivers.set(id, { ...own, record: { ...own.record, ...disabled } });
  for (const [key, delivery] of tables.outboundDeliveries) {
    const { record } = delivery;
    if (record.webhookId !== id || record.status !== "pending") continue;
    const cancelled = { ...record, status: "cancelled", dueAt: null, endedAt: now } as const;
    tables.outboundDeliveries.set(key, { ...delivery, record: cancelled, leasedUntil: null });
  }
  if (row !== undefined) tables.events.append([webhookDisabledEvent(row.record, reason, now)]);
};

const create = (tables: TableSet, webhook: NewOutboundWebhook) => {
  const { cursor, now, ...given } = webhook;
  const held = [...tables.outboundWebhooks.values()].filter(
    ({ record }) => record.projectId === given.projectId,
  );
  if (held.length >= RECEIVERS_MAX) return Effect.fail(new ReceiversFull({ limit: RECEIVERS_MAX }));
  const record: OutboundWebhook = {
    ...given,
    previousSecretUntil: null,
    status: "enabled",
    disabledReason: null,
    failingSince: null,
    warnedAt: null,
    createdAt: now,
    updatedAt: now,
  };
  tables.outboundWebhooks.set(given.id, { record, cursor });
  return Effect.succeed(record);
};

const change = (
  tables: TableSet,
  { projectId, id, events, secrets, now }: Parameters<Service["change"]>[0],
) => {
  const row = rowOf(tables, projectId, id);
  if (row === null) return Effect.succeed(null);
  if (secrets !== undefined && row.record.sealed.version !== secrets.version - 1)
    return Effect.fail(new Fenced({ id }));
  const written =
    secrets === undefined
      ? {}
      : {
          shownUrl: secrets.shownUrl,
          previousSecretUntil: secrets.previousSecretUntil,
          sealed: { version: secrets.version, envelope: secrets.envelope },
        };
  const part = { ...(events !== undefined && { events }), ...written, updatedAt: now };
  return Effect.succeed(edit(tables, row, part));
};

const enable = (tables: TableSet, ...[projectId, id, from]: Parameters<Service["enable"]>) => {
  const row = rowOf(tables, projectId, id);
  if (row === null || row.record.status === "enabled") return row?.record ?? null;
  return edit(
    tables,
    { ...row, cursor: from.cursor },
    {
      status: "enabled",
      disabledReason: null,
      failingSince: null,
      warnedAt: null,
      updatedAt: from.now,
    },
  );
};

const behind = (tables: TableSet, limit: number): readonly ReceiverBehind[] =>
  [...tables.outboundWebhooks.values()]
    .filter(
      ({ record, cursor }) =>
        record.status === "enabled" &&
        tables.events.rows.some(
          ({ projectId, place }) => projectId === record.projectId && place > Number(cursor),
        ),
    )
    .toSorted((a, b) => Number(a.cursor) - Number(b.cursor) || (a.record.id < b.record.id ? -1 : 1))
    .slice(0, limit)
    .map(({ record: { id, projectId, events }, cursor }) => ({
      id,
      projectId,
      projectName: tables.projects.get(projectId)?.record.name ?? "",
      events,
      cursor,
    }));

/** Writes deliveries of a receiver, due now. Beyond `DELIVERIES_WAITING_MAX` it is disabled. */
export const insertDeliveries = (
  tables: TableSet,
  id: string,
  deliveries: readonly NewDelivery[],
  now: number,
): void => {
  const own = [...tables.outboundDeliveries.values()].filter(({ record }) => record.webhookId === id);
  const known = new Set(own.map(({ record }) => record.messageId));
  const added = deliveries.filter(({ messageId }) => !known.has(messageId));
  for (const delivery of added) {
    const record = {
      ...delivery,
      webhookId: id,
      status: "pending",
      tries: 0,
      dueAt: now,
      lastTry: null,
      createdAt: now,
      endedAt: null,
    } as const;
    tables.outboundDeliveries.set(delivery.id, { record, leasedUntil: null, claim: 0 });
  }
  const waiting = own.filter(({ record }) => record.status === "pending").length + added.length;
  if (waiting > DELIVERIES_WAITING_MAX) disableReceiver(tables, id, { reason: "backlog", now });
};

const collect = (tables: TableSet, collected: Parameters<Service["collect"]>[0]): boolean => {
  const { id, from, to, deliveries, now } = collected;
  const row = tables.outboundWebhooks.get(id);
  if (row?.record.status !== "enabled" || row.cursor !== from) return false;
  tables.outboundWebhooks.set(id, { ...row, cursor: to });
  if (deliveries.length > 0) insertDeliveries(tables, id, deliveries, now);
  return true;
};

export const layer = Layer.effect(
  OutboundWebhooks,
  Effect.map(Tables, (tables): Service => ({
    create: (webhook) => Effect.suspend(() => create(tables, webhook)),
    change: (wanted) => Effect.suspend(() => change(tables, wanted)),
    enable: (...given) => Effect.sync(() => enable(tables, ...given)),
    disable: (projectId, id, by) =>
      Effect.sync(() => {
        if (rowOf(tables, projectId, id) === null) return null;
        disableReceiver(tables, id, by);
        return rowOf(tables, projectId, id)?.record ?? null;
      }),
    remove: (projectId, id) =>
      Effect.sync(() => {
        if (rowOf(tables, projectId, id) === null) return false;
        for (const [key, { record }] of tables.outboundDeliveries)
          if (record.webhookId === id) tables.outboundDeliveries.delete(key);
        return tables.outboundWebhooks.delete(id);
      }),
    get: (projectId, id) => Effect.sync(() => rowOf(tables, projectId, id)?.record ?? null),
    list: (projectId, request) =>
      Effect.suspend(() => {
        const records = [...tables.outboundWebhooks.values()].map(({ record }) => record);
        const own = records.filter((record) => record.projectId === projectId);
        return pageFrom(own, request, ({ createdAt, id }) => ({ at: createdAt, id }));
      }),
    behind: (limit) => Effect.sync(() => behind(tables, limit)),
    collect: (collected) => Effect.sync(() => collect(tables, collected)),
  })),
);
