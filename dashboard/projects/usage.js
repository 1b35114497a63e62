/** What a project's agents used in the last 30 days: tokens and cost, by day and model. */
import { getJson } from "../api/api.js";
import { h } from "../elements/dom.js";
import { dollars, grouped, usageText } from "../elements/format.js";
import { code, empty } from "../elements/parts.js";
import { projectHead, projectPath } from "./project.js";

/** @typedef {import("../wire.d.ts").Project} Project */
/** @typedef {import("../wire.d.ts").ProjectUsage} ProjectUsage */
/** @typedef {import("../wire.d.ts").Usage} Usage */
/** @typedef {{day: string, models: ProjectUsage["days"], cost: number, tokens: number}} Day */

/** @param {Usage} usage */
const tokensOf = ({ input_tokens, output_tokens }) => input_tokens + output_tokens;

/** Who counted, where the service did. @param {ProjectUsage["days"][number]} row */
const countText = ({ counted, estimated_tokens: estimated }) => {
  if (!counted) return "";
  return estimated === 0
    ? " · counted by the service"
    : ` · counted by the service, and about ${grouped(estimated)} tokens of calls that broke off`;
};

/** The rows by day, newest first. @param {ProjectUsage["days"]} rows @returns {Day[]} */
const byDay = (rows) =>
  [...new Set(rows.map(({ day }) => day))].map((day) => {
    const models = rows.filter((row) => row.day === day);
    const cost = models.reduce((sum, { cost_usd }) => sum + cost_usd, 0);
    return { day, models, cost, tokens: models.reduce((sum, row) => sum + tokensOf(row), 0) };
  });

export const usage = {
  /** @param {string[]} params @returns {Promise<{project: Project, used: ProjectUsage}>} */
  load: async ([id = ""]) => {
    const [project, used] = await Promise.all([
      getJson(projectPath(id)),
      getJson(`${projectPath(id)}/usage`),
    ]);
    return { project, used };
  },

  /** @param {{project: Project}} data */
  title: ({ project }) => `Usage of ${project.name}`,

  /** @param {{project: Project, used: ProjectUsage}} data */
  view: ({ project, used }) => {
    const days = byDay(used.days);
    const busiest = Math.max(...days.map(({ tokens }) => tokens));
    return [
      ...projectHead(project, "/usage"),
      days.length === 0
        ? empty(
            "No model was used in the last 30 days.",
            "This page shows the tokens and the cost of the project's sessions, by day and model.",
          )
        : [
            h(
              "p",
              { class: "quiet usage-sum", "data-key": "sum" },
              `Last 30 days: ${usageText(used.total)}. Days are in UTC.`,
            ),
            h(
              "ul",
              { class: "rows", "data-key": "days" },
              days.map((day) => row(day, busiest)),
            ),
          ],
    ].flat();
  },
};

/** @param {Day} day @param {number} busiest the tokens of the day with the most */
const row = ({ day, models, cost, tokens }, busiest) =>
  h(
    "li",
    { class: "row", "data-key": day },
    h(
      "span",
      { class: "row-main" },
      h("span", { class: "named" }, day),
      h("progress", { max: busiest, value: tokens, "aria-label": "Tokens, compared with the busiest day" }),
      models.map((model) =>
        h(
          "span",
          { class: "quiet", "data-key": model.model },
          code(model.model),
          " ",
          usageText(model),
          countText(model),
        ),
      ),
    ),
    h("span", { class: "quiet" }, `${grouped(tokens)} tokens`),
    h("span", { class: "row-side" }, cost > 0 ? dollars(cost) : "No known price"),
  );
