/**
 * Checks, before a session exists, whether it would have a language model (domain/sandbox/model.ts). A fire uses the project's
 * state in memory, a person's request uses the tables. If neither has one, the repository is checked.
 */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Option from "effect/Option";
import * as Result from "effect/Result";
import * as Schema from "effect/Schema";
import { modelFault } from "../../domain/agents/agent-provider.ts";
import { agentNamed, type Agent } from "../../domain/agents/agents.ts";
import type { OfferedRuntimes } from "../../domain/runtimes/runtimes.ts";
import { DEFAULT_AGENT } from "../../domain/sandbox/agent.ts";
import { knownAgent } from "./agents.ts";
import type { AccountProvider, ProviderOwner } from "../../domain/sandbox/account-provider.ts";
import { deliveredNames } from "../../domain/manifest/required-secrets.ts";
import { parseManifest } from "../../domain/manifest/manifest.ts";
import {
  bringsModel,
  chooseModel,
  GATEWAY_PROVIDER,
  modelProvider,
  runtimeConfigFiles,
  type DefaultModels,
  type ModelQuestion,
  usedProviders,
} from "../../domain/sandbox/model.ts";
import { GitBackend, type GitError, type Repository } from "../../git/port.ts";
import { SandboxProvider } from "../../sandbox/port.ts";
import { Identity } from "../../store/ports/people/identity.ts";
import { Secrets } from "../../store/ports/projects/secrets.ts";
import type { Project } from "../../store/ports/projects/projects.ts";
import type { Session } from "../../store/ports/sessions/sessions.ts";
import type { KnownProject } from "../directory.ts";
import { AccountModels } from "./account-models.ts";
import { fileText, manifestText } from "./repository.ts";

export interface ModelRules {
  /** False if the sandboxes are simulated. Else a runtime whose models the platform sets up must have one. */
  readonly required: boolean;
  /** The tiers that have the managed gateway. */
  readonly gatewayTiers: readonly string[];
  readonly defaults: DefaultModels;
  /** Of the managed gateway. It is in sandboxes, and masked where people read their work. */
  readonly gatewayKey: string | null;
}

/** The service's settings for models. */
export const ModelPolicy = Context.Reference<ModelRules>("platform/services/ModelPolicy", {
  defaultValue: () => ({ required: false, gatewayTiers: [], defaults: {}, gatewayKey: null }),
});

/** @param settings the managed gateway (PLATFORM_LLM_*), null without one, and the models of agents that name none */
export const modelPolicyLayer = (settings: {
  readonly llm: { readonly tiers: readonly string[]; readonly apiKey: string } | null;
  readonly defaultModels: DefaultModels;
}) =>
  Layer.effect(
    ModelPolicy,
    Effect.map(SandboxProvider, ({ name }) => ({
      // The simulated provider runs no model.
      required: name !== "simulated",
      gatewayTiers: settings.llm?.tiers ?? [],
      gatewayKey: settings.llm?.apiKey ?? null,
      defaults: settings.defaultModels,
    })),
  );

/** The session would have no model (api.md 3: 422 `no_model`); the message says what to set. */
export class NoModel extends Schema.TaggedError<NoModel>()("NoModel", { message: Schema.String }) {}

/** No provider that the session can use has its model (api.md 3: 422 `unknown_model`); the message names what there is. */
export class UnknownModel extends Schema.TaggedError<UnknownModel>()("UnknownModel", {
  message: Schema.String,
}) {}

/** Larger runtime configuration is ignored. */
const CONFIG_LIMIT = 1024 * 1024;

/** Whether the repository configures its own provider at the commit. */
export const repositoryBringsModel = Effect.fnUntraced(function* (
  repository: Repository,
  commit: string,
  configDir: string,
): Effect.fn.Return<boolean, GitError, GitBackend> {
  for (const path of runtimeConfigFiles(configDir)) {
    const text = yield* fileText(repository, { commit, path, maxBytes: CONFIG_LIMIT });
    if (text !== null && bringsModel(text)) return true;
  }
  return false;
});

/** The model of a session that names neither a model nor an agent, and what provides it. */
export interface ProjectModel {
  /** False: the agent runtime brings its own model. */
  readonly required: boolean;
  /** `provider/model`. Null if the repository chooses it, or without any model. */
  readonly model: string | null;
  readonly source: "gateway" | "secret" | "repository" | ProviderOwner | null;
}

interface Asked {
  /** Names of the project's secrets. */
  readonly secretNames: readonly string[];
  /** Where the repository's configuration is read. */
  readonly commit: string | null;
  /** Whose own providers the session may use. */
  readonly personId: string | null;
}

export const projectModel = Effect.fnUntraced(function* (
  project: Project,
  { secretNames, commit, personId }: Asked,
) {
  const { required: isRequired, gatewayTiers, defaults } = yield* ModelPolicy;
  const agent = yield* Effect.option(knownAgent(project.id, DEFAULT_AGENT));
  const { runtime = null, model: own = null } = Option.getOrNull(agent) ?? {};
  const needsModel = isRequired && runtime?.models === "platform";
  if (own !== null) return { required: needsModel, model: own, source: "repository" } satisfies ProjectModel;
  const gateway = yield* hasGateway(project, gatewayTiers);
  const { id: projectId, accountId } = project;
  const providers = yield* (yield* AccountModels)({ accountId, projectId, personId });
  const choice = chooseModel({ gateway, secretNames, agentModel: null, defaults, providers });
  // The repository's own configuration wins over both (domain/sandbox/model.ts, M2).
  if (commit !== null && (yield* configuresModel({ projectId: project.id }, commit))) {
    return { required: needsModel, model: null, source: "repository" } satisfies ProjectModel;
  }
  if (Result.isFailure(choice))
    return { required: needsModel, model: null, source: null } satisfies ProjectModel;
  const name = modelProvider(choice.success);
  const usedProvider = usedProviders(providers, secretNames).find((one) => one.name === name);
  const source = usedProvider?.owner ?? (name === GATEWAY_PROVIDER ? "gateway" : "secret");
  return { required: needsModel, model: choice.success, source } satisfies ProjectModel;
});

