/** Counted usage of models: the table model_usage. `addModelUsage` of src/store/postgres writes it. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { toStored } from "../../../store/postgres/connection/statement.ts";
import { type CountedUsage, ModelUsage } from "../ports/model-usage.ts";

const SUMS = `sum(calls)::bigint::float8 AS calls, sum(untold_calls)::bigint::float8 AS "untoldCalls",
  sum(input_tokens)::float8 AS input, sum(cached_tokens)::float8 AS cached, sum(output_tokens)::float8 AS output,
  sum(estimated_tokens)::float8 AS estimated, sum(cost)::float8 AS cost`;

export const layer = Layer.effect(
  ModelUsage,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    return {
      days: (projectId, { from, to }) =>
        sql<CountedUsage & { readonly day: string }>`
          SELECT to_char(day, 'YYYY-MM-DD') AS day, model, ${sql.literal(SUMS)} FROM model_usage
          WHERE project_id = ${projectId} AND day BETWEEN ${from}::date AND ${to}::date
          GROUP BY model_usage.day, model ORDER BY model_usage.day DESC, model COLLATE "C"`.pipe(
          toStored("modelUsage.days"),
        ),
      ofSession: (sessionId) =>
        sql<CountedUsage>`
          SELECT model, ${sql.literal(SUMS)} FROM model_usage WHERE session_id = ${sessionId}
          GROUP BY model ORDER BY model COLLATE "C"`.pipe(toStored("modelUsage.ofSession")),
    };
  }),
);
