/** Event rows in memory: see postgres/events/events.ts. A commit is one step here, so rows are in commit order. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import {
  EVENTS_KEPT_MS,
  EVENTS_KEPT_PER_PROJECT,
  Events,
  NEWS_KEPT_MS,
  NEWS_KEPT_PER_PROJECT,
  type EventScope,
  type StoredEvent,
} from "../../../src/store/ports/events.ts";
import { ANY_PROJECT } from "./event-table.ts";
import { Tables, type TableSet } from "./tables.ts";

type AfterRequest = Parameters<(typeof Events)["Service"]["after"]>[0];
interface Read {
  readonly events: readonly StoredEvent[];
  readonly cursor: string;
  readonly reset: boolean;
  readonly isHeldBack: boolean;
}

/** @returns whether the scope has a project, and a session of it */
const readerOf = (tables: TableSet, scope: EventScope) => {
  if (!("reader" in scope)) {
    const { projectId, sessionId } = scope;
    return {
      hasProject: (id: string) => id === projectId,
      hasSession: (id: string | null) => sessionId === null || id === sessionId,
    };
  }
  const { accountId, userId } = scope.reader;
  return {
    hasProject: (id: string) =>
      tables.projects.get(id)?.record.accountId === accountId &&
      (userId === null || tables.roleOf(userId, id) !== null),
    hasSession: () => true,
  };
};

const after = (tables: TableSet, { cursor, limit, ...scope }: AfterRequest): Read => {
  const { events: table } = tables;
  const { hasProject, hasSession } = readerOf(tables, scope);
  const from = cursor !== null && /^\d{1,15}$/.test(cursor) ? Number(cursor) : null;
  const isLost =
    from !== null &&
    (from > table.end || [...table.horizons].some(([id, place]) => from < place && hasProject(id)));
  const reset = cursor !== null && (from === null || isLost);
  if (from === null || reset) return { events: [], cursor: String(table.end), reset, isHeldBack: false };
  const found = table.rows
    .filter((row) => row.place > from && hasProject(row.projectId) && hasSession(row.sessionId))
    .slice(0, limit);
  // If nothing more was found, the cursor moves to the end, so that pruning does not overtake the reader.
  const last = found.length < limit ? table.end : (found.at(-1)?.place ?? from);
  const events = found.map(({ place: _place, news: _news, ...event }) => event);
  return { events, cursor: String(last), reset: false, isHeldBack: false };
};

const prune = ({ events: table, outboundWebhooks }: TableSet, now: number): void => {
  /** Whether an enabled receiver has yet to read the event (features/notifications/ports/outbound-webhooks.ts O1). */
  const isAwaited = (projectId: string, place: number): boolean =>
    [...outboundWebhooks.values()].some(
      ({ record, cursor }) =>
        record.projectId === projectId && record.status === "enabled" && Number(cursor) < place,
    );
  const newer = new Map<string, number>();
  const kept = table.rows.toReversed().filter((row) => {
    const isNews = row.news !== null;
    const kind = `${row.projectId} ${isNews}`;
    const count = (newer.get(kind) ?? 0) + 1;
    newer.set(kind, count);
    const isKept =
      (row.at >= now - (isNews ? NEWS_KEPT_MS : EVENTS_KEPT_MS) &&
        count <= (isNews ? NEWS_KEPT_PER_PROJECT : EVENTS_KEPT_PER_PROJECT)) ||
      isAwaited(row.projectId, row.place);
    if (!isKept) {
      table.horizons.set(row.projectId, Math.max(table.horizons.get(row.projectId) ?? 0, row.place));
    }
    return isKept;
  });
  table.rows = kept.toReversed();
};

export const layer = Layer.effect(
  Events,
  Effect.map(Tables, (tables) => ({
    after: (request) => Effect.sync(() => after(tables, request)),
    changed: (projectId) => tables.events.waiting.wait(projectId ?? ANY_PROJECT),
    isLater: (cursor, than) => Number(cursor) > Number(than),
    prune: (now) =>
      Effect.sync(() => {
        prune(tables, now);
      }),
  })),
);
