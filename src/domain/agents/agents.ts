/**
 * The agents that a project's tables define, on the runtimes that the installation offers.
 *
 *  A1 A name without a table is an agent of the installation's own runtime, which reads the agent's file by itself.
 *  A2 A field that the runtime cannot use is an error by name. No field is left out silently.
 *  A3 A table with an error makes no agent: a session or trigger that names it gets the error's words.
 *  A4 The agents of a fallback run in the session's own runtime process, so they differ from its agent by what a message can choose. A
 *     program that is pointed to a provider when it starts keeps that.
 */
import { isDeepStrictEqual } from "node:util";
import * as Result from "effect/Result";
import type { OfferedRuntimes } from "../runtimes/runtimes.ts";
import { withCommand } from "../runtimes/runtimes.ts";
import type { Permissions, Runtime, StartableRuntime } from "../runtimes/runtime.ts";
import { DEFAULT_AGENT, isAgentModel } from "../sandbox/agent.ts";
import { modelProvider } from "../sandbox/model.ts";
import type { LaunchAgent, LaunchFallback, LaunchRuntime } from "../sandbox/launch.ts";
import type { EntryFault } from "../trigger/trigger.ts";
import type { AgentTable } from "./table.ts";

export interface Agent {
  readonly name: string;
  readonly runtime: StartableRuntime;
  /** Null means the project's, or the runtime's own. */
  readonly model: string | null;
  readonly mode: string | null;
  /** How hard its model thinks. Null means the model's own. */
  readonly effort: string | null;
  /** If null, the runtime decides. */
  readonly permissions: Permissions | null;
  /** A file of the checkout. Null means `<config_dir>/agents/<name>.md`, if it exists. */
  readonly instructions: string | null;
  /** Whether a table defines it. Without one, it has a file or is the default. */
  readonly hasTable: boolean;
  /** The agents with which its turns go on if its model refuses, the first to try first, each once (fallback.ts). */
  readonly fallback: readonly LaunchFallback[];
}

/** The agents of tables by name, or why a table makes none. */
export type Agents = ReadonlyMap<string, Result.Result<Agent, readonly EntryFault[]>>;

const listNames = (names: readonly string[]): string => names.join(", ");

/** The table's runtime with its command, or what is wrong with either. */
const startable = (
  { runtime: wanted, command }: AgentTable,
  runtimes: OfferedRuntimes,
): Result.Result<StartableRuntime, EntryFault> => {
  const runtime: Runtime | undefined =
    wanted === null ? runtimes[0] : runtimes.find(({ name }) => name === wanted);
  if (runtime === undefined)
    return Result.fail({
      field: "runtime",
      message: `There is no runtime ${wanted}. This installation offers: ${listNames(runtimes.map(({ name }) => name))}.`,
    });
  if (command !== null && !runtime.takesCommand)
    return Result.fail({
      field: "command",
      message: `The runtime ${runtime.name} has its own command. Remove command, or choose another runtime.`,
    });
  const words = command ?? runtime.command;
  return words === null
    ? Result.fail({
        field: null,
        message: `The runtime ${runtime.name} needs command, such as command = ["our-agent", "--acp"].`,
      })
    : Result.succeed(withCommand(runtime, words));
};

/** What the runtime cannot use of the table (A2). */
const unusable = (table: AgentTable, runtime: StartableRuntime): readonly EntryFault[] => {
  const { name, models, modes, permissions, instructions, efforts, lacks } = runtime;
  const faults: EntryFault[] = [];
  const refuse = (field: keyof AgentTable, message: string) => faults.push({ field, message });
  const nothing = (field: keyof AgentTable) => refuse(field, `The runtime ${name} takes no ${field}.`);
  if (table.model !== null) {
    if (models === null) nothing("model");
    else if (models === "platform" && !isAgentModel(table.model))
      refuse("model", "model must have the form provider/model, such as anthropic/claude-sonnet-4-6.");
  }
  if (table.mode !== null && modes !== "any" && !modes.includes(table.mode)) {
    if (modes.length === 0) nothing("mode");
    else refuse("mode", `The runtime ${name} has no mode ${table.mode}. Choose one of: ${listNames(modes)}.`);
  }
  if (table.effort !== null && !efforts)
    refuse("effort", `The runtime ${name} takes no effort. ${lacks.effort_changes ?? ""}`.trim());
  if (table.permissions !== null && !permissions.includes(table.permissions)) {
    if (permissions.length === 0) nothing("permissions");
    else
      refuse("permissions", `The runtime ${name} can only have permissions = "${listNames(permissions)}".`);
  }
  if (table.instructions !== null && !instructions) nothing("instructions");
  if (table.fallback !== null && models === null) nothing("fallback");
  return faults;
};

