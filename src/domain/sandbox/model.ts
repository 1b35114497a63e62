/**
 * Chooses the language model of a session's agent runtime, if it has one at all. The service checks before it creates a
 * session. The daemon checks again each time it starts the runtime, since keys may have changed in between.
 *
 *  M1 The first that applies: the session's own `agent_model`; the model of its agent's table in the manifest
 *     (`agentStart` of ../agents/agents.ts); the first model of the first provider of the session's person, then of its project; the managed
 *     gateway, if the account's tier has it; the first provider of the table below whose key is among the project's secrets; the first
 *     model of the account's first provider.
 *  M2 The repository's own configuration of the runtime wins over all of these except the first two.
 *  M3 The runtime's own hosted provider is used only if the session or the repository names it.
 */
import * as Result from "effect/Result";
import type { AccountProvider } from "./account-provider.ts";
import { parseRecord } from "../../ground/record.ts";

/** A provider, under the agent runtime's names. */
export interface ModelProvider {
  readonly id: string;
  /** Secrets that hold its key. One of them is enough. */
  readonly keys: readonly string[];
  /** Its API's host. Sandboxes may reach it while one of the keys is set (api.md 8). */
  readonly host: string;
  /** The default model. The runtime's bundled list contains it. */
  readonly model: string;
}

/** Known providers, in the order in which their keys are checked. */
export const MODEL_PROVIDERS: readonly ModelProvider[] = [
  {
    id: "anthropic",
    keys: ["ANTHROPIC_API_KEY"],
    host: "api.anthropic.com",
    model: "claude-sonnet-4-6",
  },
  { id: "openai", keys: ["OPENAI_API_KEY"], host: "api.openai.com", model: "gpt-5.5" },
  {
    id: "google",
    keys: ["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"],
    host: "generativelanguage.googleapis.com",
    model: "gemini-2.5-pro",
  },
  {
    id: "openrouter",
    keys: ["OPENROUTER_API_KEY"],
    host: "openrouter.ai",
    model: "anthropic/claude-sonnet-4.6",
  },
  { id: "mistral", keys: ["MISTRAL_API_KEY"], host: "api.mistral.ai", model: "mistral-medium-latest" },
  { id: "groq", keys: ["GROQ_API_KEY"], host: "api.groq.com", model: "openai/gpt-oss-120b" },
  { id: "deepseek", keys: ["DEEPSEEK_API_KEY"], host: "api.deepseek.com", model: "deepseek-v4-pro" },
  { id: "xai", keys: ["XAI_API_KEY"], host: "api.x.ai", model: "grok-4.7" },
  {
    id: "togetherai",
    keys: ["TOGETHER_API_KEY"],
    host: "api.together.xyz",
    model: "openai/gpt-oss-120b",
  },
  {
    id: "fireworks-ai",
    keys: ["FIREWORKS_API_KEY"],
    host: "api.fireworks.ai",
    model: "accounts/fireworks/models/gpt-oss-120b",
  },
  { id: "cerebras", keys: ["CEREBRAS_API_KEY"], host: "api.cerebras.ai", model: "gpt-oss-120b" },
  { id: "cohere", keys: ["COHERE_API_KEY"], host: "api.cohere.com", model: "command-a-03-2025" },
  {
    id: "perplexity-agent",
    keys: ["PERPLEXITY_API_KEY"],
    host: "api.perplexity.ai",
    model: "anthropic/claude-sonnet-4-6",
  },
];

/** The managed gateway's name as a provider: a session may ask for `managed/<model id>`. */
export const GATEWAY_PROVIDER = "managed";
/** The provider that the makers of the runtime host. */
export const HOSTED_PROVIDER = "opencode";

/** Model ids by provider that replace the table's (PLATFORM_DEFAULT_MODELS), including the gateway's. */
export type DefaultModels = Readonly<Record<string, string>>;

/** The gateway's model unless PLATFORM_LLM_MODEL sets another. */
export const DEFAULT_GATEWAY_MODEL = "default";

