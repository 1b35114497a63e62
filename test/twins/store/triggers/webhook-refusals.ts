/** Refused webhooks in memory: see postgres/triggers/webhook-refusals.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { deliveryRefusedEvent, REFUSAL_NEWS_MS } from "../../../../src/store/event-rows.ts";
import {
  REFUSALS_KEPT_PER_PROJECT,
  WebhookRefusals,
  type WebhookRefusal,
} from "../../../../src/store/ports/triggers/webhook-refusals.ts";
import { pageFrom } from "../pages.ts";
import { Tables, type TableSet } from "../tables.ts";

const newestFirst = (a: WebhookRefusal, b: WebhookRefusal): number => b.at - a.at || (b.id < a.id ? -1 : 1);

const add = (tables: TableSet, refusals: readonly WebhookRefusal[]): void => {
  const known = new Set(tables.refusals.map(({ id }) => id));
  const held = refusals.filter(({ id, projectId }) => tables.projects.has(projectId) && !known.has(id));
  const kept = [...Map.groupBy([...tables.refusals, ...held], ({ projectId }) => projectId).values()];
  const since = Math.min(...held.map(({ at }) => at)) - REFUSAL_NEWS_MS;
  for (const [projectId, [first]] of Map.groupBy(held, (refusal) => refusal.projectId)) {
    const isTold = tables.events.rows.some(
      (row) => row.projectId === projectId && row.news === "delivery.refused" && row.at > since,
    );
    if (!isTold && first !== undefined) tables.events.append([deliveryRefusedEvent(first)]);
  }
  tables.refusals = kept.flatMap((rows) => rows.toSorted(newestFirst).slice(0, REFUSALS_KEPT_PER_PROJECT));
};

const prune = (tables: TableSet, before: number): number => {
  const kept = tables.refusals.filter(({ at }) => at >= before);
  const removed = tables.refusals.length - kept.length;
  tables.refusals = kept;
  return removed;
};

export const layer = Layer.effect(
  WebhookRefusals,
  Effect.map(Tables, (tables) => ({
    add: (refusals) => Effect.sync(() => add(tables, refusals)),
    list: (projectId, request) =>
      Effect.suspend(() => {
        const { slug } = request;
        const rows = tables.refusals.filter(
          (row) => row.projectId === projectId && (slug === undefined || row.slug === slug),
        );
        return pageFrom(rows, request, ({ at, id }) => ({ at, id }));
      }),
    prune: (before) => Effect.sync(() => prune(tables, before)),
  })),
);
