/**
 * A text that grows, without the secrets in it, also if one comes in several pieces.
 *
 *  X1 Text that was given out stays: later text is only added.
 *  X2 A beginning of a secret is held back until the next pieces show whether it is one.
 */
import type { Redactor } from "../../src/domain/secret/redactor.ts";

export class GrowingText {
  readonly #redactor: Redactor;
  #held = "";
  #taken = 0;
  #text = "";

  constructor(redactor: Redactor, raw: string) {
    this.#redactor = redactor;
    this.append(raw);
  }

  /** The redacted text so far. */
  get text(): string {
    return this.#text;
  }

  /** How much was appended in all, in UTF-16 units, before redaction. */
  get taken(): number {
    return this.#taken;
  }

  /** @returns what the text grew by */
  append(raw: string): string {
    this.#taken += raw.length;
    // Before the redaction: removing a NUL later could join two parts into a secret.
    const buffer = this.#held + raw.replaceAll("\0", "");
    const end = this.#redactor.settledLength(buffer);
    this.#held = buffer.slice(end);
    const addition = this.#redactor.redact(buffer.slice(0, end).toWellFormed());
    this.#text += addition;
    return addition;
  }

  /** The text broke off: gives out what was held back, without what may be the beginning of a secret. */
  breakOff(): string {
    this.#text += this.#redactor.redactBroken(this.#held.toWellFormed());
    this.#held = "";
    return this.#text;
  }
}
