import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { NO_ID, type Resealing } from "../../../store/postgres/reseal.ts";
import { approvalPlace } from "../rules/approval.ts";

export const SEALED_COLUMNS = ["approvals.arguments_envelope", "approvals.result_envelope"] as const;

/** How many are read at a time: arguments of 256 KiB and a result of 1 MiB each at most. */
const PORTION = 20;

/** Arguments and results of calls that wait for a person, or for the agent. @returns how many approvals */
export const resealApprovals = Effect.fnUntraced(function* <E>(reseal: Resealing<E>["reseal"]) {
  const sql = yield* SqlClient.SqlClient;
  let after = NO_ID;
  let count = 0;
  for (;;) {
    const rows = yield* sql<{
      readonly id: string;
      readonly projectId: string;
      readonly arguments: Uint8Array | null;
      readonly result: Uint8Array | null;
    }>`
      SELECT id, project_id AS "projectId", arguments_envelope AS arguments, result_envelope AS result FROM approvals
      WHERE num_nonnulls(arguments_envelope, result_envelope) > 0 AND id > ${after}::uuid
      ORDER BY id LIMIT ${PORTION} FOR UPDATE`;
    for (const row of rows) {
      const again = (part: "arguments" | "result") => {
        const envelope = row[part];
        return envelope === null
          ? Effect.succeed(null)
          : Effect.map(reseal({ ...approvalPlace(row, part), envelope }), Buffer.from);
      };
      yield* sql`
        UPDATE approvals SET arguments_envelope = ${yield* again("arguments")},
          result_envelope = ${yield* again("result")}
        WHERE id = ${row.id}`;
    }
    count += rows.length;
    const last = rows.at(-1);
    if (last === undefined) return count;
    after = last.id;
  }
});
