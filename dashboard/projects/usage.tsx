/** What a project's agents used in the last 30 days: tokens and cost, by day and model. */
import type { Answer } from "../../src/cli/contract.ts";
import { request } from "../api/client.ts";
import type { Project } from "../api/projects.ts";
import { dollars, grouped, usageText } from "../elements/format.ts";
import { framedPage } from "../ui/framed-page.tsx";
import { Empty } from "../ui/parts.tsx";
import { knownRole } from "../frame/roles.ts";
import { headOf } from "./head.tsx";

type Used = Answer<"GET /v1/projects/:pid/usage">;
type Counted = Used["days"][number];

interface Day {
  readonly day: string;
  readonly models: readonly Counted[];
  /** In US dollars. */
  readonly cost: number;
  readonly tokens: number;
}

/** Who counted, where the service did. */
const countText = ({ counted, estimated_tokens: estimated }: Counted): string => {
  if (!counted) return "";
  return estimated === 0
    ? " · counted by the service"
    : ` · counted by the service, and about ${grouped(estimated)} tokens of calls that broke off`;
};

/** By day, newest first. */
const byDay = (rows: Used["days"]): readonly Day[] =>
  [...new Set(rows.map(({ day }) => day))].map((day) => {
    const models = rows.filter((row) => row.day === day);
    return {
      day,
      models,
      cost: models.reduce((sum, { cost_usd: cost }) => sum + cost, 0),
      tokens: models.reduce((sum, { input_tokens: taken, output_tokens: given }) => sum + taken + given, 0),
    };
  });

/** @param props `busiest`: the tokens of the day with the most */
const DayRow = ({
  of: { day, models, cost, tokens },
  busiest,
}: {
  readonly of: Day;
  readonly busiest: number;
}) => (
  <li className="row two">
    <span className="row-main">
      <span className="named">{day}</span>
      <progress max={busiest} value={tokens} aria-label="Tokens, compared with the busiest day" />
      {models.map((model) => (
        <span key={model.model} className="quiet">
          <code>{model.model}</code>
          {` ${usageText(model)}${countText(model)}`}
        </span>
      ))}
    </span>
    <span className="row-side">
      <span>{`${grouped(tokens)} tokens`}</span>
      {cost > 0 && <span>{dollars(cost)}</span>}
    </span>
  </li>
);

interface Shown {
  readonly project: Project;
  readonly used: Used;
}

const Usage = ({ data: { used } }: { readonly data: Shown }) => {
  const days = byDay(used.days);
  const busiest = Math.max(...days.map(({ tokens }) => tokens));
  const limits = knownRole() === null && (
    <p className="after-heading">
      <a href="#/models?show=limits">Limits of spend, and what each person spent</a>
    </p>
  );
  if (days.length === 0)
    return (
      <>
        {limits}
        <Empty title="No model was used in the last 30 days.">
          This page shows the tokens and the cost of the project's sessions, by day and model.
        </Empty>
      </>
    );
  return (
    <>
      <p className="quiet usage-sum">{`Last 30 days: ${usageText(used.total)}. Days are in UTC.`}</p>
      {limits}
      <ul className="rows">
        {days.map((day) => (
          <DayRow key={day.day} of={day} busiest={busiest} />
        ))}
      </ul>
    </>
  );
};

export const usage = framedPage<Shown>({
  load: async ([pid = ""]) => {
    const params = { pid };
    const [project, used] = await Promise.all([
      request("GET /v1/projects/:pid", { params }),
      request("GET /v1/projects/:pid/usage", { params }),
    ]);
    return { project, used };
  },
  title: ({ project }) => `Usage of ${project.name}`,
  head: headOf("/usage"),
  Body: Usage,
});
