/** Which of an account's providers an agent uses that brings its own models, and how its runtime finds it. */
import type { Runtime } from "../runtimes/runtime.ts";
import type { Agent } from "./agents.ts";
import { type AccountProvider, insideAddress, PLACEHOLDER_KEY } from "../sandbox/account-provider.ts";
import { modelIdOf, providerOf } from "../sandbox/model.ts";

/** The account's providers that a runtime speaks to, in their order. */
export const spokenProviders = (
  { providers: spoken }: Pick<Runtime, "providers">,
  providers: readonly AccountProvider[],
): readonly AccountProvider[] => providers.filter(({ kind }) => spoken?.kinds.includes(kind) === true);

/**
 * The variables that point an agent's runtime to one of the account's providers: the one that the model names, or else the first one that
 * the runtime speaks to. A project's own key wins.
 *
 * @param model the session's or the agent's: `provider/model`, or the runtime's own name. Null: the provider's first one
 */
export const providerVariables = (
  { runtime }: Pick<Agent, "runtime">,
  model: string | null,
  {
    providers,
    secretNames,
  }: { readonly providers: readonly AccountProvider[]; readonly secretNames: readonly string[] },
): Readonly<Record<string, string>> => {
  const { providers: spoken } = runtime;
  if (spoken === null || spoken.keys.some((key) => secretNames.includes(key))) return {};
  const candidates = spokenProviders(runtime, providers);
  const named = model === null ? undefined : candidates.find(({ name }) => name === providerOf(model));
  const provider = named ?? candidates[0];
  if (provider === undefined) return {};
  const id = model === null ? (provider.models[0] ?? "") : named === undefined ? model : modelIdOf(model);
  const filled = { "{url}": insideAddress(provider.name), "{key}": PLACEHOLDER_KEY, "{model}": id };
  return Object.fromEntries(
    Object.entries(spoken.variables).map(([name, value]) => [
      name,
      Object.entries(filled).reduce((text, [hole, filling]) => text.replace(hole, filling), value),
    ]),
  );
};
