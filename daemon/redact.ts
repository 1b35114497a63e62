/** Keeps secrets out of what people read: every log line and error text of the daemon passes here (threats.md G05). */

/** Shorter values occur in ordinary text by chance: taking them out would garble it and hide nothing. */
const MIN_SECRET_LENGTH = 6;
const MASK = "[redacted]";

export class Redactor {
  readonly #secrets = new Set<string>();

  constructor(secrets: readonly string[]) {
    for (const secret of secrets) this.add(secret);
  }

  /** Also covers the spelling a URL would give the secret, and each line of one that has several. */
  add(secret: string): void {
    for (const part of new Set([secret, ...secret.split(/\r?\n/)])) {
      if (part.length < MIN_SECRET_LENGTH) continue;
      this.#secrets.add(part);
      this.#secrets.add(encodeURIComponent(part));
    }
  }

  redact(text: string): string {
    let clean = text;
    for (const secret of this.#secrets) clean = clean.replaceAll(secret, MASK);
    return clean;
  }
}
