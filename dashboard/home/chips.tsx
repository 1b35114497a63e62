/** The choices of the next session, as a row of small menus. */
import { useQuery } from "@tanstack/react-query";
import type { Draft, Project } from "./draft.ts";
import { agentOffers, modelOffers, type Offer, runtimeOf, type SessionOptions } from "./fitting.ts";
import { optionsQuery } from "./options.ts";

interface Pick {
  readonly label: string;
  readonly value: string;
  readonly options: readonly Offer[];
  readonly onChange: (value: string) => void;
}

/** A choice of the next session. One that was remembered stays, even if it is not offered now. */
const ChipPick = ({ label, value, options, onChange }: Pick) => {
  const isOffered = options.some((option) => option.value === value);
  return (
    <select
      className="chip-pick"
      value={value}
      aria-label={label}
      title={label}
      onChange={({ target }) => onChange(target.value)}
    >
      {(isOffered ? options : [offered(value), ...options]).map(({ value: option, words, reason }) => (
        <option key={option} value={option} disabled={reason !== null} title={reason ?? undefined}>
          {reason === null ? words : `${words}: ${reason}`}
        </option>
      ))}
    </select>
  );
};

const offered = (value: string, words = value): Offer => ({ value, words, reason: null });

const NO_OPTIONS: SessionOptions = {
  default_branch: "",
  branches: [],
  agents: [],
  agent_choices: [],
  runtimes: [],
  providers: [],
  default_model: null,
  models: [],
};

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

/** Where the next session works, as which agent, and with which model. */
export const Chips = ({ projects, project, draft: { choice, choose, moveTo } }: Chips) => {
  const { data } = useQuery(optionsQuery(project.id));
  const options = data ?? NO_OPTIONS;
  const agents = agentOffers(options);
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
        options={agents.length === 0 ? [offered("", "The project's agent")] : agents}
        onChange={(agent_name) => choose({ ...choice, agent_name })}
      />
      <ChipPick
        label="Model"
        value={choice.agent_model}
        options={modelOffers(options, choice.agent_name)}
        onChange={(agent_model) => choose({ ...choice, agent_model })}
      />
    </>
  );
};