const PROVIDER_IDS: readonly string[] = [GATEWAY_PROVIDER, ...MODEL_PROVIDERS.map(({ id }) => id)];
/** One or more path segments, as routers name their models; no white space. */
const MODEL_ID = /^[A-Za-z0-9@][A-Za-z0-9._:@+/-]{0,199}$/;

/** @returns the id, or the expected form, as it stands after "expected". */
export const parseModelId = (text: string): Result.Result<string, string> =>
  MODEL_ID.test(text)
    ? Result.succeed(text)
    : Result.fail("a model id of 1 to 200 letters, digits and . _ : @ + / -");

/**
 * Reads PLATFORM_DEFAULT_MODELS: a JSON object from a known provider to a model id.
 *
 * @returns the models, or the expected form, as it stands after "expected".
 */
export const parseDefaultModels = (text: string): Result.Result<DefaultModels, string> => {
  const value = parseRecord(text);
  const expected = 'a JSON object from provider to model id, such as {"anthropic": "claude-sonnet-4-6"}';
  if (value === null) return Result.fail(expected);
  for (const [provider, model] of Object.entries(value)) {
    if (!PROVIDER_IDS.includes(provider))
      return Result.fail(
        `only the providers ${PROVIDER_IDS.join(", ")}, without ${JSON.stringify(provider)}`,
      );
    if (typeof model !== "string" || !MODEL_ID.test(model)) return Result.fail(expected);
  }
  return Result.succeed(value as DefaultModels);
};

export interface ModelQuestion {
  /** Whether the account's tier has the managed gateway. */
  readonly gateway: boolean;
  /** Names of the project's secrets. */
  readonly secretNames: readonly string[];
  /** `provider/model` that the session requests. Null if it requests none. */
  readonly agentModel: string | null;
  readonly defaults: DefaultModels;
  /** Those that the session may use (account-provider.ts), the narrowest owner's first, of each the oldest first. */
  readonly providers: readonly AccountProvider[];
}

/** `provider/model`, or a sentence that says what to set. */
export type ModelChoice = Result.Result<string, string>;

export const NO_MODEL =
  "No model is configured for this project. An owner can add a model provider to the account. Or set a provider's key as a secret of the " +
  "project (ANTHROPIC_API_KEY, OPENAI_API_KEY, …), or configure a provider in the repository's opencode.json.";

/** The model if the repository has no configuration of its own (M1). */
export const chooseModel = (question: ModelQuestion): ModelChoice => {
  const { gateway, secretNames, agentModel, defaults } = question;
  if (agentModel !== null) return readModel(agentModel, question);
  const providers = usedProviders(question.providers, secretNames);
  const [narrow] = offeredModels(providers.filter(({ owner }) => owner !== "account"));
  if (narrow !== undefined) return Result.succeed(narrow);
  if (gateway)
    return Result.succeed(`${GATEWAY_PROVIDER}/${defaults[GATEWAY_PROVIDER] ?? DEFAULT_GATEWAY_MODEL}`);
  const provider = MODEL_PROVIDERS.find(({ keys }) => keys.some((key) => secretNames.includes(key)));
  if (provider !== undefined)
    return Result.succeed(`${provider.id}/${defaults[provider.id] ?? provider.model}`);
  const [own] = offeredModels(providers);
  return own === undefined ? Result.fail(NO_MODEL) : Result.succeed(own);
};

const readModel = (agentModel: string, { gateway, secretNames, providers }: ModelQuestion): ModelChoice => {
  const id = modelProvider(agentModel);
  if (providers.some(({ name }) => name === id)) return Result.succeed(agentModel);
  if (id === GATEWAY_PROVIDER && !gateway) {
    return Result.fail(
      `The session uses ${agentModel}, but this account has no managed model gateway. ` +
        "Choose a model of another provider.",
    );
  }
  const provider = MODEL_PROVIDERS.find((candidate) => candidate.id === id);
  return provider === undefined || provider.keys.some((key) => secretNames.includes(key))
    ? Result.succeed(agentModel)
    : Result.fail(
        `The session uses ${agentModel}, but the project has no key for its provider. ` +
          `Set the project's secret ${provider.keys.join(" or ")}.`,
      );
};

