/** Markdown within a line: emphasis, code and links. All else is text. */
import { isWide } from "../../../terminal.ts";
import type { Part, Style } from "./flow.ts";

interface Rule {
  /** At the beginning of a text. Its groups are given to `parts`. */
  readonly whole: RegExp;
  /** A text that may become `whole` when it goes on. */
  readonly begun: RegExp;
  readonly parts: (groups: readonly string[], style: Style) => readonly Part[];
}

const inside = (more: Style): Rule["parts"] => {
  return ([, text = ""], style) => readInline(text, [...style, ...more]).parts;
};

/** Without a colour, code is known from its marks. */
const CODE: Rule["parts"] = ([, mark = "", text = ""], style) => [
  { text, style: [...style, "cyan"], plain: `${mark}${text}${mark}` },
];

const linkParts: Rule["parts"] = ([, mark = "", label = "", target = ""], style) => {
  const text = label === "" ? target : label;
  const parts = [...readInline(text, [...style, "underline"]).parts];
  const address: Part = { text: ` (${target})`, style: [...style, "dim"] };
  const image: Part = { text: "Image: ", style };
  return [...(mark === "" ? [] : [image]), ...parts, ...(text === target ? [] : [address])];
};

/** The longer marks first. */
const RULES: readonly Rule[] = [
  { whole: /^(`+)(?!`)(.*?[^`])\1(?!`)/, begun: /^`/, parts: CODE },
  { whole: /^\*\*(?=\S)(.*?[^\s*]\*?)\*\*(?!\*)/, begun: /^\*\*(?=\S)/, parts: inside(["bold"]) },
  { whole: /^__(?=\S)(.*?\S)__(?!\w)/, begun: /^__(?=\S)/, parts: inside(["bold"]) },
  { whole: /^~~(?=\S)(.*?\S)~~/, begun: /^~~(?=\S)/, parts: inside(["strikethrough"]) },
  { whole: /^\*(?=[^\s*])(.*?[^\s*])\*(?!\*)/, begun: /^\*(?=[^\s*])/, parts: inside(["italic"]) },
  { whole: /^_(?=[^\s_])(.*?[^\s_])_(?!\w)/, begun: /^_(?=[^\s_])/, parts: inside(["italic"]) },
  {
    whole: /^(!?)\[([^[\]]*)\]\(([^()\s]+)\)/,
    begun: /^!?\[[^[\]]*(?:\](?:\([^()\s]*)?)?$/,
    parts: linkParts,
  },
];

const MARK = /[\\`*_~[!]/;
const ESCAPED = /^\\([!-/:-@[-`{-~])/;
/** A text beyond this is shown as it is: to look for the end of each mark takes the square of its length. */
const READ_MAX = 4000;

/** The end of the last word that is complete: a row may end there. @returns 0 without a complete word */
const lastBreak = (text: string): number => {
  for (let at = text.length; at > 0; at -= 1) {
    const character = text[at - 1] ?? "";
    if (/\s/.test(character) || isWide(character)) return at;
  }
  return 0;
};

interface Read {
  readonly parts: readonly Part[];
  /** How much of the text was read. */
  readonly length: number;
}

/** The parts that were read so far. */
class Reading {
  readonly #parts: Part[] = [];
  readonly #style: Style;
  /** What no later text changes: how many parts, and how much text. */
  #settled = { parts: 0, length: 0 };

  constructor(style: Style) {
    this.#style = style;
  }

  add(parts: readonly Part[]): void {
    this.#parts.push(...parts);
  }

  /** @param from where it begins in the whole text */
  plain(text: string, from: number): void {
    const at = lastBreak(text);
    if (at > 0) {
      this.#parts.push({ text: text.slice(0, at), style: this.#style });
      this.#settled = { parts: this.#parts.length, length: from + at };
    }
    if (at < text.length) this.#parts.push({ text: text.slice(at), style: this.#style });
  }

  get all(): readonly Part[] {
    return this.#parts;
  }

  get settled(): Read {
    return { parts: this.#parts.slice(0, this.#settled.parts), length: this.#settled.length };
  }
}

/** @returns the length of what was read at a mark, or null if it may go on */
const atMark = (text: string, at: number, read: { into: Reading; style: Style; grows: boolean }) => {
  const rest = text.slice(at);
  const [escape, character = ""] = ESCAPED.exec(rest) ?? [];
  if (escape !== undefined) {
    read.into.add([{ text: character, style: read.style }]);
    return escape.length;
  }
  // An underscore within a word is a part of its name.
  const isWithin = rest.startsWith("_") && /\w/.test(text[at - 1] ?? "");
  for (const { whole, begun, parts } of isWithin ? [] : RULES) {
    const groups = whole.exec(rest);
    if (groups !== null) {
      read.into.add(parts(groups, read.style));
      return groups[0].length;
    }
    if (read.grows && begun.test(rest)) return null;
  }
  const [run = ""] = /^(.)\1*/.exec(rest) ?? [];
  read.into.add([{ text: run, style: read.style }]);
  return run.length;
};

/**
 * Reads the text of a line.
 *
 * @param grows whether the text may go on: then only what a longer text does not change is read
 */
export const readInline = (text: string, style: Style, grows = false): Read => {
  if (text.length > READ_MAX) return { parts: [{ text, style }], length: text.length };
  const into = new Reading(style);
  for (let at = 0; at < text.length;) {
    const offset = text.slice(at).search(MARK);
    const end = offset < 0 ? text.length : at + offset;
    if (end > at) into.plain(text.slice(at, end), at);
    if (offset < 0) break;
    const length = atMark(text, end, { into, style, grows });
    if (length === null) break;
    at = end + length;
  }
  return grows ? into.settled : { parts: into.all, length: text.length };
};
