import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { NO_ID, PORTION, type Resealing, type SealedRow } from "../../../store/postgres/reseal.ts";
import { sealedName } from "../rules/outbound-receiver.ts";

export const SEALED_COLUMNS = ["outbound_webhooks.envelope"] as const;

/** Addresses and signing secrets of receivers. */
export const resealReceivers = Effect.fnUntraced(function* <E>(reseal: Resealing<E>["reseal"]) {
  const sql = yield* SqlClient.SqlClient;
  let after: (SealedRow & { readonly id: string }) | null = null;
  let count = 0;
  for (;;) {
    const rows: readonly (SealedRow & { readonly id: string })[] = yield* sql<
      SealedRow & { readonly id: string }
    >`
      SELECT id, project_id AS "projectId", ${sealedName("")} || id::text AS name, sealed_version AS version, envelope
      FROM outbound_webhooks WHERE id > ${after?.id ?? NO_ID}::uuid ORDER BY id LIMIT ${PORTION} FOR UPDATE`;
    for (const row of rows) {
      const envelope = Buffer.from(yield* reseal(row));
      yield* sql`UPDATE outbound_webhooks SET envelope = ${envelope} WHERE id = ${row.id}`;
    }
    count += rows.length;
    after = rows.at(-1) ?? null;
    if (after === null) return count;
  }
});
