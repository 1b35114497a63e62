/** The operator's reads in memory: see postgres/operations.ts. This store has no server, and its commands no instants. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { isLive } from "../../../src/domain/session/session.ts";
import {
  BOOTS_LOOKED_AT,
  Operations,
  type Boots,
  type Spread,
  type Watch,
} from "../../../src/store/ports/operations.ts";
import type { Sandbox } from "../../../src/store/ports/sessions/sandboxes.ts";
import { Tables, type TableSet } from "./tables.ts";

/** @param p between 0 and 1 */
const percentile = (sorted: readonly number[], p: number): number =>
  sorted[Math.max(0, Math.ceil(p * sorted.length) - 1)] ?? 0;

const spreadOf = (times: readonly number[]): Spread | null => {
  const sorted = times.toSorted((a, b) => a - b);
  return sorted.length === 0
    ? null
    : { count: sorted.length, p50Ms: percentile(sorted, 0.5), p95Ms: percentile(sorted, 0.95) };
};

const failuresOf = (sandboxes: readonly Sandbox[]): Boots["failures"] => {
  const counts = new Map<string, number>();
  for (const { status, activeAt, failure } of sandboxes) {
    if (status === "error" && activeAt === null && failure !== null)
      counts.set(failure.code, (counts.get(failure.code) ?? 0) + 1);
  }
  return [...counts]
    .map(([code, count]) => ({ code, count }))
    .toSorted((a, b) => b.count - a.count || (a.code < b.code ? -1 : 1));
};

const between = (from: number | null, to: number | null): readonly number[] =>
  from === null || to === null ? [] : [to - from];

const bootsSince = (tables: TableSet, since: number): Boots => {
  const newest = [...tables.sandboxes.values()]
    .map(({ record }) => record)
    .toSorted((a, b) => (a.id < b.id ? 1 : -1))
    .slice(0, BOOTS_LOOKED_AT)
    .filter(({ createdAt }) => createdAt >= since);
  return {
    started: newest.length,
    failures: failuresOf(newest),
    waited: spreadOf(newest.flatMap(({ createdAt, bootStartedAt }) => between(createdAt, bootStartedAt))),
    booted: spreadOf(newest.flatMap(({ bootStartedAt, activeAt }) => between(bootStartedAt, activeAt))),
  };
};

const countCommands = (tables: TableSet): number =>
  [tables.sessionOutbox, tables.sandboxOutbox, tables.changeRequestOutbox, tables.conversationOutbox]
    .flatMap((outbox) => [...outbox.actors()].flatMap((id) => outbox.waiting(id)))
    .filter(({ command }) => command !== "watchSandbox").length;

const oldest = (instants: readonly number[]): number | null =>
  instants.length === 0 ? null : Math.min(...instants);

const watched = (tables: TableSet): Watch => {
  const live = [...tables.sessions.values()].map(({ record }) => record);
  const count = (status: "provisioning" | "running") =>
    [status, live.filter((session) => session.status === status).length] as const;
  const ids = new Set(live.filter(({ status }) => isLive(status)).map(({ id }) => id));
  return {
    sessions: new Map([count("provisioning"), count("running")]),
    unsaved: live.filter(({ status, unsaved }) => status === "running" && unsaved !== null).length,
    oldestFireAt: oldest(tables.queue.map(({ queuedAt }) => queuedAt)),
    oldestCommandAt: null,
    oldestDeliveryAt: oldest(
      [...tables.outboundDeliveries.values()]
        .filter(({ record }) => record.status === "pending")
        .map(({ record }) => record.createdAt),
    ),
    oldestRequestAt: oldest(
      [...tables.conversations.values()]
        .filter(({ conversation: { id, turn } }) => ids.has(id) && turn.state === "requires_action")
        .map(({ conversation }) => conversation.turn.since),
    ),
  };
};

export const layer = Layer.effect(
  Operations,
  Effect.map(Tables, (tables) => ({
    database: Effect.succeed({ version: "in memory", sizeBytes: 0, connections: 0, connectionsMax: 0 }),
    backlogs: Effect.sync(() => {
      const queued = tables.queue.map(({ queuedAt }) => queuedAt);
      return {
        fires: { waiting: queued.length, oldestAt: queued.length === 0 ? null : Math.min(...queued) },
        commands: { waiting: countCommands(tables), oldestAt: null },
      };
    }),
    watch: Effect.sync(() => watched(tables)),
    boots: (since) => Effect.sync(() => bootsSince(tables, since)),
    sandboxesByNode: Effect.sync(() => {
      const counts = new Map<string, number>();
      for (const { record } of tables.sandboxes.values())
        if (tables.isSandboxLive(record.id)) counts.set(record.nodeId, (counts.get(record.nodeId) ?? 0) + 1);
      return counts;
    }),
    // The first account is made first.
    operatorAccount: Effect.sync(() => tables.accounts.keys().next().value ?? null),
  })),
);
