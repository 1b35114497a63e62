/** Which of an account's providers an agent uses that brings its own models, and how its runtime finds it. */
import type { ModelList, Runtime } from "../runtimes/runtime.ts";
import { fillHoles } from "../runtimes/installed.ts";
import type { Agent } from "./agents.ts";
import { type AccountProvider, insideAddress, PLACEHOLDER_KEY } from "../sandbox/account-provider.ts";
import { AGENT_READABLE_DIR, type LaunchAgent } from "../sandbox/launch.ts";
import { modelIdOf, providerOf } from "../sandbox/model.ts";

/** The account's providers that a runtime speaks to, in their order. */
export const spokenProviders = (
  { providers: spoken }: Pick<Runtime, "providers">,
  providers: readonly AccountProvider[],
): readonly AccountProvider[] => providers.filter(({ kind }) => spoken?.kinds.includes(kind) === true);

/** How a runtime finds a provider. */
type Pointing = Pick<LaunchAgent, "variables" | "files" | "provider">;

const NOWHERE: Pointing = { variables: {} };

const listOf = ({ file, field, entry }: ModelList, models: readonly string[]): Record<string, string> => {
  const template = JSON.stringify(entry);
  // An id may have quotes.
  const entries = models.map((id) => fillHoles(template, { model: JSON.stringify(id).slice(1, -1) }));
  return { [file]: `{${JSON.stringify(field)}:[${entries.join(",")}]}` };
};

/**
 * What points an agent's runtime to one of the account's providers: the one that the model names, or else the first one that
 * the runtime speaks to. A project's own key wins.
 *
 * @param model the session's or the agent's: `provider/model`, or the runtime's own name. Null: the provider's first one
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
  if (spoken === null || spoken.keys.some((key) => secretNames.includes(key))) return NOWHERE;
  const candidates = spokenProviders(runtime, providers);
  const named = model === null ? undefined : candidates.find(({ name }) => name === providerOf(model));
  const provider = named ?? candidates[0];
  if (provider === undefined) return NOWHERE;
  const id = model === null ? (provider.models[0] ?? "") : named === undefined ? model : modelIdOf(model);
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
    ...(spoken.list !== null && { files: listOf(spoken.list, [...new Set([id, ...provider.models])]) }),
    ...(runtime.models === "own" && { provider: provider.name }),
  };
};
