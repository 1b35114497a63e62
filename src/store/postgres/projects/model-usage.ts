/** Adds calls of models to the table model_usage. The feature `model-providers` reads it. */
import type * as SqlClient from "effect/sql/SqlClient";
import { utcDay } from "../../../domain/conversation/usage.ts";
import type { CountedCall } from "../../../domain/sandbox/spend.ts";
import { COUNTED_MODELS_MAX, OTHER_MODELS } from "../../ports/projects/project-usage.ts";

interface Caller {
  readonly id: string;
  readonly projectId: string;
}

/** Adds a call of a session. The caller sees to it that a call is added once. */
export const addModelUsage = (
  sql: SqlClient.SqlClient,
  { id, projectId }: Caller,
  { model, tokens, estimated, cost, now }: CountedCall & { readonly now: number },
) => {
  const day = utcDay(now);
  const { input = 0, cached = 0, output = 0 } = tokens ?? {};
  return sql`
    INSERT INTO model_usage AS usage (session_id, day, model, project_id, calls, untold_calls, input_tokens, cached_tokens,
      output_tokens, estimated_tokens, cost)
    SELECT ${id}::uuid, ${day}::date,
      CASE WHEN ${model} = ANY (known.models) OR cardinality(known.models) < ${COUNTED_MODELS_MAX} THEN ${model}
        ELSE ${OTHER_MODELS} END,
      ${projectId}::uuid, 1, ${tokens === null ? 1 : 0}::bigint, ${input}::bigint, ${cached}::bigint, ${output}::bigint,
      ${estimated}::bigint, ${cost}::bigint
    FROM (SELECT ARRAY(SELECT model FROM model_usage WHERE session_id = ${id} AND day = ${day}::date) AS models) AS known
    ON CONFLICT (session_id, day, model) DO UPDATE SET
      calls = usage.calls + 1, untold_calls = usage.untold_calls + excluded.untold_calls,
      input_tokens = usage.input_tokens + excluded.input_tokens,
      cached_tokens = usage.cached_tokens + excluded.cached_tokens,
      output_tokens = usage.output_tokens + excluded.output_tokens,
      estimated_tokens = usage.estimated_tokens + excluded.estimated_tokens, cost = usage.cost + excluded.cost`;
};
