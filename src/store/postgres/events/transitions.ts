/** The history of actors: the table transitions, and the commands that wait in the outbox. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { numberPage, readNumberCursor } from "../../cursor.ts";
import { Transitions, type ActorKey, type Transition, type WaitingCommand } from "../../ports/transitions.ts";
import type { NewTransition } from "../../../machines/transition.ts";
import { at, jsonb, pageLimit, toStored } from "../connection/statement.ts";

type Service = (typeof Transitions)["Service"];

/** How many old rows one step of pruning removes. */
const PRUNE_STEP = 1000;

const COLUMNS = `at, event, from_state AS "from", to_state AS "to", detail, commands`;

const makeReads = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const columns = sql.literal(COLUMNS);
  const ofActor = ({ kind, id }: ActorKey) => sql`actor_kind = ${kind} AND actor_id = ${id}`;
  /** The newest row that entered another state is the moment of entry. */
  const entries = sql.literal("from_state IS DISTINCT FROM to_state");

  const list: Service["list"] = Effect.fnUntraced(function* (actor, { cursor, limit }) {
    const before = yield* readNumberCursor(cursor);
    const rows = yield* sql<Transition>`
      SELECT number::float8 AS number, ${columns},
        max(at) FILTER (WHERE ${entries}) OVER (ORDER BY transitions.number
          ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS "enteredAt"
      FROM transitions WHERE ${ofActor(actor)} AND number < ${before ?? Number.MAX_SAFE_INTEGER}
      ORDER BY transitions.number DESC ${pageLimit(sql, limit)}`;
    return numberPage(rows, limit);
  }, toStored("transitions.list"));

  const newest: Service["newest"] = (actor) =>
    sql<NewTransition & { readonly since: number | null }>`
      SELECT ${columns}, (SELECT max(at) FROM transitions WHERE ${ofActor(actor)} AND ${entries}) AS since
      FROM transitions WHERE ${ofActor(actor)} ORDER BY number DESC LIMIT 1`.pipe(
      Effect.map(([row]) => {
        if (row === undefined) return null;
        const { since, ...last } = row;
        return { last, since };
      }),
      toStored("transitions.newest"),
    );

  /** Rows lie in the order of time, so the block range index finds the newest. */
  const recent: Service["recent"] = ({ since, limit }) =>
    sql<NewTransition & { readonly kind: ActorKey["kind"]; readonly id: string }>`
      SELECT actor_kind AS kind, actor_id AS id, ${columns} FROM transitions WHERE at >= ${at(since)}
      ORDER BY transitions.at DESC, number DESC LIMIT ${limit}`.pipe(
      Effect.map((rows) =>
        rows.map(({ kind, id, ...row }) => ({ ...row, actor: { kind, id } })).toReversed(),
      ),
      toStored("transitions.recent"),
    );

  /** The outbox knows stored actors only. Their ids are uuids. */
  const waiting: Service["waiting"] = ({ kind, id }) =>
    kind === "trigger" || kind === "account"
      ? Effect.succeed([])
      : sql<WaitingCommand>`
          SELECT command ->> 'type' AS command, created_at AS since, attempts, last_error AS "lastError"
          FROM outbox WHERE actor_kind = ${kind} AND actor_id = ${id}::uuid ORDER BY id`.pipe(
          toStored("transitions.waiting"),
        );
  return { list, newest, recent, waiting };
});

export const layer = Layer.effect(
  Transitions,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    const add: Service["add"] = (rows) =>
      rows.length === 0
        ? Effect.void
        : sql`
            INSERT INTO transitions (actor_kind, actor_id, at, event, from_state, to_state, detail, commands)
            SELECT kind, id, to_timestamp(t.at / 1000.0), event, "from", "to", detail, commands
            FROM jsonb_array_elements(${jsonb(rows.map(({ actor, ...row }) => ({ ...actor, ...row })))}::jsonb)
              WITH ORDINALITY AS entry(fields, place),
              jsonb_to_record(fields) AS t(kind text, id text, at bigint, event text, "from" text, "to" text,
                detail text, commands text[])
            ORDER BY place`.pipe(Effect.asVoid, toStored("transitions.add"));

    const prune: Service["prune"] = ({ before, kept, movedSince }) =>
      Effect.gen(function* () {
        const old = yield* sql`
          DELETE FROM transitions WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM transitions WHERE at < ${at(before)} LIMIT ${PRUNE_STEP}
          )) RETURNING 1`;
        const surplus = yield* sql`
          WITH moved AS (SELECT DISTINCT actor_kind, actor_id FROM transitions WHERE at >= ${at(movedSince)}),
          edge AS (
            SELECT moved.*, (
              SELECT number FROM transitions AS t
              WHERE t.actor_kind = moved.actor_kind AND t.actor_id = moved.actor_id
              ORDER BY number DESC OFFSET ${kept} LIMIT 1
            ) AS number FROM moved
          )
          DELETE FROM transitions AS t USING edge
          WHERE t.actor_kind = edge.actor_kind AND t.actor_id = edge.actor_id AND t.number <= edge.number RETURNING 1`;
        return old.length + surplus.length;
      }).pipe(toStored("transitions.prune"));
    return { ...(yield* makeReads), add, prune };
  }),
);
