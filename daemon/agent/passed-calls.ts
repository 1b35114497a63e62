/**
 * The tokens of model calls that passed the forwarder (gateway-calls.ts). A runtime does not record those of a call whose tool was
 * stopped, although they were paid for.
 *
 *  U1 A call counts once: as the runtime records it, or else by what the gateway's answer named. The cost is the runtime's to know.
 */
import { isDeepStrictEqual } from "node:util";
import { isNothing, type Tokens, usageIn } from "../../src/domain/sandbox/model-tokens.ts";
import { BoundedMap } from "../../src/ground/bounded-map.ts";

/** How many uncounted calls are kept, and the tokens of how many messages. */
const CALLS_MAX = 256;

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
   * @param record by the runtime
   * @param isStopped whether the message was ended by a stop, so that the runtime records none
   */
  messageTokens(id: string, record: Tokens | undefined, isStopped: boolean): Tokens | undefined {
    const passedTokens = this.#messages.get(id);
    if (record !== undefined && !isNothing(record)) {
      if (passedTokens === undefined) this.#note(id, record, this.#callPlace(record));
      return record;
    }
    if (passedTokens !== undefined || !isStopped) return passedTokens ?? record;
    // A call for a title is smaller than that of the agent.
    const [largest] = this.#calls.toSorted(
      (one, other) => usageIn(other).input_tokens - usageIn(one).input_tokens,
    );
    if (largest === undefined) return record;
    this.#note(id, largest, this.#calls.indexOf(largest));
    return largest;
  }

  /** The same numbers, or else the oldest. */
  #callPlace(record: Tokens): number {
    const usage = usageIn(record);
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
