/** Receivers of people in memory: see features/notifications/sql/own-receivers.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import {
  OwnReceivers,
  type NewOwnReceiver,
  type OwnNewsWithReceivers,
  type OwnReceiver,
} from "../../../src/features/notifications/ports/own-receivers.ts";
import {
  isOwnNews,
  NOTICE_NEWS,
  type NoticedSession,
  type NoticePlace,
} from "../../../src/features/notifications/rules/own-notice.ts";
import { insertDeliveries } from "./triggers/outbound-webhooks.ts";
import { Tables, type TableSet } from "./tables.ts";

type Service = (typeof OwnReceivers)["Service"];

const placeOf = ({ format }: Pick<OwnReceiver, "format">): NoticePlace =>
  format === "mail" ? "mail" : "chat";

const rowsOf = (tables: TableSet, userId: string) =>
  [...tables.ownReceivers.values()].filter(({ record }) => record.userId === userId);

const drop = (tables: TableSet, id: string): void => {
  tables.ownReceivers.delete(id);
  for (const [key, { record }] of tables.outboundDeliveries)
    if (record.webhookId === id) tables.outboundDeliveries.delete(key);
};

const save = (tables: TableSet, { now, ...receiver }: NewOwnReceiver): OwnReceiver => {
  for (const { record } of rowsOf(tables, receiver.userId))
    if (placeOf(record) === placeOf(receiver) && record.id !== receiver.id) drop(tables, record.id);
  const known = tables.ownReceivers.get(receiver.id)?.record;
  const address = known ?? receiver;
  const record: OwnReceiver = {
    ...receiver,
    ...(address.format === "mail"
      ? { format: "mail", shownUrl: null, sealed: null }
      : { format: address.format, shownUrl: address.shownUrl, sealed: address.sealed }),
    status: "enabled",
    disabledReason: null,
    failingSince: null,
    warnedAt: null,
    createdAt: known?.createdAt ?? now,
    updatedAt: now,
  };
  tables.ownReceivers.set(record.id, { record, cursor: tables.events.end });
  return record;
};

const sessionOf = (tables: TableSet, sessionId: string | null): NoticedSession | null => {
  const record = tables.sessions.get(sessionId ?? "")?.record;
  if (record === undefined || record.deletedAt !== null) return null;
  const { name, triggerSlug, createdBy, parentSessionId } = record;
  const items = [...(tables.conversations.get(record.id)?.items.values() ?? [])];
  const writers = items.flatMap(({ kind, author }) =>
    kind === "message" && author?.kind === "user" && author.userId !== null ? [author.userId] : [],
  );
  return {
    name: name ?? triggerSlug,
    createdBy,
    triggerSlug,
    parentSessionId,
    writers: [...new Set(writers)],
  };
};

const news: (tables: TableSet, limit: number) => Effect.Success<ReturnType<Service["news"]>> = (
  tables,
  limit,
) => {
  const enabled = [...tables.ownReceivers.values()].filter(({ record }) => record.status === "enabled");
  if (enabled.length === 0) return null;
  const since = Math.max(tables.ownNoticesPlace, Math.min(...enabled.map(({ cursor }) => cursor)));
  const rows = tables.events.rows.filter((row) => row.news !== null && row.place > since).slice(0, limit);
  const last = rows.at(-1);
  if (last === undefined) return null;
  const found = rows.map(({ place, news: kind, ...event }): OwnNewsWithReceivers => {
    const isOne = NOTICE_NEWS.some((one) => one === kind);
    const own = {
      event,
      projectName: tables.projects.get(event.projectId)?.record.name ?? "",
      session: isOne ? sessionOf(tables, event.sessionId) : null,
    };
    const receivers = enabled
      .filter(({ record, cursor }) => isOne && cursor < place && isOwnNews(own, record.userId))
      .map(({ record: { id, userId, tells } }) => ({ id, userId, tells }));
    return Object.assign(own, { receivers });
  });
  return { news: found, to: last.cursor };
};

const collect = (tables: TableSet, { to, deliveries, now }: Parameters<Service["collect"]>[0]): boolean => {
  if (Number(to) <= tables.ownNoticesPlace) return false;
  tables.ownNoticesPlace = Number(to);
  for (const [id, own] of Map.groupBy(deliveries, ({ receiverId }) => receiverId))
    if (tables.ownReceivers.get(id)?.record.status === "enabled")
      insertDeliveries(
        tables,
        id,
        own.map(({ receiverId: _, ...delivery }) => delivery),
        now,
      );
  return true;
};

const addressOf = (tables: TableSet, userId: string): string | null => {
  const known = [...tables.identities.values()].filter((row) => row.userId === userId && row.email !== null);
  const [last] = known.toSorted(
    (a, b) => (b.signedInAt ?? -1) - (a.signedInAt ?? -1) || (a.id < b.id ? -1 : 1),
  );
  return last?.email ?? null;
};

export const layer = Layer.effect(
  OwnReceivers,
  Effect.map(Tables, (tables): Service => ({
    list: (userId) =>
      Effect.sync(() =>
        rowsOf(tables, userId)
          .map(({ record }) => record)
          .toSorted((a, b) => (a.id < b.id ? -1 : 1)),
      ),
    save: (receiver) => Effect.sync(() => save(tables, receiver)),
    remove: (userId, place) =>
      Effect.sync(() => {
        const own = rowsOf(tables, userId).find(({ record }) => placeOf(record) === place);
        if (own !== undefined) drop(tables, own.record.id);
        return own !== undefined;
      }),
    address: (userId) => Effect.sync(() => addressOf(tables, userId)),
    news: (limit) => Effect.sync(() => news(tables, limit)),
    collect: (collected) => Effect.sync(() => collect(tables, collected)),
  })),
);
