/**
 * Estimates of a call's tokens: before it passes, and where the provider named none.
 *
 *  A token is about four characters. Pictures have more characters than that, so the prompt's estimate has a limit.
 */
import type { CountedTokens } from "../../../domain/model/prices.ts";

/** The most tokens of a prompt that are reserved. */
export const RESERVED_INPUT_MAX = 200_000;
/** The most tokens of an answer that are reserved. Few answers are longer. */
export const RESERVED_OUTPUT_MAX = 8_192;
const CHARACTERS = 4;

const OUTPUT_LIMIT =
  /"(?:max_tokens|max_completion_tokens|max_output_tokens|maxOutputTokens)"\s*:\s*(\d{1,9})\b/;

const estimateTokens = (characters: number): number => Math.ceil(characters / CHARACTERS);

/** @param bytes of the request's body */
export const promptEstimate = (bytes: number): number => Math.min(estimateTokens(bytes), RESERVED_INPUT_MAX);

/** The amount to reserve for a call. @param start of its body */
export const callEstimate = (start: string, bytes: number): CountedTokens => {
  const limit = Number(OUTPUT_LIMIT.exec(start)?.[1] ?? RESERVED_OUTPUT_MAX);
  return { input: promptEstimate(bytes), cached: 0, output: Math.min(limit, RESERVED_OUTPUT_MAX) };
};

/** The parts of an answer, in all wire formats, that a model wrote. */
const WRITTEN =
  /"(?:text|content|thinking|partial_json|arguments|delta|reasoning|reasoning_content|refusal)": ?"((?:[^"\\]|\\.)*)"/g;
/** The longest part of an answer that is read together. */
const CARRIED_MAX = 8 * 1024;

/** Adds up what a model wrote, piece by piece. */
export class WrittenText {
  #characters = 0;
  #carried = "";

  take(piece: string): void {
    const text = this.#carried + piece;
    let end = 0;
    for (const match of text.matchAll(WRITTEN)) {
      this.#characters += match[1]?.length ?? 0;
      end = match.index + match[0].length;
    }
    // The end of this piece may be within a text.
    this.#carried = text.slice(Math.max(end, text.length - CARRIED_MAX));
  }

  get tokens(): number {
    return estimateTokens(this.#characters);
  }
}
