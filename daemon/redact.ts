/** Keeps secrets out of what people read: every log line and error text of the daemon passes here (threats.md G05). */

/** Shorter values occur in ordinary text by chance: taking them out would garble it and hide nothing. */
const MIN_SECRET_LENGTH = 6;
const MASK = "[redacted]";

export class Redactor {
  /** Longest first: one that begins as another does must not lose its beginning to that one and show its end. */
  #secrets: readonly string[] = [];

  constructor(secrets: readonly string[]) {
    for (const secret of secrets) this.add(secret);
  }

  /** Also covers the spelling a URL would give the secret, and each line of one that has several. */
  add(secret: string): void {
    const parts = [secret, ...secret.split(/\r?\n/)].filter(({ length }) => length >= MIN_SECRET_LENGTH);
    const spellings = parts.flatMap((part) => [part, encodeURIComponent(part)]);
    this.#secrets = [...new Set([...this.#secrets, ...spellings])].toSorted((a, b) => b.length - a.length);
  }

  /** Length of the longest text that is a secret. */
  get longest(): number {
    return this.#secrets[0]?.length ?? 0;
  }

  redact(text: string): string {
    let clean = text;
    for (const secret of this.#secrets) clean = clean.replaceAll(secret, MASK);
    return clean;
  }

  /**
   * The redacted beginning of a text, at most `maxLength` of it. What a secret would lose to the cut would no longer be
   * known as one: the cut goes before it. The text must reach `longest` beyond `maxLength`, or be whole.
   */
  redactBeginning(text: string, maxLength: number): string {
    let end = Math.min(maxLength, text.length);
    for (let secret = this.#across(text, end); secret !== null; secret = this.#across(text, end))
      end = secret;
    return this.redact(text.slice(0, end));
  }

  /** Redacts a text that broke off: what it ends with may be the beginning of a secret. */
  redactBroken(text: string): string {
    const clean = this.redact(text);
    for (const secret of this.#secrets) {
      for (let length = secret.length - 1; length >= MIN_SECRET_LENGTH; length -= 1) {
        if (clean.endsWith(secret.slice(0, length))) return `${clean.slice(0, -length)}${MASK}`;
      }
    }
    return clean;
  }

  /** Where a secret begins that goes on beyond `end`; null where none does. */
  #across(text: string, end: number): number | null {
    for (const secret of this.#secrets) {
      const start = end === 0 ? -1 : text.lastIndexOf(secret, end - 1);
      if (start !== -1 && start + secret.length > end) return start;
    }
    return null;
  }
}
