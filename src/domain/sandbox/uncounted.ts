/**
 * Whether all calls of models that a session's agent makes pass the service, which counts them. Where a limit of spend applies, a session
 * whose calls could pass it is refused.
 *
 *  U1 A key of a provider that is a secret of the project is in the sandbox, whatever model the session begins with. One that is set while
 *     a limited session runs is kept out of its sandbox (duties/secrets.ts N3).
 *  U2 A person's own subscription is in the sandbox, and its runtime asks the maker itself.
 */
import type { Agent } from "../agents/agents.ts";
import type { Runtime } from "../runtimes/runtime.ts";
import { providerPointing } from "../agents/agent-provider.ts";
import { usedSubscription } from "../agents/subscription.ts";
import type { AccountProvider } from "./account-provider.ts";
import { HOSTED_PROVIDER, MODEL_PROVIDERS, modelProvider, usedProviders } from "./model.ts";

export interface CallingSession {
  readonly agent: Pick<Agent, "runtime" | "model">;
  /** The session's own choice. */
  readonly agentModel: string | null;
  /** Names of the project's secrets that sandboxes get. */
  readonly secretNames: readonly string[];
  /** The account's. */
  readonly providers: readonly AccountProvider[];
  /** The runtimes for which its person keeps a subscription of her own. */
  readonly kept: readonly string[];
  /** Whether the repository configures a provider. */
  readonly bringsModel: boolean;
}

const KEYS: readonly string[] = MODEL_PROVIDERS.flatMap(({ keys }) => keys);

/** The names among these that are a provider's key for a session with this runtime (U1). */
export const providerKeys = (
  secretNames: readonly string[],
  { providers }: Pick<Runtime, "providers">,
): readonly string[] => {
  const keys = new Set([...KEYS, ...(providers?.keys ?? [])]);
  return secretNames.filter((name) => keys.has(name));
};

const keyReason = (name: string): string =>
  `the project's secret ${name} is a key of a model provider. An owner can add the provider to the account, and then delete the secret`;

/** The note in the conversation of a running session that does not get a key. */
export const keyWithheld = (name: string): string =>
  `The secret ${name} was set while this session runs, and the session does not get the new value. A limit of spend applies here, and calls with this key ` +
  `could not be counted: ${keyReason(name)}.`;

const findReason = ({ agent, agentModel, secretNames, providers, kept, bringsModel }: CallingSession) => {
  const { runtime } = agent;
  const [key] = providerKeys(secretNames, runtime);
  if (key !== undefined) return keyReason(key);
  const model = agentModel ?? agent.model;
  const subscription = usedSubscription(agent, model, { secretNames, kept });
  if (subscription !== null)
    return `it uses its person's own ${subscription.title}. Choose a model of a provider (NAME/MODEL), or remove the subscription`;
  if (runtime.models === "own") {
    const pointing = providerPointing(agent, model, {
      providers: usedProviders(providers, secretNames),
      secretNames,
    });
    return pointing.provider === undefined
      ? `the runtime ${runtime.name} uses no model provider of the account. Choose another agent, or add a provider that it speaks to`
      : null;
  }
  if (runtime.models === null) return null;
  if (bringsModel)
    return "the repository's opencode.json configures a provider. Remove it there, and add the provider to the account";
  return model !== null && modelProvider(model) === HOSTED_PROVIDER
    ? `${model} is hosted by the makers of the runtime. Choose a model of a provider of the account`
    : null;
};

/** Why a session is refused where a limit of spend applies. Null if all of its calls are counted. */
export const uncountedReason = (session: CallingSession): string | null => {
  const reason = findReason(session);
  return reason === null
    ? null
    : `A limit of spend applies to this session, but its calls of models could not be counted: ${reason}.`;
};
