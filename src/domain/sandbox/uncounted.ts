/**
 * Whether all calls of models that a session's agent makes pass the service, which counts them. Where a limit of spend applies, a session
 * whose calls could pass it is refused.
 *
 *  U1 A key of a provider that is a secret of the project is in the sandbox, whatever model the session begins with.
 *  U2 A person's own subscription is in the sandbox, and its runtime asks the maker itself.
 */
import type { Agent } from "../agents/agents.ts";
import { providerPointing } from "../agents/agent-provider.ts";
import { usedSubscription } from "../agents/subscription.ts";
import type { AccountProvider } from "./account-provider.ts";
import { HOSTED_PROVIDER, MODEL_PROVIDERS, providerOf, usedProviders } from "./model.ts";

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

const reasonOf = ({ agent, agentModel, secretNames, providers, kept, bringsModel }: CallingSession) => {
  const { runtime } = agent;
  const keys = new Set([...KEYS, ...(runtime.providers?.keys ?? [])]);
  const key = secretNames.find((name) => keys.has(name));
  if (key !== undefined)
    return `the project's secret ${key} is a key of a model provider. An owner can add the provider to the account, and then delete the secret`;
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
  return model !== null && providerOf(model) === HOSTED_PROVIDER
    ? `${model} is hosted by the makers of the runtime. Choose a model of a provider of the account`
    : null;
};

/** Why a session is refused where a limit of spend applies. Null: all of its calls are counted. */
export const uncountedReason = (session: CallingSession): string | null => {
  const reason = reasonOf(session);
  return reason === null
    ? null
    : `A limit of spend applies to this session, but its calls of models could not be counted: ${reason}.`;
};
