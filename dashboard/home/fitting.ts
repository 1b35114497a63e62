/** Which agents, models, efforts and modes the next session can have, and why not the others. It uses no document. */
import type { Answer } from "../../src/cli/contract.ts";

export type SessionOptions = Answer<"GET /v1/projects/:pid/session-options">;

type Agent = SessionOptions["agent_choices"][number];
type Runtime = SessionOptions["runtimes"][number];
type Options = Pick<SessionOptions, "agent_choices" | "runtimes" | "model_choices" | "default_model">;

/** Empty strings: the project's own. The names are those of the API. */
export interface Choice {
  readonly base_ref: string;
  readonly agent_name: string;
  readonly agent_model: string;
  readonly effort: string;
  readonly mode: string;
}

/** Before the answer, and while the repository cannot be read. */
export const NO_OPTIONS: SessionOptions = {
  default_branch: "",
  branches: [],
  agents: [],
  agent_choices: [],
  runtimes: [],
  providers: [],
  default_model: null,
  models: [],
  model_choices: [],
};

export interface Offer {
  readonly value: string;
  readonly words: string;
  /** Why it cannot be chosen. Null: it can. */
  readonly reason: string | null;
}

/** @param name empty: the agent of sessions that choose none */
export const agentOf = ({ agent_choices: agents }: Options, name: string): Agent | undefined =>
  agents.find((agent) => agent.name === (name === "" ? "default" : name));

/** The runtime of an agent. Undefined: not known. */
export const runtimeOf = (options: Options, name: string): Runtime | undefined => {
  const runtime = agentOf(options, name)?.runtime;
  return options.runtimes.find((one) => one.name === runtime);
};

/** Each with its runtime. The agent of sessions that choose none has no name of its own but that of its runtime. */
export const agentOffers = ({ agent_choices: agents }: Options): readonly Offer[] =>
  agents.length === 0
    ? [{ value: "", words: "The project's agent", reason: null }]
    : agents.map(({ name, runtime, problem }) => {
        const program = runtime ?? "cannot start";
        return name === "default"
          ? { value: "", words: program, reason: problem }
          : { value: name, words: `${name} (${program})`, reason: problem };
      });

const whyNot = ({ name, models, takes_command: isAny, provider_models: fitting }: Runtime, model: string) => {
  if (models === null) return `${name} takes no model`;
  // It may be any program.
  if (isAny || fitting.includes(model)) return null;
  const isOfProvider = model.includes("/");
  if (models === "platform") return isOfProvider ? null : `${name} takes provider/model`;
  return isOfProvider ? `${name} does not speak to this provider` : null;
};

/** The model of a session that chooses none. Null: it is not known. */
const ownModel = (options: Options, name: string): string | null => {
  const model = agentOf(options, name)?.model ?? null;
  if (model !== null || runtimeOf(options, name)?.models === "own") return model;
  return options.default_model;
};

/** What the menu of models offers to an agent (dashboard/ui/model-menu.tsx). @param name of the agent. Empty: that of sessions that choose none */
export const modelOffers = (options: Options, name: string) => {
  const runtime = runtimeOf(options, name);
  const own = ownModel(options, name);
  const words = own !== null ? "Default" : runtime?.models === "own" ? "Its own model" : "Default model";
  const model = options.model_choices.find(({ id }) => id === own) ?? (own === null ? null : { id: own });
  return {
    own: { words, model },
    models: options.model_choices.filter(({ id }) => id !== own),
    /** Why the agent cannot have a model. Null: it can. */
    whyNot: (id: string): string | null => (runtime === undefined ? null : whyNot(runtime, id)),
  };
};

/** Which efforts a model takes is known once its runtime runs. Nearly all of those that take one take these. */
const EFFORTS: ReadonlyMap<string, string> = new Map([
  ["low", "Low effort"],
  ["medium", "Medium effort"],
  ["high", "High effort"],
]);

/** @param name of the agent @returns none: its runtime is not known, or takes no effort */
export const effortOffers = (options: Options, name: string): readonly Offer[] => {
  if (runtimeOf(options, name)?.efforts !== true) return [];
  const own = agentOf(options, name)?.effort ?? null;
  const first =
    own === null
      ? [{ value: "", words: "Usual effort", reason: null }]
      : [
          { value: "", words: `The agent's effort, ${own}`, reason: null },
          { value: "default", words: "Usual effort", reason: null },
        ];
  const others = [...EFFORTS].filter(([effort]) => effort !== own);
  return [...first, ...others.map(([value, words]) => ({ value, words, reason: null }))];
};

/** Why the agent's runtime takes no effort. Null: it takes one, or is not known. */
export const whyNoEffort = (options: Options, name: string): string | null => {
  const runtime = runtimeOf(options, name);
  if (runtime === undefined || runtime.efforts) return null;
  const lack = runtime.lacks.find(({ ability }) => ability === "effort_changes");
  return lack?.reason ?? `${runtime.name} takes no effort`;
};

/** Why the agent's runtime cannot plan before it works. Null: it can, or is not known. */
const whyNoPlan = (runtime: Runtime | undefined): string | null => {
  if (runtime === undefined || runtime.plan_mode !== null) return null;
  const lack = runtime.lacks.find(({ ability }) => ability === "plans");
  return lack?.reason ?? `${runtime.name} cannot plan`;
};

/** Whether the agent plans before it works. @param name of the agent */
export const planOffers = (options: Options, name: string): readonly Offer[] => {
  const runtime = runtimeOf(options, name);
  const plan = runtime?.plan_mode ?? "plan";
  // The agent's table says it.
  if (agentOf(options, name)?.mode === plan) return [{ value: "", words: "Plan first", reason: null }];
  return [
    { value: "", words: "No plan", reason: null },
    { value: plan, words: "Plan first", reason: whyNoPlan(runtime) },
  ];
};

const fitting = (offers: readonly Offer[], chosen: string): string =>
  offers.some(({ value, reason }) => value === chosen && reason === null) ? chosen : "";

/** The choice with another agent, without an effort or a mode that its runtime does not take. */
export const withAgent = (options: Options, choice: Choice, name: string): Choice => ({
  ...choice,
  agent_name: name,
  effort: fitting(effortOffers(options, name), choice.effort),
  mode: fitting(planOffers(options, name), choice.mode),
});
