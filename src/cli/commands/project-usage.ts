/** `platform projects usage`: tokens and cost of a project's agents. */
import type { Answer } from "../contract.ts";
import { endpoint } from "../endpoint/endpoint.ts";
import { table } from "../terminal.ts";

type Used = Answer<"GET /v1/projects/:pid/usage">["total"];

/** 0 stands for a model without a known price. It is no amount of a bill. */
const cost = (usd: number): string => (usd > 0 ? `$${usd.toFixed(4)}` : "unknown");

const cells = ({ input_tokens, cached_tokens, output_tokens, cost_usd }: Used): readonly string[] => [
  String(input_tokens),
  String(cached_tokens),
  String(output_tokens),
  cost(cost_usd),
];

export const projectUsage = endpoint("GET /v1/projects/:pid/usage", {
  name: "projects usage",
  about: "Show the tokens and the cost of the last 30 days, by day and model",
  takes: ["[PROJECT]"],
  options: {
    from: { value: "DAY", about: "First day in UTC, as YYYY-MM-DD (29 days before the last)" },
    to: { value: "DAY", about: "Last day (today)" },
  },
  shows: ({ days, total, from, to }) => {
    const rows = days.map((row) => [row.day, row.model, ...cells(row), row.counted ? "service" : "agent"]);
    return table(
      ["DAY", "MODEL", "INPUT", "CACHED", "OUTPUT", "COST", "COUNTED BY"],
      rows.length === 0 ? [] : [...rows, ["total", "", ...cells(total), ""]],
      `No model was used from ${from} to ${to}.`,
    );
  },
});
