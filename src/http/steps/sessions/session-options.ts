/** `GET /v1/projects/{pid}/session-options`: what a person can choose from when she starts a session. */
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import { modelFault, spokenProviders } from "../../../domain/agents/agent-provider.ts";
import type { AccountProvider } from "../../../domain/sandbox/account-provider.ts";
import { type Agent, agentNamed, type Agents } from "../../../domain/agents/agents.ts";
import { lackedBy, type Runtime } from "../../../domain/runtimes/runtime.ts";
import type { OfferedRuntimes } from "../../../domain/runtimes/runtimes.ts";
import { DEFAULT_AGENT } from "../../../domain/sandbox/agent.ts";
import { knownFacts } from "../../../domain/model/known-models.ts";
import { MODEL_PROVIDERS, offeredModels } from "../../../domain/sandbox/model.ts";
import { isWishBranch } from "../../../domain/trigger/wish-branch.ts";
import { GitBackend, type Repository } from "../../../git/port.ts";
import { knownAgents } from "../../../services/projects/agents.ts";
import { usableModels } from "../../../services/projects/account-models.ts";
import { configuresModel, ModelPolicy, projectModel } from "../../../services/projects/models.ts";
import { agentFilesAt } from "../../../services/projects/repository.ts";
import { Runtimes } from "../../../services/projects/runtimes.ts";
import { Sessions } from "../../../store/ports/sessions/sessions.ts";
import { callingPerson } from "../../callers/person.ts";
import { Caller } from "../../api/access.ts";
import { gitFailed } from "../../answers/refusals.ts";
import { projectFor } from "../answers.ts";

/** How many branches an answer names. */
export const OPTIONS_MAX = 200;
/** The models of this many newest sessions are offered again. */
const RECENT_SESSIONS = 50;
/** What a runtime can, for people who choose. `modes` is null if they are known once it runs. */
const runtimeWire = (runtime: Runtime, providers: readonly AccountProvider[]) => ({
  name: runtime.name,
  takes_command: runtime.takesCommand,
  models: runtime.models,
  provider_models: offeredModels(spokenProviders(runtime, providers)),
  modes: runtime.modes === "any" ? null : runtime.modes,
  plan_mode: runtime.plan?.mode ?? null,
  command_files: runtime.commandFiles,
  efforts: runtime.efforts,
  permissions: runtime.permissions,
  instructions: runtime.instructions,
  conversation: runtime.conversation,
  lacks: lackedBy(runtime),
});

interface Choices {
  /** The names of agents with a file. */
  readonly files: readonly string[];
  readonly defined: Agents;
  readonly offered: OfferedRuntimes;
}

const brokenChoice = (name: string, problem: string) => ({
  name,
  runtime: null,
  model: null,
  mode: null,
  effort: null,
  permissions: null,
  fallback: [],
  problem,
});

/** @param problem why its model cannot be used, or null if it can, as far as is known */
const agentChoice = (
  { name, runtime, model, mode, effort, permissions, fallback }: Agent,
  problem: string | null,
) => ({
  name,
  runtime: runtime.name,
  model,
  mode,
  effort,
  permissions,
  fallback: fallback.map((other) => other.name),
  problem,
});

/** The default agent first, the others by name. */
const listAgents = ({ files, defined, offered }: Choices) => {
  const others = new Set([...files, ...defined.keys()].toSorted());
  return [...new Set([DEFAULT_AGENT, ...others])].map((name) => ({
    name,
    agent: agentNamed(defined, name, offered),
  }));
};

const isSetUp = ({ runtime }: Agent): boolean => runtime.models === "platform";

/** Each agent. One that cannot start, or whose model no provider has, says why. */
const agentChoices = Effect.fnUntraced(function* (
  choices: Choices,
  sources: Parameters<typeof modelFault>[2],
  { repository, commit }: { readonly repository: Repository; readonly commit: string | null },
) {
  const { required } = yield* ModelPolicy;
  const agents = listAgents(choices);
  const agentFault = (agent: Agent) => (required ? modelFault(agent, agent.model, sources) : null);
  const asks = agents.some(
    ({ agent }) => Result.isSuccess(agent) && isSetUp(agent.success) && agentFault(agent.success) !== null,
  );
  const isConfigured = asks && commit !== null && (yield* configuresModel(repository, commit));
  return agents.map(({ name, agent }) => {
    if (Result.isFailure(agent)) return brokenChoice(name, agent.failure);
    return agentChoice(
      agent.success,
      isConfigured && isSetUp(agent.success) ? null : agentFault(agent.success),
    );
  });
});

/** @returns the branches, agents and models to choose from. A session may name others, as `POST …/sessions` says. */
export const listSessionOptions = Effect.fnUntraced(function* (pid: string) {
  const project = yield* projectFor(yield* Caller, pid);
  const repository = { projectId: project.id };
  const { defaults } = yield* ModelPolicy;
  const runtimes = yield* Runtimes;
  const agents = yield* knownAgents(project.id);
  const { id: projectId, accountId } = project;
  const personId = yield* callingPerson;
  const { secretNames, standings, providers } = yield* usableModels({ accountId, projectId, personId });
  const git = yield* GitBackend;
  const read = Effect.gen(function* () {
    const commit = yield* git.branchTip(repository, project.defaultBranch);
    const files = commit === null ? [] : yield* agentFilesAt(repository, commit);
    const sources = { providers: standings.map(({ provider }) => provider), secretNames };
    return {
      branches: (yield* git.branches(repository, { limit: OPTIONS_MAX })).filter(
        (name) => !isWishBranch(name),
      ),
      files,
      model: yield* projectModel(project, { secretNames, commit, personId }),
      choices: yield* agentChoices({ files, defined: agents, offered: runtimes }, sources, {
        repository,
        commit,
      }),
    };
  });
  const { branches, files, model, choices } = yield* Effect.catchTag(read, "GitError", (error) =>
    gitFailed(error),
  );
  const recent = yield* (yield* Sessions).list(project.id, {
    limit: RECENT_SESSIONS,
    cursor: null,
    status: null,
  });
  const keyedProviders = MODEL_PROVIDERS.filter(({ keys }) => keys.some((key) => secretNames.includes(key)));
  const modelIds = [
    model.model,
    ...offeredModels(providers),
    ...keyedProviders.map(({ id, model: known }) => `${id}/${defaults[id] ?? known}`),
    ...recent.items.map(({ agentModel }) => agentModel),
  ];
  const choice = (id: string) => ({ id, ...knownFacts(id, providers) });
  const models = [...new Set(modelIds.filter((one) => one !== null))];
  return {
    default_branch: project.defaultBranch,
    branches,
    agents: [...new Set([...files, ...agents.keys()])].toSorted(),
    agent_choices: choices,
    runtimes: runtimes.map((runtime) => runtimeWire(runtime, providers)),
    providers: standings.map(({ provider: { name, kind, owner, models: own }, unused }) => ({
      name,
      kind,
      owner,
      models: own,
      unused,
    })),
    default_model: model.model,
    models,
    model_choices: models.map(choice),
  };
});
