/** Which of an account's providers an agent uses that brings its own models, and how its runtime finds it. */
import type { ModelList, Runtime } from "../runtimes/runtime.ts";
import { fillHoles } from "../runtimes/installed.ts";
import type { Agent } from "./agents.ts";
import { type AccountProvider, insideAddress, PLACEHOLDER_KEY } from "../sandbox/account-provider.ts";
import { AGENT_READABLE_DIR, type LaunchAgent } from "../sandbox/launch.ts";
import { isAgentModel } from "../sandbox/agent.ts";
import {
  GATEWAY_PROVIDER,
  HOSTED_PROVIDER,
  MODEL_PROVIDERS,
  modelId,
  modelsInWords,
  offeredModels,
  modelProvider,
  usedProviders,
} from "../sandbox/model.ts";

/** The account's providers that a runtime speaks to, in their order. */
export const spokenProviders = (
  { providers: spoken }: Pick<Runtime, "providers">,
  providers: readonly AccountProvider[],
): readonly AccountProvider[] => providers.filter(({ kind }) => spoken?.kinds.includes(kind) === true);

/** How a runtime finds a provider. */
type Pointing = Pick<LaunchAgent, "variables" | "files" | "provider">;

const NOWHERE: Pointing = { variables: {} };

const modelList = ({ file, field, entry }: ModelList, models: readonly string[]): Record<string, string> => {
  const template = JSON.stringify(entry);
  // An id may have quotes.
  const entries = models.map((id) => fillHoles(template, { model: JSON.stringify(id).slice(1, -1) }));
  return { [file]: `{${JSON.stringify(field)}:[${entries.join(",")}]}` };
};

/** A provider, and a model's id there. */
interface Place {
  readonly provider: Pick<AccountProvider, "name" | "models">;
  readonly id: string;
}

/**
 * The provider that has a model. A name without a provider goes to one that lists it, or else to the first.
 *
 * @param candidates those that the runtime speaks to
 * @returns null without candidates, and for a model that names another provider
 */
const findPlace = (candidates: readonly AccountProvider[], model: string | null): Place | null => {
  const [first] = candidates;
  if (first === undefined) return null;
  if (model === null) return { provider: first, id: first.models[0] ?? "" };
  const provider = candidates.find(({ name }) => name === modelProvider(model));
  if (provider !== undefined) return { provider: provider, id: modelId(model) };
  const listing = candidates.find(({ models }) => models.includes(model));
  if (listing === undefined && isAgentModel(model)) return null;
  return { provider: listing ?? first, id: model };
};

/** The provider that a model names, which was deleted, or is suspended. The service refuses the calls in words (features/model-providers). */
const shutPlace = (model: string | null): Place | null =>
  model !== null && isAgentModel(model)
    ? { provider: { name: modelProvider(model), models: [] }, id: modelId(model) }
    : null;

/** Whether a project's own key is that of the runtime. It wins. */
const hasOwnKey = ({ providers: spoken }: Pick<Runtime, "providers">, secretNames: readonly string[]) =>
  spoken?.keys.some((key) => secretNames.includes(key)) === true;

/**
 * What points an agent's runtime to one of the account's providers. A project's own key wins.
 *
 * @param model the session's or the agent's: `provider/model`, or the runtime's own name. Null means the provider's first one
 */
export const providerPointing = (
  { runtime }: Pick<Agent, "runtime">,
  model: string | null,
  {
    providers,
    secretNames,
  }: { readonly providers: readonly AccountProvider[]; readonly secretNames: readonly string[] },
): Pointing => {
  const { providers: spoken } = runtime;
  if (spoken === null || hasOwnKey(runtime, secretNames)) return NOWHERE;
  const place = findPlace(spokenProviders(runtime, providers), model) ?? shutPlace(model);
  if (place === null) return NOWHERE;
  const { provider, id } = place;
  const holes = {
    url: insideAddress(provider.name),
    key: PLACEHOLDER_KEY,
    model: id,
    files: AGENT_READABLE_DIR,
  };
  return {
    variables: Object.fromEntries(
      Object.entries(spoken.variables).map(([name, text]) => [name, fillHoles(text, holes)]),
    ),
    ...(spoken.list !== null && { files: modelList(spoken.list, [...new Set([id, ...provider.models])]) }),
    ...(runtime.models === "own" && { provider: provider.name }),
  };
};

const KEYS: ReadonlySet<string> = new Set(MODEL_PROVIDERS.flatMap(({ keys }) => keys));
/** Names of secrets that may be keys of providers. opencode knows many more than the service does. */
const MAY_BE_KEY = /KEY|TOKEN|CREDENTIAL|^AWS_/;

/** Whether a runtime whose models the platform sets up may find this provider, as far as the service can know. */
const isKnown = (name: string, providers: readonly AccountProvider[], secretNames: readonly string[]) =>
  [GATEWAY_PROVIDER, HOSTED_PROVIDER].includes(name) ||
  MODEL_PROVIDERS.some(({ id }) => id === name) ||
  providers.some((provider) => provider.name === name) ||
  secretNames.some((secret) => MAY_BE_KEY.test(secret) && !KEYS.has(secret));

/** The models of providers whose key is a secret of the project. */
const modelsOfSecrets = (secretNames: readonly string[]): readonly string[] =>
  MODEL_PROVIDERS.filter(({ keys }) => keys.some((key) => secretNames.includes(key))).map(
    ({ id, model }) => `${id}/${model}`,
  );

/**
 * Why no provider has an agent's model: there is no provider of that name, or the runtime does not speak to it. Models that a provider does
 * not list pass, because it may have them all the same. So do all of a repository that configures a provider, which is not asked here.
 *
 * @param model the session's or the agent's. Null if none is chosen
 * @param sources.providers that the session may use
 * @returns a sentence that names what there is, or null if nothing is wrong
 */
export const modelFault = (
  { runtime }: Pick<Agent, "runtime">,
  model: string | null,
  sources: { readonly providers: readonly AccountProvider[]; readonly secretNames: readonly string[] },
): string | null => {
  const { name: own, models, providers: spoken } = runtime;
  if (model === null || models === null || !isAgentModel(model)) return null;
  const { secretNames } = sources;
  const providers = usedProviders(sources.providers, secretNames);
  const isPlatforms = models === "platform";
  const fitting = isPlatforms ? providers : spokenProviders(runtime, providers);
  if (isPlatforms) {
    if (isKnown(modelProvider(model), providers, secretNames)) return null;
    // Programs of `acp` find their providers by themselves.
  } else if (spoken === null || hasOwnKey(runtime, secretNames) || findPlace(fitting, model) !== null)
    return null;
  const provider = providers.find(({ name }) => name === modelProvider(model));
  const fault =
    provider === undefined
      ? `There is no model provider ${modelProvider(model)} for this session.`
      : `The runtime ${own} does not speak to the model provider ${provider.name}, which is of the kind ${provider.kind}.`;
  const ids = [...offeredModels(fitting), ...(isPlatforms ? modelsOfSecrets(secretNames) : [])];
  return ids.length === 0
    ? `${fault} No provider of the account fits ${own}: an owner can add one.`
    : `${fault} Choose one of: ${modelsInWords(ids)}.`;
};
