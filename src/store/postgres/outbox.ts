/** Stored commands that are not known to be done (journal.ts D2). Used inside their owner's transaction. */
import * as Effect from "effect/Effect";
import type { SqlClient } from "effect/sql/SqlClient";
import type { Crash, PendingCommand, UnsettledActor } from "../ports/journal.ts";
import type { StoredKind } from "../ports/transitions.ts";
import { boundDetail } from "../../machines/transition.ts";
import { at, jsonb } from "./connection/statement.ts";

interface Actor {
  readonly kind: StoredKind;
  readonly id: string;
}

/** Appends commands of several actors of a kind, for each actor in the order in which it performs them. */
export const appendCommands = Effect.fnUntraced(function* (
  sql: SqlClient,
  kind: StoredKind,
  entries: readonly { readonly actorId: string; readonly command: unknown; readonly now: number }[],
) {
  if (entries.length === 0) return [];
  const fields = entries.map(({ actorId, command, now }) => ({ actor_id: actorId, command, now }));
  return yield* sql<{ readonly id: string }>`
    INSERT INTO outbox (actor_kind, actor_id, command, created_at)
    SELECT ${kind}, c.actor_id, c.command, to_timestamp(c.now / 1000.0)
    FROM jsonb_array_elements(${jsonb(fields)}::jsonb) WITH ORDINALITY AS entry(fields, place),
      jsonb_to_record(fields) AS c(actor_id uuid, command jsonb, now bigint)
    ORDER BY entry.place
    RETURNING id`;
});

/** Writes one actor's commands and returns the ids under which they are completed. */
export const appendFor = <Command>(
  sql: SqlClient,
  actor: Actor,
  change: { readonly commands: readonly Command[]; readonly now: number },
) =>
  appendCommands(
    sql,
    actor.kind,
    change.commands.map((command) => ({ actorId: actor.id, command, now: change.now })),
  ).pipe(
    Effect.map((rows) => {
      // Identity values rise in order of insertion. RETURNING guarantees no order.
      const ids = rows.map(({ id }) => id).toSorted((a, b) => Number(BigInt(a) - BigInt(b)));
      return pendingCommands(change.commands, ids);
    }),
  );

/** Commands with their ids, both in the order in which they are performed. */
export const pendingCommands = <Command>(
  commands: readonly Command[],
  ids: readonly string[],
): readonly PendingCommand<Command>[] =>
  commands.flatMap((command, position) => {
    const id = ids[position];
    return id === undefined ? [] : [{ id, command }];
  });

/**
 * The outbox's part of a statement that saves a step: `, done AS (…), added AS (…)` to follow its other parts, and the column
 * of the new commands' ids, in their order.
 *
 * @param given the part of the statement with one row if the step is saved, and none if it is not.
 */
export const outboxParts = (
  sql: SqlClient,
  actor: Actor,
  {
    commands,
    completes,
    now,
    given,
  }: {
    readonly commands: readonly unknown[];
    /** The command that the step completes. */
    readonly completes: string | null;
    readonly now: number;
    readonly given: "saved" | "opened";
  },
) => {
  const { kind, id } = actor;
  const none = sql.literal("");
  const completion =
    completes === null || !BIGINT.test(completes)
      ? none
      : sql`, done AS (
          DELETE FROM outbox WHERE actor_kind = ${kind} AND actor_id = ${id}::uuid AND id = ${completes}::bigint
            AND EXISTS (SELECT FROM ${sql.literal(given)})
        )`;
  if (commands.length === 0) return { parts: completion, ids: sql`'[]'::jsonb` };
  const addition = sql`, added AS (
    INSERT INTO outbox (actor_kind, actor_id, command, created_at)
    SELECT ${kind}::text, ${id}::uuid, entry.command, ${at(now)}::timestamptz
    FROM ${sql.literal(given)}, jsonb_array_elements(${jsonb(commands)}::jsonb) WITH ORDINALITY AS entry(command, place)
    ORDER BY entry.place
    RETURNING id
  )`;
  // Identity values rise in order of insertion.
  return {
    parts: sql`${completion}${addition}`,
    ids: sql`(SELECT jsonb_agg(id::text ORDER BY id) FROM added)`,
  };
};

/** A column with an actor's pending commands, oldest first, for the statement that reads their snapshot. */
export const pendingColumn = (sql: SqlClient, actor: Actor) => sql`(
  SELECT coalesce(jsonb_agg(jsonb_build_object('id', outbox.id::text, 'command', command) ORDER BY outbox.id), '[]')
  FROM outbox WHERE actor_kind = ${actor.kind} AND actor_id = ${actor.id}::uuid
) AS pending`;

/** Actors of a kind with pending commands. */
export const unsettledActors = (sql: SqlClient, kind: StoredKind) => sql<UnsettledActor>`
  SELECT actor_id AS id, max(id)::text AS newest FROM outbox WHERE actor_kind = ${kind} GROUP BY actor_id`;

const BIGINT = /^\d{1,18}$/;

/** Idempotent: a command that is done already has no row. */
export const removeCommands = (sql: SqlClient, actor: Actor, ids: readonly string[]) => {
  const ownIds = ids.filter((id) => BIGINT.test(id));
  return ownIds.length === 0
    ? Effect.void
    : Effect.asVoid(
        sql`DELETE FROM outbox
          WHERE actor_kind = ${actor.kind} AND actor_id = ${actor.id} AND id = ANY(${ownIds}::bigint[])`,
      );
};

/** A command that is done meanwhile has no row. */
export const noteCrash = (
  sql: SqlClient,
  actor: Actor,
  { commandId, reason, now }: Crash & { readonly commandId: string },
) =>
  BIGINT.test(commandId)
    ? Effect.asVoid(
        sql`UPDATE outbox SET attempts = attempts + 1, last_error = ${boundDetail(reason)}, failed_at = ${at(now)}
          WHERE actor_kind = ${actor.kind} AND actor_id = ${actor.id} AND id = ${commandId}::bigint`,
      )
    : Effect.void;
