/**
 * The tokens of model calls that passed the forwarder (gateway-calls.ts). A runtime does not record those of a call whose tool was
 * stopped, although they were paid for.
 *
 *  U1 A call counts once: as the runtime records it, or else by what the gateway's answer named. The cost is the runtime's to know.
 *  U2 An answer names its tokens in one of three forms. An answer in another form, or a compressed one, has none.
 */
import { isDeepStrictEqual } from "node:util";
import * as Schema from "effect/Schema";
import type { Usage } from "../../src/domain/conversation/conversation.ts";
import { BoundedMap } from "../../src/ground/bounded-map.ts";

/** As opencode records them: `input` is without the cached ones. */
export interface Tokens {
  readonly input: number;
  readonly output: number;
  readonly reasoning: number;
  readonly cache: { readonly read: number; readonly write: number };
}

/** How many uncounted calls are kept, and the tokens of how many messages. */
const CALLS_MAX = 256;
/** How much of an answer is read together. No usage is longer. */
const CARRIED_MAX = 2048;

const USAGE = /"usage": ?(\{(?:[^{}]|\{[^{}]*\})*\})/g;

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
});
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Named));

const tokensIn = (named: typeof Named.Type): Tokens => {
  const cached = named.prompt_tokens_details?.cached_tokens ?? named.input_tokens_details?.cached_tokens ?? 0;
  return {
    input: (named.prompt_tokens ?? named.input_tokens ?? 0) - cached,
    output: named.completion_tokens ?? named.output_tokens ?? 0,
    reasoning: 0,
    cache: {
      read: named.cache_read_input_tokens ?? cached,
      write: named.cache_creation_input_tokens ?? 0,
    },
  };
};

/** As the service counts them. The prompt's tokens include those that the provider had cached. */
export const usageIn = ({ input, output, reasoning, cache }: Tokens): Omit<Usage, "cost_usd"> => ({
  input_tokens: input + cache.read + cache.write,
  output_tokens: output + reasoning,
  cached_tokens: cache.read,
});

const isNothing = (tokens: Tokens): boolean => Object.values(usageIn(tokens)).every((sum) => sum === 0);

/** Reads the tokens that an answer names, piece by piece. */
export class TokensReader {
  #carried = "";
  #named: typeof Named.Type = {};

  take(piece: string): void {
    const text = this.#carried + piece;
    // A stream of messages names the input at its beginning and the output at its end.
    for (const [, json] of text.matchAll(USAGE)) {
      const decoded = decode(json);
      if (decoded._tag === "Some") this.#named = { ...this.#named, ...decoded.value };
    }
    this.#carried = text.slice(-CARRIED_MAX);
  }

  /** Null: the answer names none. */
  get tokens(): Tokens | null {
    const tokens = tokensIn(this.#named);
    return isNothing(tokens) ? null : tokens;
  }
}

/** The calls that have passed and are uncounted, oldest first. */
export class PassedCalls {
  #calls: Tokens[] = [];
  /** The counted messages, by their ids. */
  readonly #messages = new BoundedMap<string, Tokens>(CALLS_MAX);

  passed(tokens: Tokens): void {
    this.#calls = [...this.#calls, tokens].slice(-CALLS_MAX);
  }

  /** Forgets all of them: what comes next belongs to another turn. */
  clear(): void {
    this.#calls = [];
  }

  /** All of them together. Null without one. */
  get sum(): Tokens | null {
    return this.#calls.reduce<Tokens | null>(
      (all, { input, output, cache }) => ({
        input: (all?.input ?? 0) + input,
        output: (all?.output ?? 0) + output,
        reasoning: 0,
        cache: { read: (all?.cache.read ?? 0) + cache.read, write: (all?.cache.write ?? 0) + cache.write },
      }),
      null,
    );
  }

  /**
   * The tokens of a message of the model, which is one call (U1).
   *
   * @param recorded by the runtime
   * @param isStopped whether the message was ended by a stop, so that the runtime records none
   */
  tokensOf(id: string, recorded: Tokens | undefined, isStopped: boolean): Tokens | undefined {
    const known = this.#messages.get(id);
    if (recorded !== undefined && !isNothing(recorded)) {
      if (known === undefined) this.#note(id, recorded, this.#placeOf(recorded));
      return recorded;
    }
    if (known !== undefined || !isStopped) return known ?? recorded;
    // A call for a title is smaller than that of the agent.
    const [largest] = this.#calls.toSorted(
      (one, other) => usageIn(other).input_tokens - usageIn(one).input_tokens,
    );
    if (largest === undefined) return recorded;
    this.#note(id, largest, this.#calls.indexOf(largest));
    return largest;
  }

  /** The same numbers, or else the oldest. */
  #placeOf(recorded: Tokens): number {
    const usage = usageIn(recorded);
    return Math.max(
      0,
      this.#calls.findIndex((one) => isDeepStrictEqual(usageIn(one), usage)),
    );
  }

  #note(id: string, tokens: Tokens, place: number): void {
    this.#messages.set(id, tokens);
    this.#calls = this.#calls.toSpliced(place, 1);
  }
}
