/**
 * Providers of models that belong to an account, a project or a person. The service keeps their keys. A sandbox reaches one by an inside
 * address, and has a placeholder in place of the key.
 *
 *  V1 A session may use those of its account and of its project, and those of its person while she alone steers it
 *     (../connector/own-credential.ts). A trigger's session has no person.
 *  V2 Of several with one name, it uses that of the narrowest owner.
 */
import type { CountedTokens, Prices } from "../model/prices.ts";

/** The name of the account's providers and of the managed gateway inside every sandbox, on port 80 (api.md 8). */
export const MODEL_HOST = "llm.platform.internal";

/** The API that a provider speaks. */
export const PROVIDER_KINDS = ["anthropic", "openai", "openai-compatible", "gemini"] as const;
export type ProviderKind = (typeof PROVIDER_KINDS)[number];

/** Whose a provider is, the narrowest first (V2). */
export const PROVIDER_OWNERS = ["person", "project", "account"] as const;
export type ProviderOwner = (typeof PROVIDER_OWNERS)[number];

/** Who calls models: a session, or one that is about to start. */
export interface ModelUser {
  readonly accountId: string;
  readonly projectId: string;
  /** Whose own providers it may use. Null means no person's (V1). */
  readonly personId: string | null;
}

/** What runtimes and people who choose a model need of a provider. */
export interface AccountProvider {
  readonly owner: ProviderOwner;
  /** The first part of `provider/model`, and of the path of its inside address. */
  readonly name: string;
  readonly kind: ProviderKind;
  /** Ids of models, the provider's own default first. */
  readonly models: readonly string[];
  /** Its owner's own prices of them. Absent: none. */
  readonly prices?: Prices;
}

/** Where a sandbox reaches a provider: what the provider's own base URL is outside. */
export const insideAddress = (name: string): string => `http://${MODEL_HOST}/${name}`;

/** What a runtime sends as its key. It opens nothing: the sandbox's own way out tells whose provider it may use. */
export const PLACEHOLDER_KEY = "kept-by-the-platform";

/** What passed the service of one model to the account's own providers, on one day. */
export interface PassedUsage extends CountedTokens {
  /** `YYYY-MM-DD`, in UTC. */
  readonly day: string;
  /** `provider/model`. */
  readonly model: string;
  readonly calls: number;
  /** How many of the calls named no tokens, as if they broke off before. */
  readonly untoldCalls: number;
  /** Tokens of calls that broke off or named none, beside the others. */
  readonly estimated: number;
  /** Billionths of a dollar. 0: no price was known. */
  readonly cost: number;
}
