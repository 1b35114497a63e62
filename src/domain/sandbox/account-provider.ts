/**
 * Providers of models that belong to an account. The service keeps their keys. A sandbox reaches one by an inside address, and has a
 * placeholder in place of the key.
 */

/** The name of the account's providers and of the managed gateway inside every sandbox, on port 80 (api.md 8). */
export const MODEL_HOST = "llm.platform.internal";

/** The API that a provider speaks. */
export const PROVIDER_KINDS = ["anthropic", "openai", "openai-compatible", "gemini"] as const;
export type ProviderKind = (typeof PROVIDER_KINDS)[number];

/** What runtimes and people who choose a model need of a provider. */
export interface AccountProvider {
  /** The first part of `provider/model`, and of the path of its inside address. */
  readonly name: string;
  readonly kind: ProviderKind;
  /** Ids of models, the provider's own default first. */
  readonly models: readonly string[];
}

/** Where a sandbox reaches a provider: what the provider's own base URL is outside. */
export const insideAddress = (name: string): string => `http://${MODEL_HOST}/${name}`;

/** What a runtime sends as its key. It opens nothing: the sandbox's own way out tells whose provider it may use. */
export const PLACEHOLDER_KEY = "kept-by-the-platform";

/** What passed the service of one model to the account's own providers, on one day. */
export interface PassedUsage {
  /** `YYYY-MM-DD`, in UTC. */
  readonly day: string;
  /** `provider/model`. */
  readonly model: string;
  /** Tokens of the prompts, with the cached ones. */
  readonly input: number;
  readonly cached: number;
  readonly output: number;
  readonly calls: number;
  /** How many of the calls named no tokens, as if they broke off before. */
  readonly untoldCalls: number;
  /** Tokens of calls that broke off or named none, beside the others. */
  readonly estimated: number;
  /** Billionths of a dollar. 0: no price was known. */
  readonly cost: number;
}

/** The tokens of calls. `input` is with the cached ones. */
export type CountedTokens = Pick<PassedUsage, "input" | "cached" | "output">;
