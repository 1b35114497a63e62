/** Counted usage of models: the table model_usage. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import { utcDay } from "../../../domain/conversation/usage.ts";
import { OTHER_MODELS } from "../../../store/ports/projects/project-usage.ts";
import { stored } from "../../../store/postgres/connection/statement.ts";
import { COUNTED_MODELS_MAX, type CountedUsage, ModelUsage } from "../ports/model-usage.ts";

const SUMS = `sum(calls)::bigint::float8 AS calls, sum(untold_calls)::bigint::float8 AS "untoldCalls",
  sum(input_tokens)::float8 AS input, sum(cached_tokens)::float8 AS cached, sum(output_tokens)::float8 AS output,
  sum(estimated_tokens)::float8 AS estimated, sum(cost)::float8 AS cost`;

const makeAdd = Effect.map(SqlClient.SqlClient, (sql) =>
  Effect.fnUntraced(function* (call: Parameters<(typeof ModelUsage)["Service"]["add"]>[0]) {
    const { sessionId, projectId, model, tokens } = call;
    const day = utcDay(call.now);
    const { input = 0, cached = 0, output = 0 } = tokens ?? {};
    yield* sql`
      INSERT INTO model_usage AS usage (session_id, day, model, project_id, calls, untold_calls, input_tokens, cached_tokens,
        output_tokens, estimated_tokens, cost)
      SELECT ${sessionId}::uuid, ${day}::date,
        CASE WHEN ${model} = ANY (known.models) OR cardinality(known.models) < ${COUNTED_MODELS_MAX} THEN ${model}
          ELSE ${OTHER_MODELS} END,
        ${projectId}::uuid, 1, ${tokens === null ? 1 : 0}::bigint, ${input}::bigint, ${cached}::bigint, ${output}::bigint,
        ${call.estimated}::bigint, ${call.cost}::bigint
      FROM (SELECT ARRAY(SELECT model FROM model_usage WHERE session_id = ${sessionId} AND day = ${day}::date) AS models) AS known
      ON CONFLICT (session_id, day, model) DO UPDATE SET
        calls = usage.calls + 1, untold_calls = usage.untold_calls + excluded.untold_calls,
        input_tokens = usage.input_tokens + excluded.input_tokens,
        cached_tokens = usage.cached_tokens + excluded.cached_tokens,
        output_tokens = usage.output_tokens + excluded.output_tokens,
        estimated_tokens = usage.estimated_tokens + excluded.estimated_tokens, cost = usage.cost + excluded.cost`;
  }),
);

export const layer = Layer.effect(
  ModelUsage,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient;
    const add = yield* makeAdd;
    return {
      add: (call) => add(call).pipe(stored("modelUsage.add")),
      days: (projectId, { from, to }) =>
        sql<CountedUsage & { readonly day: string }>`
          SELECT to_char(day, 'YYYY-MM-DD') AS day, model, ${sql.literal(SUMS)} FROM model_usage
          WHERE project_id = ${projectId} AND day BETWEEN ${from}::date AND ${to}::date
          GROUP BY model_usage.day, model ORDER BY model_usage.day DESC, model COLLATE "C"`.pipe(
          stored("modelUsage.days"),
        ),
      ofSession: (sessionId) =>
        sql<CountedUsage>`
          SELECT model, ${sql.literal(SUMS)} FROM model_usage WHERE session_id = ${sessionId}
          GROUP BY model ORDER BY model COLLATE "C"`.pipe(stored("modelUsage.ofSession")),
    };
  }),
);
