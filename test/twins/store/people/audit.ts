/** The audit record in memory: see postgres/audit.ts. A failed change is not rolled back here, but it leaves no row. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { Audit, type AuditEvent, type NewAuditEvent } from "../../../../src/store/ports/audit.ts";
import { pageFrom } from "../pages.ts";
import { Tables, type TableSet } from "../tables.ts";

/** The row as it is kept: with the account and the name that are left out (ports/audit.ts A5). */
const kept = (tables: TableSet, event: NewAuditEvent): AuditEvent => {
  const { accountId, actor } = event;
  const person = actor.kind === "person" && actor.id !== null ? tables.users.get(actor.id) : undefined;
  const [first = null] = tables.accounts.keys();
  return {
    ...event,
    accountId: accountId ?? person?.accountId ?? first,
    actor: { ...actor, name: actor.name ?? person?.name ?? null },
  };
};

const append = (tables: TableSet, event: NewAuditEvent): void => {
  tables.auditEvents.set(event.id, kept(tables, event));
};

export const layer = Layer.effect(
  Audit,
  Effect.map(Tables, (tables) => ({
    recorded: (change, rowOf) =>
      Effect.tap(change, (made) =>
        Effect.sync(() => {
          const event = rowOf(made);
          if (event !== null) append(tables, event);
        }),
      ),
    // Nothing runs between the steps of a change here.
    alone: () => Effect.void,
    append: (event) => Effect.sync(() => append(tables, event)),
    list: ({ accountId, projectId, actorId, action, since, until, ...request }) =>
      Effect.suspend(() => {
        const rows = [...tables.auditEvents.values()].filter(
          (row) =>
            row.accountId === accountId &&
            (projectId === null || row.projectId === projectId) &&
            (actorId === null || row.actor.id === actorId) &&
            (action === null || row.action === action) &&
            (since === null || row.at >= since) &&
            (until === null || row.at < until),
        );
        return pageFrom(rows, request, ({ at, id }) => ({ at, id }));
      }),
    prune: (before) =>
      Effect.sync(() => {
        const gone = [...tables.auditEvents.values()].filter(({ at }) => at < before);
        for (const { id } of gone) tables.auditEvents.delete(id);
        return gone.length;
      }),
  })),
);
