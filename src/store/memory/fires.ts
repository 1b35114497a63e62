/** Reading the ledger of fires and the queue in memory: see postgres/fires.ts. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { Fires } from "../port.ts";
import type { Fire } from "../records.ts";
import { pageFrom, Tables, type FireRow, type QueueRow, type TableSet } from "./tables.ts";

/** A row as readers see it. */
export const fireOf = (row: FireRow): Fire => {
  const { accountId: _account, firedAt: _firedAt, answersDelivery: _answers, ...fire } = row;
  return fire;
};

/** An account's waiting fires in the order in which they start (round robin between projects). */
export const queueInOrder = (tables: TableSet, accountId: string): readonly QueueRow[] => {
  const turns = new Map<string, number>();
  const waiting = tables.queue
    .filter((row) => row.accountId === accountId)
    .map((row) => {
      const turn = (turns.get(row.projectId) ?? 0) + 1;
      turns.set(row.projectId, turn);
      return { row, turn, drained: tables.projects.get(row.projectId)?.drainedTurn ?? 0 };
    });
  return waiting
    .toSorted(
      (a, b) => a.turn - b.turn || a.drained - b.drained || (a.row.projectId < b.row.projectId ? -1 : 1),
    )
    .map(({ row }) => row);
};

const newestFirst = (a: Fire, b: Fire): number => b.receivedAt - a.receivedAt || (b.id < a.id ? -1 : 1);

export const layer = Layer.effect(
  Fires,
  Effect.map(Tables, (tables) => {
    const ofProject = (projectId: string) =>
      [...tables.fires.values()].filter((row) => row.projectId === projectId).map(fireOf);
    return {
      get: (id) =>
        Effect.sync(() => {
          const row = tables.fires.get(id);
          return row === undefined ? null : fireOf(row);
        }),
      list: (projectId, request) =>
        Effect.suspend(() => {
          const { slug, status } = request;
          const listed = ofProject(projectId).filter(
            (fire) =>
              (slug === null || fire.triggerSlug === slug) && (status === null || fire.status === status),
          );
          return pageFrom(listed, request, ({ receivedAt, id }) => ({ at: receivedAt, id }));
        }),
      lastBySlug: (projectId) =>
        Effect.sync(() => {
          const oldestFirst = ofProject(projectId).toSorted((a, b) => newestFirst(b, a));
          return new Map(oldestFirst.map((fire) => [fire.triggerSlug, fire]));
        }),
      queue: (accountId) =>
        Effect.sync(() =>
          queueInOrder(tables, accountId).map(
            ({ fireId, projectId, triggerSlug, queuedAt, expiresAt }, index) => ({
              fireId,
              projectId,
              triggerSlug,
              queuedAt,
              expiresAt,
              position: index + 1,
            }),
          ),
        ),
    };
  }),
);
