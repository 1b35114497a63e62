import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import type { Resealing, SealedRow } from "../../../store/postgres/reseal.ts";
import { sealedNameOf } from "../sealing.ts";

export const SEALED_COLUMNS = ["subscriptions.envelope"] as const;

/** Own subscriptions of people: a few for each. They are sealed in their account's place. @returns how many */
export const resealSubscriptions = Effect.fnUntraced(function* <E>(reseal: Resealing<E>["reseal"]) {
  const sql = yield* SqlClient.SqlClient;
  const rows = yield* sql<SealedRow & { readonly id: string }>`
    SELECT id, account_id AS "projectId", ${sealedNameOf("")} || id::text AS name, sealed_version AS version, envelope
    FROM subscriptions ORDER BY id FOR UPDATE`;
  for (const row of rows) {
    const envelope = Buffer.from(yield* reseal(row));
    yield* sql`UPDATE subscriptions SET envelope = ${envelope} WHERE id = ${row.id}`;
  }
  return rows.length;
});
