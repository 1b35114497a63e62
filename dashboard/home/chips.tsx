/** The choices of the next session, as a row of small menus. */
import { useQuery } from "@tanstack/react-query";
import type { SessionOptions } from "../wire.d.ts";
import { runtimeWords } from "../projects/new-session.js";
import type { Draft, Project } from "./draft.ts";
import { optionsQuery } from "./options.ts";

type Agent = SessionOptions["agent_choices"][number];

interface Pick {
  readonly label: string;
  readonly value: string;
  readonly options: readonly (readonly [value: string, words: string])[];
  readonly onChange: (value: string) => void;
}

/** A choice of the next session. One that was remembered stays, even if it is not offered now. */
const ChipPick = ({ label, value, options, onChange }: Pick) => {
  const isOffered = options.some(([option]) => option === value);
  return (
    <select
      className="chip-pick"
      value={value}
      aria-label={label}
      title={label}
      onChange={({ target }) => onChange(target.value)}
    >
      {(isOffered ? options : [[value, value] as const, ...options]).map(([option, words]) => (
        <option key={option} value={option}>
          {words}
        </option>
      ))}
    </select>
  );
};

const sameWords = (names: readonly string[]): readonly (readonly [string, string])[] =>
  names.map((name) => [name, name]);

/** Each with its runtime. The empty value is the default agent. */
const agentOptions = (agents: readonly Agent[]): Pick["options"] =>
  agents.map((agent) => {
    const value = agent.name === "default" ? "" : agent.name;
    return [value, `${agent.name} (${runtimeWords(agent)})`];
  });

interface Chips {
  readonly projects: readonly Project[];
  readonly project: Project;
  readonly draft: Draft;
}

/** Where the next session works, as which agent, and with which model. */
export const Chips = ({ projects, project, draft: { choice, choose, moveTo } }: Chips) => {
  const { data: options } = useQuery(optionsQuery(project.id));
  const {
    branches = [],
    agent_choices: agents = [],
    models = [],
    default_model: model = null,
  } = options ?? {};
  const branch = project.default_branch;
  return (
    <>
      <ChipPick
        label="Project"
        value={project.id}
        options={projects.map(({ id, name }) => [id, name])}
        onChange={moveTo}
      />
      <ChipPick
        label="Branch"
        value={choice.base_ref}
        options={[["", branch], ...sameWords(branches.filter((name) => name !== branch))]}
        onChange={(base_ref) => choose({ ...choice, base_ref })}
      />
      <ChipPick
        label="Agent"
        value={choice.agent_name}
        options={agents.length === 0 ? [["", "Default agent"]] : agentOptions(agents)}
        onChange={(agent_name) => choose({ ...choice, agent_name })}
      />
      <ChipPick
        label="Model"
        value={choice.agent_model}
        options={[["", model ?? "Default model"], ...sameWords(models.filter((name) => name !== model))]}
        onChange={(agent_model) => choose({ ...choice, agent_model })}
      />
    </>
  );
};
