/**
 * The tokens that an answer of a model names. An answer in another form than those of the four kinds of APIs, or a compressed one, names
 * none. A stream that breaks off has named what came before.
 */
import * as Schema from "effect/Schema";
import type { Usage } from "../conversation/conversation.ts";

/** As opencode records them: `input` is without the cached ones. */
export interface Tokens {
  readonly input: number;
  readonly output: number;
  readonly reasoning: number;
  readonly cache: { readonly read: number; readonly write: number };
}

/** How much of an answer is read together. No usage is longer. */
const CARRIED_MAX = 2048;

const USAGE = /"(?:usage|usageMetadata)": ?(\{(?:[^{}]|\{[^{}]*\})*\})/g;

const count = Schema.optionalKey(Schema.NullOr(Schema.Finite));
const details = Schema.optionalKey(Schema.NullOr(Schema.Struct({ cached_tokens: count })));
const Named = Schema.Struct({
  /** Chat completions. */
  prompt_tokens: count,
  completion_tokens: count,
  prompt_tokens_details: details,
  /** Responses, and messages, whose count of the input is without the cache. */
  input_tokens: count,
  output_tokens: count,
  input_tokens_details: details,
  cache_read_input_tokens: count,
  cache_creation_input_tokens: count,
  /** Gemini. */
  promptTokenCount: count,
  toolUsePromptTokenCount: count,
  cachedContentTokenCount: count,
  candidatesTokenCount: count,
  thoughtsTokenCount: count,
});
type Named = typeof Named.Type;
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Named));

const geminiTokens = (counts: Named): Tokens => {
  const read = counts.cachedContentTokenCount ?? 0;
  return {
    input: (counts.promptTokenCount ?? 0) + (counts.toolUsePromptTokenCount ?? 0) - read,
    output: counts.candidatesTokenCount ?? 0,
    reasoning: counts.thoughtsTokenCount ?? 0,
    cache: { read, write: 0 },
  };
};

const tokensIn = (counts: Named): Tokens => {
  if (typeof counts.promptTokenCount === "number") return geminiTokens(counts);
  const cached =
    counts.prompt_tokens_details?.cached_tokens ?? counts.input_tokens_details?.cached_tokens ?? 0;
  return {
    input: (counts.prompt_tokens ?? counts.input_tokens ?? 0) - cached,
    output: counts.completion_tokens ?? counts.output_tokens ?? 0,
    reasoning: 0,
    cache: {
      read: counts.cache_read_input_tokens ?? cached,
      write: counts.cache_creation_input_tokens ?? 0,
    },
  };
};

/** As the service counts them. The prompt's tokens include those that the provider had cached. */
export const usageIn = ({ input, output, reasoning, cache }: Tokens): Omit<Usage, "cost_usd"> => ({
  input_tokens: input + cache.read + cache.write,
  output_tokens: output + reasoning,
  cached_tokens: cache.read,
});

export const isNothing = (tokens: Tokens): boolean =>
  Object.values(usageIn(tokens)).every((sum) => sum === 0);

/** The fields that have a value: a later part of a stream may repeat a field as null. */
const withoutNulls = (counts: Named): Named =>
  Object.fromEntries(Object.entries(counts).filter(([, value]) => value !== null));

/** Reads the tokens that an answer names, piece by piece. */
export class TokensReader {
  #carried = "";
  #named: Named = {};

  take(piece: string): void {
    const text = this.#carried + piece;
    // A stream of messages names the input at its beginning and the output at its end.
    for (const [, json] of text.matchAll(USAGE)) {
      const counts = decode(json);
      if (counts._tag === "Some") this.#named = { ...this.#named, ...withoutNulls(counts.value) };
    }
    this.#carried = text.slice(-CARRIED_MAX);
  }

  /** Null if the answer names none. */
  get tokens(): Tokens | null {
    const tokens = tokensIn(this.#named);
    return isNothing(tokens) ? null : tokens;
  }
}
