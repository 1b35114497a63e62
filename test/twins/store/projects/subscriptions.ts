/** People's own subscriptions, in memory: see features/subscriptions/sql. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { type Holder, Subscriptions } from "../../../../src/features/subscriptions/ports/subscriptions.ts";
import { Tables, type TableSet } from "../tables.ts";

/** The sandbox that has not ended. */
const running = (tables: TableSet, sandboxId: string): Holder | null => {
  const sandbox = tables.sandboxes.get(sandboxId)?.record;
  return sandbox === undefined || sandbox.endedAt !== null
    ? null
    : { sandboxId, sessionId: sandbox.sessionId };
};

/** Whether a session is another one, or below it. */
const isBelow = (tables: TableSet, sessionId: string | null, above: string): boolean => {
  if (sessionId === null) return false;
  return (
    sessionId === above ||
    isBelow(tables, tables.sessions.get(sessionId)?.record.parentSessionId ?? null, above)
  );
};

const holders = (tables: TableSet): readonly Holder[] =>
  [...tables.deliveredSubscriptions.keys()]
    .toSorted()
    .flatMap((sandboxId) => running(tables, sandboxId) ?? []);

export const layer = Layer.effect(
  Subscriptions,
  Effect.map(Tables, (tables) => ({
    save: ({ now, ...given }) =>
      Effect.sync(() => {
        for (const { id, userId, runtime } of tables.subscriptions.values())
          if (userId === given.userId && runtime === given.runtime) tables.subscriptions.delete(id);
        const saved = { ...given, savedAt: now, renewedAt: null, usedAt: null };
        tables.subscriptions.set(saved.id, saved);
        return saved;
      }),
    list: ({ accountId, userId }) =>
      Effect.sync(() =>
        [...tables.subscriptions.values()]
          .filter((row) => row.accountId === accountId && row.userId === userId)
          .toSorted((one, other) => (one.runtime < other.runtime ? -1 : 1)),
      ),
    remove: (id) => Effect.sync(() => tables.subscriptions.delete(id)),
    renew: (id, { sealed, now }) =>
      Effect.sync(() => {
        const row = tables.subscriptions.get(id);
        if (row === undefined || row.sealed.version !== sealed.version - 1) return false;
        tables.subscriptions.set(id, { ...row, sealed, renewedAt: now });
        return true;
      }),
    deliver: (sandboxId, { id, userId, runtime }, now) =>
      Effect.sync(() => {
        const row = tables.subscriptions.get(id);
        if (row === undefined) return "gone";
        tables.subscriptions.set(id, { ...row, usedAt: now });
        if (tables.deliveredSubscriptions.has(sandboxId)) return "known";
        tables.deliveredSubscriptions.set(sandboxId, { id, userId, runtime });
        return "new";
      }),
    forgetDelivery: (sandboxId) => Effect.sync(() => void tables.deliveredSubscriptions.delete(sandboxId)),
    deliveredTo: (sandboxId) =>
      Effect.sync(() => {
        const delivered = tables.deliveredSubscriptions.get(sandboxId);
        if (delivered === undefined || running(tables, sandboxId) === null) return null;
        return tables.subscriptions.get(delivered.id) ?? null;
      }),
    holdersBelow: (above) =>
      Effect.sync(() => holders(tables).filter(({ sessionId }) => isBelow(tables, sessionId, above))),
    holders: (userId, runtime) =>
      Effect.sync(() =>
        holders(tables).filter(({ sandboxId }) => {
          const delivered = tables.deliveredSubscriptions.get(sandboxId);
          return delivered?.userId === userId && delivered.runtime === runtime;
        }),
      ),
  })),
);