const agentOfTable = (
  table: AgentTable,
  runtimes: OfferedRuntimes,
): Result.Result<Agent, readonly EntryFault[]> => {
  const runtime = startable(table, runtimes);
  if (Result.isFailure(runtime)) return Result.fail([runtime.failure]);
  const faults = unusable(table, runtime.success);
  if (faults.length > 0) return Result.fail(faults);
  const { name, model, mode, effort, permissions, instructions } = table;
  return Result.succeed({
    name,
    runtime: runtime.success,
    model,
    mode,
    effort,
    permissions,
    instructions,
    hasTable: true,
    fallback: [],
  });
};

type Read<A> = Result.Result<A, readonly EntryFault[]>;
/** The names of each table's fallback. */
type Named = (name: string) => readonly string[];

/** The names that an agent's fallback leads to, each once: one that is named comes before what its own table names. */
const ledTo = (name: string, models: Named, visits = new Set<string>()): ReadonlySet<string> => {
  for (const next of models(name))
    if (!visits.has(next)) {
      visits.add(next);
      ledTo(next, models, visits);
    }
  return visits;
};

/** What the agent needs from the process that runs (A4). */
const agentProcess = (agent: Agent) => agentStart(agent, null).runtime;

/** Why a turn of the agent cannot go on with another one (A4). Null if it can, as far as the manifest tells. */
const unfit = (agent: Agent, other: Read<Agent> | undefined, name: string): string | null => {
  if (other === undefined) return `There is no table [agents.${name}].`;
  if (Result.isFailure(other)) return `The agent ${name} has an error.`;
  const { runtime, model } = other.success;
  if (runtime.name !== agent.runtime.name)
    return (
      `The agent ${name} has the runtime ${runtime.name}, and ${agent.name} has ${agent.runtime.name}. ` +
      "A turn cannot go on in another runtime."
    );
  if (!isDeepStrictEqual(agentProcess(other.success), agentProcess(agent)))
    return `The agent ${name} must have the same command and permissions as ${agent.name}: the program keeps them while it runs.`;
  if (model === null) return `The agent ${name} must have a model: the turn goes on with it.`;
  if (agent.model === null || agent.model === model) return null;
  if (!reaches(runtime, agent.model, model))
    return `The agent ${name} has a model of another provider, and ${runtime.name} keeps its provider while it runs.`;
  const reason = runtime.lacks.model_changes;
  return reason === undefined || !isAgentModel(model)
    ? null
    : `The turn cannot go on with the model of ${name}. ${reason}`;
};

/** The provider of `provider/model`. Null if the name is the runtime's own. */
const providerIn = (model: string): string | null => (isAgentModel(model) ? modelProvider(model) : null);

/** Whether a process of the runtime that began with one model can have the other one (A4). */
const reaches = ({ models, providers }: Runtime, from: string, to: string): boolean =>
  models !== "own" || providers === null || providerIn(from) === providerIn(to);

/** The agents with their fallbacks. */
const withFallbacks = (agents: ReadonlyMap<string, Read<Agent>>, models: Named): Agents => {
  const one = (agent: Agent): Read<Agent> => {
    const led = ledTo(agent.name, models);
    const faults = models(agent.name).map((name) => unfit(agent, agents.get(name), name));
    const circle = led.has(agent.name) ? `The fallback of ${agent.name} leads back to it.` : null;
    const messages = [circle, ...faults].filter((message) => message !== null);
    if (messages.length > 0) return Result.fail(messages.map((message) => ({ field: "fallback", message })));
    const fallback = [...led].flatMap((name) => {
      const other = agents.get(name);
      if (other === undefined || Result.isFailure(other) || other.success.model === null) return [];
      const { model, mode, effort } = other.success;
      return [{ name, model, mode, ...(effort !== null && { effort }) }];
    });
    return Result.succeed({ ...agent, fallback });
  };
  return new Map([...agents].map(([name, agent]) => [name, Result.flatMap(agent, one)]));
};

