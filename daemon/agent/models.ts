/**
 * The agent runtime's defaults: the model that it uses if the session and the repository name none (domain/sandbox/model.ts).
 */
import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import * as Result from "effect/Result";
import { agentFile, DEFAULT_AGENT } from "../../src/domain/sandbox/agent.ts";
import {
  chooseModel,
  DEFAULT_GATEWAY_MODEL,
  GATEWAY_PROVIDER,
  HOSTED_PROVIDER,
  modelId,
  namesHosted,
  modelProvider,
  runtimeConfigFiles,
} from "../../src/domain/sandbox/model.ts";
import type { RuntimeAdapter, RuntimeModels } from "../adapters/adapter.ts";
import type { AgentEnv } from "./env.ts";
import type { OwnSubscription } from "./subscription.ts";
import { writeForAgent } from "../files.ts";
import type { Prepared } from "../git/checkout.ts";
import type { Settings } from "../settings.ts";

/** Larger configuration files are ignored. */
const MAX_FILE_BYTES = 1024 * 1024;

/**
 * The text of a file of the repository. Empty if it is missing. Links are not followed, because they may lead anywhere.
 */
const readText = (path: string): string => {
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    return "";
  }
  try {
    const stats = fstatSync(file);
    return stats.isFile() && stats.size <= MAX_FILE_BYTES ? readFileSync(file, "utf8") : "";
  } finally {
    closeSync(file);
  }
};

/** Whether the repository names the hosted provider. `configDir` is absolute. */
const repositoryNamesHosted = ({ layout, agentName }: Settings, configDir: string): boolean =>
  [
    ...runtimeConfigFiles(".").map((file) => join(layout.workspace, file)),
    ...runtimeConfigFiles(".").map((file) => join(configDir, file)),
    agentFile(configDir, agentName),
  ].some((path) => namesHosted(readText(path)));

/**
 * Whether the commit may have settings or programs of its own for the runtime. A program of the commit must not run before it has the
 * session's variables.
 */
export const configuresRuntime = (
  { layout }: { readonly layout: Pick<Settings["layout"], "workspace"> },
  { configDir }: Pick<Prepared, "configDir">,
): boolean =>
  [...runtimeConfigFiles("."), ".opencode", configDir.path].some(
    (path) => lstatSync(resolve(layout.workspace, path), { throwIfNoEntry: false }) !== undefined,
  );

export interface RuntimeParts {
  readonly settings: Settings;
  readonly adapter: Pick<RuntimeAdapter, "defaults" | "ahead">;
  readonly agentEnv: AgentEnv;
  /** Absent: the sandbox has none. */
  readonly subscription?: Pick<OwnSubscription, "held">;
}

/** What a runtime that reads the agent's own file by itself cannot know. `configDir` is absolute. */
const tableParts = (
  { launch, layout, agentName }: Settings,
  configDir: string,
): Pick<RuntimeModels, "defined" | "instructions"> => {
  const { agent } = launch;
  if (agent === undefined) return { defined: null, instructions: null };
  const own = agentFile(configDir, agentName);
  const hasOwn = lstatSync(own, { throwIfNoEntry: false }) !== undefined;
  // In a mode, the runtime is another agent, which does not read this file.
  const file = agent.mode !== null && hasOwn ? own : null;
  return {
    defined: agent.mode === null && agentName !== DEFAULT_AGENT ? agentName : null,
    instructions: agent.instructions === null ? file : join(layout.workspace, agent.instructions),
  };
};

/** The present inputs of the defaults. `configDir` is the agent's config directory, absolute. */
export const runtimeModels = (
  { settings, adapter, agentEnv }: RuntimeParts,
  configDir: string,
): RuntimeModels => {
  const { agentModel, injected, launch } = settings;
  const defaults = launch.models ?? {};
  const providers = launch.providers ?? [];
  const gateway = injected["PLATFORM_LLM_BASE_URL"] !== undefined;
  const choice = chooseModel({
    gateway,
    secretNames: Object.keys(agentEnv.secrets),
    agentModel,
    defaults,
    providers,
  });
  /** A session may ask for a model of a provider that is not offered. */
  const chosenModels = (provider: string): readonly string[] =>
    agentModel !== null && modelProvider(agentModel) === provider ? [modelId(agentModel)] : [];
  const gatewayModels = [
    defaults[GATEWAY_PROVIDER] ?? DEFAULT_GATEWAY_MODEL,
    ...chosenModels(GATEWAY_PROVIDER),
  ];
  return {
    plugin:
      launch.standby !== undefined && adapter.ahead !== null
        ? `${settings.layout.sessionEnvironment}.mjs`
        : null,
    model: Result.isSuccess(choice) ? choice.success : null,
    gateway: gateway ? [...new Set(gatewayModels)] : [],
    providers: providers.map(({ owner, name, kind, models }) => ({
      owner,
      name,
      kind,
      models: [...new Set([...models, ...chosenModels(name)])],
    })),
    ...tableParts(settings, configDir),
    hosted:
      (agentModel !== null && modelProvider(agentModel) === HOSTED_PROVIDER) ||
      repositoryNamesHosted(settings, configDir),
  };
};

/** Writes the defaults and the runtime's own files where it reads them: before it starts, and again after the checkout. */
export const writeRuntimeDefaults = (parts: RuntimeParts, configDir: string): void => {
  const { settings, adapter, subscription } = parts;
  for (const [name, text] of Object.entries(subscription?.held?.files ?? settings.launch.agent?.files ?? {}))
    writeForAgent(join(dirname(settings.layout.runtimeDefaultsFile), name), text);
  if (adapter.defaults === null) return;
  writeForAgent(settings.layout.runtimeDefaultsFile, adapter.defaults(runtimeModels(parts, configDir)));
};
