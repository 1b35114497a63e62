/**
 * Removes secrets from text that people read: each item of a conversation, each log line and error text of a daemon, and of a build that has secrets, passes here
 * (threats.md G05).
 */

import { isMasked } from "./secret.ts";

/** A shorter beginning of a secret counts as ordinary text. */
const MIN_BEGINNING_LENGTH = 6;
const MASK = "[redacted]";

export class Redactor {
  /** Longest first. Otherwise a secret that begins with a shorter one would lose that part and show its end. */
  #secrets: readonly string[] = [];
  /** The first characters of all secrets. */
  #firsts: ReadonlySet<string> = new Set();

  constructor(secrets: readonly string[]) {
    for (const secret of secrets) this.add(secret);
  }

  /** Also covers the secret's forms in URLs and JSON, and each line of a secret with several lines. */
  add(secret: string): void {
    const parts = [secret, ...secret.split(/\r?\n/)].filter((part) => isMasked(Buffer.byteLength(part)));
    const spellings = parts.flatMap((part) => spellText(part));
    this.#secrets = [...new Set([...this.#secrets, ...spellings])].toSorted((a, b) => b.length - a.length);
    this.#firsts = new Set(this.#secrets.map((text) => text.charAt(0)));
  }

  /** The length of the longest secret. */
  get longest(): number {
    return this.#secrets[0]?.length ?? 0;
  }

  redact(text: string): string {
    let clean = text;
    for (const secret of this.#secrets) clean = clean.replaceAll(secret, MASK);
    return clean;
  }

  /**
   * The redacted beginning of a text, at most `maxLength` long. If the cut would split a secret, it moves before the
   * secret, because a partial secret would not be recognised. The text must reach `longest` beyond `maxLength`, or be
   * complete.
   */
  redactBeginning(text: string, maxLength: number): string {
    let end = Math.min(maxLength, text.length);
    for (let secret = this.#across(text, end); secret !== null; secret = this.#across(text, end))
      end = secret;
    return this.redact(text.slice(0, end));
  }

  /** Redacts a text that broke off: its end may be the beginning of a secret. */
  redactBroken(text: string): string {
    const clean = this.redact(text);
    for (const secret of this.#secrets) {
      for (let length = secret.length - 1; length >= MIN_BEGINNING_LENGTH; length -= 1) {
        if (clean.endsWith(secret.slice(0, length))) return `${clean.slice(0, -length)}${MASK}`;
      }
    }
    return clean;
  }

  /**
   * The length of the beginning of a growing text that is final however the text continues. The rest may be the
   * beginning of a secret, or half a character. `redact` of that beginning is the beginning of `redact` of the whole.
   */
  settledLength(text: string): number {
    let end = text.length;
    for (let start = Math.max(0, end - this.longest + 1); start < end; start += 1)
      if (this.#firsts.has(text.charAt(start)) && this.#continues(text.slice(start))) end = start;
    if (/[\ud800-\udbff]$/u.test(text.slice(0, end))) end -= 1;
    for (let secret = this.#across(text, end); secret !== null; secret = this.#across(text, end))
      end = secret;
    return end;
  }

  /** Whether a secret may begin with this text. */
  #continues(text: string): boolean {
    return this.#secrets.some((secret) => secret.length > text.length && secret.startsWith(text));
  }

  /** The start of a secret that continues beyond `end`, or null. */
  #across(text: string, end: number): number | null {
    for (const secret of this.#secrets) {
      const start = end === 0 ? -1 : text.lastIndexOf(secret, end - 1);
      if (start !== -1 && start + secret.length > end) return start;
    }
    return null;
  }
}

const inJson = (text: string): string => JSON.stringify(text).slice(1, -1);

const escapeUnit = (character: string): string =>
  `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;

const spellText = (text: string): string[] => [text, encodeURIComponent(text), ...jsonSpellings(text)];

/**
 * The text's forms inside a JSON string. Most programs escape only quotes, backslashes and control characters. Some
 * also escape non-ASCII characters, HTML's characters, or slashes. JSON within JSON is escaped once more.
 */
const jsonSpellings = (text: string): string[] => {
  const plain = inJson(text);
  const ascii = plain.replaceAll(/[\u007f-\uffff]/g, escapeUnit);
  const html = [plain, ascii].map((spelling) => spelling.replaceAll(/[<>&]/g, escapeUnit));
  const slashes = [plain, ascii].map((spelling) => spelling.replaceAll("/", "\\/"));
  const once = [...new Set([plain, ascii, ...html, ...slashes])];
  const upper = once.map((spelling) =>
    spelling.replaceAll(/\\u[0-9a-f]{4}/g, (code) => `\\u${code.slice(2).toUpperCase()}`),
  );
  const spellings = [...new Set([...once, ...upper])];
  return [...spellings, ...spellings.map(inJson)];
};
