/** The queue in memory: the order in which fires start, and their removal. */
import { requireWaits, type WaitEnd } from "../../../../src/domain/trigger/fire.ts";
import { fireEvents } from "../../../../src/store/event-rows.ts";
import { fireOf, type QueueRow, type TableSet } from "../tables.ts";

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

/** The id of the person whose request waits. Null for a trigger's fire. */
export const requesterOf = ({ kind, session }: QueueRow): string | null =>
  kind === "session" ? session.createdBy : null;

/**
 * Removes waiting fires that will not start and writes the reason to their rows. The caller moves the account's counter.
 * If a row does not have the status `queued`, nothing changes.
 */
export const takeOut = (
  tables: TableSet,
  fireIds: readonly string[],
  { status, reason, now }: { readonly status: WaitEnd; readonly reason: string; readonly now: number },
): void => {
  requireAllWait(tables, fireIds, status);
  const requesters = new Map(tables.queue.map((row) => [row.fireId, requesterOf(row)]));
  tables.queue = tables.queue.filter(({ fireId }) => !fireIds.includes(fireId));
  for (const id of fireIds) {
    const row = tables.fires.get(id);
    if (row === undefined) continue;
    const ended = { ...row, status, reason };
    tables.fires.set(id, ended);
    tables.events.append(fireEvents([{ ...fireOf(ended), requestedBy: requesters.get(id) ?? null }], now));
  }
};

/** Cancels the waiting fires of a project that starts nothing more. */
export const cancelWaiting = (
  tables: TableSet,
  projectId: string,
  { reason, now }: { readonly reason: string; readonly now: number },
): void => {
  const waiting = tables.queue.filter((row) => row.projectId === projectId);
  takeOut(
    tables,
    waiting.map(({ fireId }) => fireId),
    { status: "cancelled", reason, now },
  );
  for (const { accountId } of waiting) tables.moveCounters(accountId, { queued: -1 });
};

/** @throws ForbiddenMove */
export const requireAllWait = (tables: TableSet, fireIds: readonly string[], next: WaitEnd): void => {
  for (const id of fireIds) requireWaits(tables.fires.get(id)?.status ?? "new", next);
};