const hasGateway = Effect.fnUntraced(function* (project: Project, gatewayTiers: readonly string[]) {
  const account = gatewayTiers.length === 0 ? null : yield* (yield* Identity).account(project.accountId);
  return account !== null && gatewayTiers.includes(account.tier);
});

/** Whether the configuration directory that the manifest names, or the root, provides a model at the commit. */
export const configuresModel = Effect.fnUntraced(function* (repository: Repository, commit: string) {
  const manifest = parseManifest((yield* manifestText(repository, commit)) ?? new Uint8Array());
  return yield* repositoryBringsModel(repository, commit, manifest.configDir);
});

export interface ModelRequest {
  readonly commit: string;
  readonly agent: Agent;
  /** The session's own choice. */
  readonly agentModel: string | null;
  /** Whose own providers it may use. */
  readonly personId: string | null;
}

/** The providers and keys that decide which models a session can have. */
const modelSources = Effect.fnUntraced(function* (
  { id: projectId, accountId }: Pick<Project, "id" | "accountId">,
  personId: string | null,
) {
  const { secrets } = yield* (yield* Secrets).list(projectId);
  const providers = yield* (yield* AccountModels)({ accountId, projectId, personId });
  return { secretNames: deliveredNames(secrets), providers };
});

/**
 * Refuses a model of a provider that the session cannot use, where the agent's runtime brings its own models: it is pointed to the provider
 * when it starts. opencode knows its providers by itself once it runs.
 */
const requireProvider = Effect.fnUntraced(function* (
  project: Pick<Project, "id" | "accountId">,
  { agent, agentModel, personId }: Omit<ModelRequest, "commit">,
) {
  const { required } = yield* ModelPolicy;
  if (!required || agent.runtime.models !== "own") return;
  const fault = modelFault(agent, agentModel ?? agent.model, yield* modelSources(project, personId));
  if (fault !== null) return yield* new UnknownModel({ message: fault });
});

/**
 * The same for a session that exists. Its person's own providers count, even while another person steers: then the calls are refused in
 * words, and not the session.
 */
export const requireChosenProvider = (
  { projectId: id, accountId, origin, createdBy }: Session,
  choice: Pick<ModelRequest, "agent" | "agentModel">,
) => requireProvider({ id, accountId }, { ...choice, personId: origin === "session" ? createdBy : null });

/**
 * Refuses a session that would have no model, or whose model names a provider that it cannot use. The repository is checked last, since that
 * takes one process for each file.
 */
export const requireModel = Effect.fnUntraced(function* (project: Project, request: ModelRequest) {
  const { required, gatewayTiers, defaults } = yield* ModelPolicy;
  const { commit, agent, personId } = request;
  yield* requireProvider(project, request);
  if (!required || agent.runtime.models !== "platform") return;
  const sources = yield* modelSources(project, personId);
  const gateway = yield* hasGateway(project, gatewayTiers);
  const agentModel = request.agentModel ?? agent.model;
  const lack = modelLack(agent, { ...sources, gateway, agentModel, defaults });
  if (lack !== null && !(yield* configuresModel({ projectId: project.id }, commit))) return yield* lack;
});

/** Why an agent has no model, if the repository configures none. Null if it has one. @param question.agentModel the session's or the agent's */
const modelLack = (agent: Pick<Agent, "runtime">, question: ModelQuestion): NoModel | UnknownModel | null => {
  const { models } = agent.runtime;
  const choice = models === "platform" ? chooseModel(question) : null;
  if (choice !== null && Result.isFailure(choice)) return new NoModel({ message: choice.failure });
  const fault = modelFault(agent, question.agentModel, question);
  return fault === null ? null : new UnknownModel({ message: fault });
};

/**
 * The same for a fire, from memory. Null if nothing is missing.
 *
 * @param providers that the fire's session may use. They are not in memory, so they are read only if something is missing without them.
 */
export const missingModel = (
  knownProject: KnownProject | null,
  agentName: string,
  {
    required,
    gatewayTiers,
    defaults,
    offered,
    providers = [],
  }: ModelRules & { readonly offered: OfferedRuntimes; readonly providers?: readonly AccountProvider[] },
): "no_model" | "unknown_model" | null => {
  // Unknown counts as present: the daemon checks again, and reports it.
  if (!required || knownProject === null) return null;
  const agent = Result.getOrNull(agentNamed(knownProject.manifest.agents, agentName, offered));
  if (agent === null || (agent.runtime.models === "platform" && knownProject.bringsModel !== false))
    return null;
  const { deliveredNames: secretNames, tier } = knownProject;
  const gateway = gatewayTiers.includes(tier);
  const lack = modelLack(agent, { gateway, secretNames, agentModel: agent.model, defaults, providers });
  if (lack === null) return null;
  return lack._tag === "NoModel" ? "no_model" : "unknown_model";
};
