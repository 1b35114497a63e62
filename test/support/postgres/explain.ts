/** How Postgres carries out a statement: for tests that no list reads more than it shows. */
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import type { Fragment } from "effect/sql/Statement";

interface Plan {
  readonly "Node Type": string;
  readonly "Index Name"?: string;
  readonly "Actual Rows": number;
  readonly "Rows Removed by Filter"?: number;
  readonly Plans?: readonly Plan[];
}
const nodesOf = (plan: Plan): readonly Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];

/** Runs a statement. @returns the steps of its plan, their indexes, and the most rows that one step read */
export const explain = Effect.fnUntraced(function* (statement: Fragment) {
  const sql = yield* SqlClient.SqlClient;
  const [row] = yield* sql<{ readonly "QUERY PLAN": readonly [{ readonly Plan: Plan }] }>`
    EXPLAIN (ANALYZE, FORMAT JSON) ${statement}`;
  const nodes = row === undefined ? [] : nodesOf(row["QUERY PLAN"][0].Plan);
  return {
    steps: nodes.map((each) => each["Node Type"]),
    indexes: nodes.flatMap((each) => each["Index Name"] ?? []),
    most: Math.max(...nodes.map((each) => each["Actual Rows"] + (each["Rows Removed by Filter"] ?? 0))),
  };
});
