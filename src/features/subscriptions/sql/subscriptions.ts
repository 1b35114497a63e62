/** People's own subscriptions: the tables subscriptions and delivered_subscriptions. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { at, toStored } from "../../../store/postgres/connection/statement.ts";
import { resealRows } from "../../../store/postgres/reseal.ts";
import { type Holder, type Subscription, Subscriptions } from "../ports/subscriptions.ts";
import { sealedName } from "../sealing.ts";

const COLUMNS = `subscriptions.id, subscriptions.account_id AS "accountId", subscriptions.user_id AS "userId", subscriptions.runtime,
  subscriptions.sealed_version AS "sealedVersion", subscriptions.envelope, subscriptions.saved_at AS "savedAt",
  subscriptions.renewed_at AS "renewedAt", subscriptions.used_at AS "usedAt"`;

export const SEALED_COLUMNS = ["subscriptions.envelope"] as const;
export const resealSubscriptions = resealRows({
  table: "subscriptions",
  owner: "account_id",
  before: sealedName(""),
});

interface Row extends Omit<Subscription, "sealed"> {
  readonly sealedVersion: number;
  readonly envelope: Uint8Array;
}

const read = ({ sealedVersion: version, envelope, ...row }: Row): Subscription => ({
  ...row,
  sealed: { version, envelope },
});
const firstSubscription = ([row]: readonly Row[]) => (row === undefined ? null : read(row));

const makeDeliveries = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient;
  const deliver = Effect.fnUntraced(function* (
    ...[sandboxId, { id, userId, runtime }, now]: Parameters<(typeof Subscriptions)["Service"]["deliver"]>
  ) {
    // A removal waits for this transaction, and then sees the note.
    const uses = yield* sql`UPDATE subscriptions SET used_at = ${at(now)} WHERE id = ${id} RETURNING id`;
    if (uses.length === 0) return "gone" as const;
    const rows = yield* sql`
      INSERT INTO delivered_subscriptions (sandbox_id, subscription_id, user_id, runtime)
      VALUES (${sandboxId}, ${id}, ${userId}, ${runtime}) ON CONFLICT DO NOTHING RETURNING sandbox_id`;
    return rows.length > 0 ? ("new" as const) : ("known" as const);
  });
  const service: Pick<
    (typeof Subscriptions)["Service"],
    "deliver" | "forgetDelivery" | "deliveredTo" | "holdersBelow" | "holders"
  > = {
    deliver: (...delivery) =>
      sql.withTransaction(deliver(...delivery)).pipe(toStored("subscriptions.deliver")),
    forgetDelivery: (sandboxId) =>
      sql`DELETE FROM delivered_subscriptions WHERE sandbox_id = ${sandboxId}`.pipe(
        Effect.asVoid,
        toStored("subscriptions.forgetDelivery"),
      ),
    deliveredTo: (sandboxId) =>
      sql<Row>`
        SELECT ${sql.literal(COLUMNS)} FROM delivered_subscriptions AS delivered
          JOIN subscriptions ON subscriptions.id = delivered.subscription_id
          JOIN session_sandboxes AS sandbox ON sandbox.id = delivered.sandbox_id
        WHERE delivered.sandbox_id = ${sandboxId} AND sandbox.ended_at IS NULL`.pipe(
        Effect.map(firstSubscription),
        toStored("subscriptions.deliveredTo"),
      ),
    holdersBelow: (sessionId) =>
      sql<Holder>`
        WITH RECURSIVE below (id) AS (
          SELECT id FROM project_sessions WHERE id = ${sessionId}
          UNION ALL
          SELECT session.id FROM below JOIN project_sessions AS session ON session.parent_session_id = below.id
        )
        SELECT sandbox.id AS "sandboxId", sandbox.session_id AS "sessionId"
        FROM below JOIN session_sandboxes AS sandbox ON sandbox.session_id = below.id AND sandbox.ended_at IS NULL
          JOIN delivered_subscriptions AS delivered ON delivered.sandbox_id = sandbox.id
        ORDER BY sandbox.id`.pipe(toStored("subscriptions.holdersBelow")),
    holders: (userId, runtime) =>
      sql<Holder>`
        SELECT sandbox.id AS "sandboxId", sandbox.session_id AS "sessionId"
        FROM delivered_subscriptions AS delivered JOIN session_sandboxes AS sandbox ON sandbox.id = delivered.sandbox_id
        WHERE delivered.user_id = ${userId} AND delivered.runtime = ${runtime} AND sandbox.ended_at IS NULL
        ORDER BY sandbox.id`.pipe(toStored("subscriptions.holders")),
  };
  return service;
});

export const layer = Layer.effect(
  Subscriptions,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    const save = Effect.fnUntraced(function* (
      wish: Parameters<(typeof Subscriptions)["Service"]["save"]>[0],
    ) {
      const { id, accountId, userId, runtime, sealed, now } = wish;
      const subscription = firstSubscription(
        yield* sql<Row>`
          INSERT INTO subscriptions (id, account_id, user_id, runtime, sealed_version, envelope, saved_at)
          VALUES (${id}, ${accountId}, ${userId}, ${runtime}, ${sealed.version}, ${Buffer.from(sealed.envelope)}, ${at(now)})
          ON CONFLICT ON CONSTRAINT subscriptions_runtime_key DO UPDATE SET id = excluded.id, sealed_version = excluded.sealed_version,
            envelope = excluded.envelope, saved_at = excluded.saved_at, renewed_at = NULL, used_at = NULL
          RETURNING ${sql.literal(COLUMNS)}`,
      );
      return subscription ?? (yield* Effect.die(new Error("an inserted row was not returned")));
    });
    return {
      ...(yield* makeDeliveries),
      save: (wish) => save(wish).pipe(toStored("subscriptions.save")),
      list: ({ accountId, userId }) =>
        sql<Row>`
          SELECT ${sql.literal(COLUMNS)} FROM subscriptions
          WHERE account_id = ${accountId} AND user_id = ${userId} ORDER BY runtime COLLATE "C"`.pipe(
          Effect.map((rows) => rows.map(read)),
          toStored("subscriptions.list"),
        ),
      remove: (id) =>
        sql`DELETE FROM subscriptions WHERE id = ${id} RETURNING id`.pipe(
          Effect.map((rows) => rows.length > 0),
          toStored("subscriptions.remove"),
        ),
      renew: (id, { sealed, now }) =>
        sql`
          UPDATE subscriptions SET sealed_version = ${sealed.version}, envelope = ${Buffer.from(sealed.envelope)}, renewed_at = ${at(now)}
          WHERE id = ${id} AND sealed_version = ${sealed.version - 1} RETURNING id`.pipe(
          Effect.map((rows) => rows.length > 0),
          toStored("subscriptions.renew"),
        ),
    };
  }),
);
