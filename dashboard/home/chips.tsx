/** The choices of the next session, as a row of small menus. */
import { useQuery } from "@tanstack/react-query";
import { ModelMenu } from "../ui/model-menu.tsx";
import type { Draft, Project } from "./draft.ts";
import {
  agentOffers,
  effortOffers,
  modelOffers,
  NO_OPTIONS,
  type Offer,
  planOffers,
  runtimeOf,
  withAgent,
} from "./fitting.ts";
import { offered, Offers } from "./offers.tsx";
import { optionsQuery } from "./options.ts";

interface Pick {
  readonly label: string;
  readonly value: string;
  readonly options: readonly Offer[];
  readonly onChange: (value: string) => void;
}

/** A choice of the next session. */
const ChipPick = ({ label, value, options, onChange }: Pick) => (
  <select
    className="chip-pick"
    value={value}
    aria-label={label}
    title={label}
    onChange={({ target }) => onChange(target.value)}
  >
    <Offers offers={options} chosen={value} />
  </select>
);

/** The missing abilities of the chosen agent's runtime, with the reasons. */
export const AgentLacks = ({ project, draft: { choice } }: Omit<Chips, "projects">) => {
  const { data: options } = useQuery(optionsQuery(project.id));
  const runtime = runtimeOf(options ?? NO_OPTIONS, choice.agent_name);
  if (runtime === undefined || runtime.lacks.length === 0) return null;
  return (
    <details className="lacks quiet">
      <summary>{`Missing in ${runtime.name}`}</summary>
      {runtime.lacks.map(({ ability, reason }) => (
        <p key={ability}>{reason}</p>
      ))}
    </details>
  );
};

interface Chips {
  readonly projects: readonly Project[];
  readonly project: Project;
  readonly draft: Draft;
}

/** Where the next session works, as which agent, with which model, whether it plans first, and how hard the model thinks. */
export const Chips = ({ projects, project, draft: { choice, choose, moveTo } }: Chips) => {
  const { data } = useQuery(optionsQuery(project.id));
  const options = data ?? NO_OPTIONS;
  const efforts = effortOffers(options, choice.agent_name);
  const branch = project.default_branch;
  const others = options.branches.filter((name) => name !== branch);
  return (
    <>
      <ChipPick
        label="Project"
        value={project.id}
        options={projects.map(({ id, name }) => offered(id, name))}
        onChange={moveTo}
      />
      <ChipPick
        label="Branch"
        value={choice.base_ref}
        options={[offered("", branch), ...others.map((name) => offered(name))]}
        onChange={(base_ref) => choose({ ...choice, base_ref })}
      />
      <ChipPick
        label="Agent"
        value={choice.agent_name}
        options={agentOffers(options)}
        onChange={(agent_name) => choose(withAgent(options, choice, agent_name))}
      />
      <ModelMenu
        label="Model"
        className="chip-pick"
        {...modelOffers(options, choice.agent_name)}
        value={choice.agent_model}
        onChoose={(agent_model) => choose({ ...choice, agent_model })}
      />
      <ChipPick
        label="Plan"
        value={choice.mode}
        options={planOffers(options, choice.agent_name)}
        onChange={(mode) => choose({ ...choice, mode })}
      />
      {efforts.length > 0 && (
        <ChipPick
          label="Effort"
          value={choice.effort}
          options={efforts}
          onChange={(effort) => choose({ ...choice, effort })}
        />
      )}
    </>
  );
};
