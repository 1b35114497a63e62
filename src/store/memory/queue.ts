/** The queue in memory: the order in which fires start, and their removal. */
import type { FireStatus } from "../ports/records.ts";
import { fireEvents } from "../event-rows.ts";
import { fireOf, type QueueRow, type TableSet } from "./tables.ts";

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

/**
 * Removes a waiting fire that will not start and writes the reason to its row. The caller moves the account's counter.
 */
export const takeOut = (
  tables: TableSet,
  end: {
    readonly fireId: string;
    readonly status: FireStatus;
    readonly reason: string;
    readonly now: number;
  },
): void => {
  const row = tables.fires.get(end.fireId);
  tables.queue = tables.queue.filter(({ fireId }) => fireId !== end.fireId);
  if (row === undefined) return;
  const ended = { ...row, status: end.status, reason: end.reason };
  tables.fires.set(end.fireId, ended);
  tables.events.append(fireEvents([fireOf(ended)], end.now));
};