/** @param tables as the manifest has them, each name once; a failure has the faults that its reading found */
export const listAgents = (
  tables: ReadonlyMap<string, Result.Result<AgentTable, readonly EntryFault[]>>,
  runtimes: OfferedRuntimes,
): Agents =>
  withFallbacks(
    new Map(
      [...tables].map(([name, table]) => [name, Result.flatMap(table, (one) => agentOfTable(one, runtimes))]),
    ),
    (name) => {
      const table = tables.get(name);
      return table !== undefined && Result.isSuccess(table) ? (table.success.fallback ?? []) : [];
    },
  );

/** The agent of a name, or why it does not exist, as sentences (A1, A3). Whether a name without a table has a file is not known here. */
export const agentNamed = (
  agents: Agents,
  name: string,
  runtimes: OfferedRuntimes,
): Result.Result<Agent, string> => {
  const own = agents.get(name);
  if (own !== undefined)
    return Result.mapError(own, (faults) => faults.map(({ message }) => message).join(" "));
  return Result.succeed({
    name,
    runtime: runtimes[0],
    model: null,
    mode: null,
    effort: null,
    permissions: null,
    instructions: null,
    hasTable: false,
    fallback: [],
  });
};

/** Whether a name needs no file (spec.md 2.4). */
export const needsNoFile = (agents: Pick<Agents, "has">, name: string): boolean =>
  name === DEFAULT_AGENT || agents.has(name);

/** Whether any agent of the project has a model that the platform sets up. */
export const needsPlatformModel = (agents: Agents, runtimes: OfferedRuntimes): boolean =>
  [runtimes[0], ...[...agents.values()].map((agent) => Result.getOrNull(agent)?.runtime)].some(
    (runtime) => runtime?.models === "platform",
  );

/**
 * What starts the agent in a sandbox.
 *
 * @param model the session's choice. If null, the agent's own holds
 */
export const agentStart = (
  { runtime, model: own, mode, effort, permissions, instructions, hasTable, fallback }: Agent,
  model: string | null,
): { readonly runtime: LaunchRuntime; readonly agent: LaunchAgent | null; readonly model: string | null } => {
  const { name, adapter, command, variables, modelVariable, packaged, files, takesServers, history, plan } =
    runtime;
  const startModel = model ?? own;
  const reachableFallback = fallback.filter(
    ({ model: next }) => startModel === null || reaches(runtime, startModel, next),
  );
  const inVariable = modelVariable === null || startModel === null ? {} : { [modelVariable]: startModel };
  return {
    runtime: {
      adapter,
      command,
      variables,
      permissions,
      ...(takesServers && { takesServers }),
      ...(plan !== null && { plan: { mode: plan.mode, next: plan.next } }),
      ...(plan?.asks !== undefined && { planTitle: plan.asks }),
      ...(history !== null && { history: { runtime: name, files: history } }),
      ...(packaged !== null && {
        packaged: {
          name,
          start: packaged === "entry" ? null : { command: packaged.command, variables: packaged.variables },
        },
      }),
    },
    agent: hasTable
      ? {
          mode: mode ?? runtime.mode,
          instructions,
          variables: inVariable,
          ...(Object.keys(files).length > 0 && { files }),
          ...(effort !== null && { effort }),
          ...(reachableFallback.length > 0 && { fallback: reachableFallback }),
        }
      : null,
    model: startModel,
  };
};

/** Whether a sandbox that waits for a session can get one of this agent: it waits with the runtime of the default agent. */
export const waitsAs = (agents: Agents, name: string, runtimes: OfferedRuntimes): boolean => {
  const [waiting, wanted] = [DEFAULT_AGENT, name].map((one) => agentNamed(agents, one, runtimes));
  if (waiting === undefined || wanted === undefined) return false;
  if (Result.isFailure(waiting) || Result.isFailure(wanted)) return false;
  return isDeepStrictEqual(agentProcess(waiting.success), agentProcess(wanted.success));
};