/** `provider/model` of each model of providers. */
export const offeredModels = (providers: readonly AccountProvider[]): readonly string[] =>
  providers.flatMap(({ name, models }) => models.map((model) => `${name}/${model}`));

/** How many models a message names. */
const NAMED_MAX = 20;

/** Models in a sentence. */
export const modelsInWords = (ids: readonly string[]): string => {
  const more = ids.length - NAMED_MAX;
  return [...ids.slice(0, NAMED_MAX), ...(more > 0 ? [`${more} more`] : [])].join(", ");
};

/** Why a session does not use a provider. */
export type UnusedReason = "secret" | "person" | "project";

/**
 * Each provider that a session may use, with why it does not. A secret of the project with a key of the same name wins over it, as does a
 * provider of the same name with a narrower owner (account-provider.ts V2). Null if it is used.
 *
 * @param providers the narrowest owner's first
 */
export const providerStandings = <P extends AccountProvider>(
  providers: readonly P[],
  secretNames: readonly string[],
): readonly { readonly provider: P; readonly unused: UnusedReason | null }[] => {
  const secrets = new Set(
    MODEL_PROVIDERS.filter(({ keys }) => keys.some((key) => secretNames.includes(key))).map(({ id }) => id),
  );
  return providers.map((provider) => {
    const first = providers.find(({ name }) => name === provider.name);
    const narrower = first === undefined || first.owner === provider.owner ? null : first.owner;
    const unusedKey = secrets.has(provider.name) ? "secret" : narrower === "account" ? null : narrower;
    return { provider, unused: unusedKey };
  });
};

/** The providers that a sandbox uses. */
export const usedProviders = (
  providers: readonly AccountProvider[],
  secretNames: readonly string[],
): readonly AccountProvider[] =>
  providerStandings(providers, secretNames).flatMap(({ provider, unused }) =>
    unused === null ? [provider] : [],
  );

/** The provider of `provider/model`. Empty: the name has none. */
export const modelProvider = (model: string): string => model.slice(0, Math.max(0, model.indexOf("/")));
/** The model's id at its provider, of `provider/model`. */
export const modelId = (model: string): string => model.slice(model.indexOf("/") + 1);

/** Files in which a repository may configure the runtime's providers, relative to the repository's root. */
export const runtimeConfigFiles = (configDir: string): readonly string[] =>
  ["", ".opencode/", `${configDir}/`].flatMap((directory) => [
    `${directory}opencode.json`,
    `${directory}opencode.jsonc`,
  ]);

/**
 * Whether a configuration file of the runtime provides a model: it defines a provider, or names a model of the hosted
 * one. A file that does not parse provides none, since the runtime refuses it too.
 */
export const bringsModel = (text: string): boolean => {
  const config = parseRecord(withoutComments(text));
  if (config === null) return false;
  return hasEntries(config["provider"]) || namesHosted(text);
};

/** Whether a file of the repository (configuration or agent) names the hosted provider (M3). */
export const namesHosted = (text: string): boolean =>
  /"(?:small_)?model"\s*:\s*"opencode\//.test(text) ||
  /^model:\s*["']?opencode\//m.test(text) ||
  /"opencode"\s*:\s*\{/.test(text);

const hasEntries = (value: unknown): boolean =>
  typeof value === "object" && value !== null && Object.keys(value).length > 0;

/** Turns JSON with comments and trailing commas into plain JSON. Strings stay unchanged. */
const withoutComments = (text: string): string =>
  text
    .replace(/^\ufeff/, "")
    .replaceAll(
      /("(?:[^"\\]|\\.)*")|\/\/[^\n]*|\/\*[\s\S]*?\*\//g,
      (_, string: string | undefined) => string ?? " ",
    )
    .replaceAll(/("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])/g, (_, string: string | undefined) => string ?? "");
