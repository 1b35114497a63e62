/** Usage of projects: the table project_usage. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as SqlClient from "effect/sql/SqlClient";
import type { Usage } from "../../../domain/conversation/conversation.ts";
import { utcDay } from "../../../domain/conversation/usage.ts";
import { ProjectUsage } from "../../ports/projects/project-usage.ts";
import type { AddedUsage } from "../../ports/sessions/conversations.ts";
import { byRow } from "../../spent.ts";
import { jsonb, toStored } from "../connection/statement.ts";

/** Adds to the rows of the instant's day, in the caller's transaction. */
export const addSpent = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  projectId: string,
  { now, spent }: { readonly now: number; readonly spent: readonly AddedUsage[] },
) {
  if (spent.length === 0) return;
  const day = utcDay(now);
  const rows = yield* sql<{ readonly model: string }>`
    SELECT model FROM project_usage WHERE project_id = ${projectId} AND day = ${day}::date`;
  const names = rows.map(({ model }) => model);
  // In the order of the models, so that two transactions lock the rows in one order.
  yield* sql`
    INSERT INTO project_usage (project_id, day, model, input_tokens, output_tokens, cached_tokens, cost_usd)
    SELECT ${projectId}::uuid, ${day}::date, model, u.input_tokens, u.output_tokens, u.cached_tokens, u.cost_usd
    FROM jsonb_to_recordset(${jsonb(byRow(names, spent))}::jsonb) AS r(model text, usage jsonb),
      jsonb_to_record(r.usage)
        AS u(input_tokens bigint, output_tokens bigint, cached_tokens bigint, cost_usd numeric)
    ORDER BY model COLLATE "C"
    ON CONFLICT (project_id, day, model) DO UPDATE SET
      input_tokens = project_usage.input_tokens + excluded.input_tokens,
      output_tokens = project_usage.output_tokens + excluded.output_tokens,
      cached_tokens = project_usage.cached_tokens + excluded.cached_tokens,
      cost_usd = project_usage.cost_usd + excluded.cost_usd`;
});

const USAGE = `jsonb_build_object('input_tokens', sum(input_tokens), 'output_tokens', sum(output_tokens),
  'cached_tokens', sum(cached_tokens), 'cost_usd', sum(cost_usd))`;

export const layer = Layer.effect(
  ProjectUsage,
  Effect.map(SqlClient.SqlClient, (sql) => ({
    days: (projectId, { from, to }) =>
      sql<{ readonly day: string; readonly model: string; readonly usage: Usage }>`
        SELECT to_char(day, 'YYYY-MM-DD') AS day, model, ${sql.literal(USAGE)} AS usage FROM project_usage
        WHERE project_id = ${projectId} AND day BETWEEN ${from}::date AND ${to}::date
        GROUP BY project_usage.day, model ORDER BY project_usage.day DESC, model COLLATE "C"`.pipe(
        toStored("projectUsage.days"),
      ),
    totals: (accountId) =>
      sql<{ readonly projectId: string; readonly usage: Usage }>`
        SELECT project_id AS "projectId", ${sql.literal(USAGE)} AS usage FROM project_usage
        JOIN projects ON projects.id = project_id
        WHERE projects.account_id = ${accountId} GROUP BY project_id ORDER BY project_id`.pipe(
        toStored("projectUsage.totals"),
      ),
  })),
);
