/** The agents of a project, as its `platform.toml` and its files of agents define them, and what their runtimes lack. */
import { useQuery } from "@tanstack/react-query";
import { Fragment, type ReactNode } from "react";
import type { Answer } from "../../src/cli/contract.ts";
import { optionsQuery } from "../home/options.ts";
import { Callout, Detail, Row, Table, Tag } from "../ui/parts.tsx";

type Options = Answer<"GET /v1/projects/:pid/session-options">;
type Agent = Options["agent_choices"][number];
type Runtime = Options["runtimes"][number];

const HEADS = ["Agent", "Runtime and model", "Settings", "Its runtime lacks"];

const Reasons = ({ lacks }: Pick<Runtime, "lacks">) =>
  lacks.map(({ ability, reason }) => <Detail key={ability}>{reason}</Detail>);

const Lacks = ({ runtime }: { readonly runtime: Runtime | undefined }) =>
  runtime === undefined || runtime.lacks.length === 0 ? (
    "nothing"
  ) : (
    <details>
      <summary>{runtime.lacks.length === 1 ? "1 ability" : `${runtime.lacks.length} abilities`}</summary>
      <Reasons lacks={runtime.lacks} />
    </details>
  );

const Model = ({ agent, runtime }: { readonly agent: Agent; readonly runtime: Runtime | undefined }) => {
  if (agent.model !== null) return <code>{agent.model}</code>;
  return <Detail>{runtime?.models === "own" ? "its runtime's default" : "the project's default"}</Detail>;
};

/** What its table sets beside runtime and model. */
const Settings = ({ agent: { mode, permissions, fallback } }: { readonly agent: Agent }) => {
  const rows = [
    ["mode", mode],
    ["permissions", permissions],
    ["falls back to", fallback.length === 0 ? null : fallback.join(", ")],
  ] as const;
  const set = rows.filter(([, value]) => value !== null);
  return set.length === 0 ? (
    <Detail>none</Detail>
  ) : (
    set.map(([name, value]) => (
      <span key={name} className="agent-setting">
        <Detail>{name}</Detail> {value}
      </span>
    ))
  );
};

const cellsOf = (agent: Agent, runtime: Runtime | undefined): readonly ReactNode[] =>
  agent.problem === null
    ? [
        <strong key="name">{agent.name}</strong>,
        <Fragment key="runtime">
          <code>{agent.runtime}</code>
          <span className="agent-setting">
            <Model agent={agent} runtime={runtime} />
          </span>
        </Fragment>,
        <Settings key="settings" agent={agent} />,
        <Lacks key="lacks" runtime={runtime} />,
      ]
    : [
        <strong key="name">{agent.name}</strong>,
        <Tag key="problem" tone="bad">
          cannot start
        </Tag>,
        "",
        "",
      ];

const Problems = ({ agents }: { readonly agents: readonly Agent[] }) => {
  const broken = agents.filter(({ problem }) => problem !== null);
  return broken.length === 0 ? null : (
    <Callout tone="bad">
      <ul>
        {broken.map(({ name, problem }) => (
          <li key={name}>
            <strong>{name}</strong> cannot start: {problem}
          </li>
        ))}
      </ul>
    </Callout>
  );
};

/** The runtimes that no agent uses yet. */
const Unused = ({ runtimes }: { readonly runtimes: readonly Runtime[] }) =>
  runtimes.length === 0 ? null : (
    <details>
      <summary>What other runtimes lack</summary>
      <ul className="rows">
        {runtimes.map(({ name, lacks }) => (
          <Row key={name} states={null}>
            <strong>{name}</strong>
            <Reasons lacks={lacks} />
          </Row>
        ))}
      </ul>
    </details>
  );

export const AgentsPart = ({ pid }: { readonly pid: string }) => {
  const { data: options } = useQuery(optionsQuery(pid));
  if (options === undefined) return null;
  if (options === null) return <p className="quiet">The repository cannot be read now.</p>;
  const { agent_choices: agents, runtimes } = options;
  const runtimeOf = (agent: Agent) => runtimes.find(({ name }) => name === agent.runtime);
  const used = new Set(agents.map(({ runtime }) => runtime));
  return (
    <>
      <p>
        A person chooses one for each session, and a trigger names one. <code>[agents.NAME]</code> in{" "}
        <code>platform.toml</code> defines them.
      </p>
      <Problems agents={agents} />
      <Table heads={HEADS} rows={agents.map((agent) => cellsOf(agent, runtimeOf(agent)))} />
      <Unused runtimes={runtimes.filter(({ name, lacks }) => !used.has(name) && lacks.length > 0)} />
    </>
  );
};
