/**
 * Markdown on a screen, as it grows: headings, lists, quotes, emphasis, code and fences, with a line of the text as a line of the screen.
 *
 *  D1 Written words stay. A word is written when no later text can change its look: emphasis when it has ended, or its line has.
 *  D2 However the text comes in pieces, the screen is the same, for lines that `readInline` reads.
 */
import type { Screen } from "../../../terminal.ts";
import { Flow, type Part, type Style } from "./flow.ts";
import { readInline } from "./inline.ts";

/** How a line begins, and the rest of it. */
interface Opening {
  readonly lead: Part;
  readonly hang: string;
  /** Of its text. */
  readonly style: Style;
  readonly rest: string;
}

const plainLead = (text: string): Part => ({ text, style: [] });

const FENCE = /^(\s*)(`{3,}|~{3,})(.*)$/;
const RULE = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)(?:\s+#+\s*)?$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(?:\[([ xX])\]\s+)?(.*)$/;
const QUOTE = /^ {0,3}((?:>\s?)+)(.*)$/;
const INDENTED = /^(\s*)(.*)$/;
/** Text is indented at most so far. */
const INDENT_MAX = 24;
const RULE_MAX = 40;

const readIndent = (blanks: string): string => blanks.replaceAll("\t", "    ").slice(0, INDENT_MAX);

const opening = (line: string): Opening => {
  const [heading, marks = "", title = ""] = HEADING.exec(line) ?? [];
  if (heading !== undefined)
    return {
      lead: plainLead(""),
      hang: "",
      style: marks.length < 3 ? ["bold", "underline"] : ["bold"],
      rest: title,
    };
  const [item, blanks = "", mark = "", task, text = ""] = ITEM.exec(line) ?? [];
  if (item !== undefined) {
    const bullet = /\d/.test(mark) ? mark : "•";
    const box = task === undefined ? "" : task === " " ? "☐ " : "☑ ";
    const lead = `${readIndent(blanks)}${bullet} ${box}`;
    return { lead: plainLead(lead), hang: " ".repeat(lead.length), style: [], rest: text };
  }
  const [quote, arrows = "", said = ""] = QUOTE.exec(line) ?? [];
  if (quote !== undefined) {
    const bars = "│ ".repeat(arrows.replaceAll(/\s/g, "").length).slice(0, INDENT_MAX);
    return { lead: { text: bars, style: ["dim"] }, hang: bars, style: ["dim"], rest: said };
  }
  const [, before = "", rest = ""] = INDENTED.exec(line) ?? [];
  return { lead: plainLead(readIndent(before)), hang: readIndent(before), style: [], rest };
};

/** Lines whose look their end decides: fences, rules and rows of tables. */
const WAITS = /^\s*(?:`{3}|~{3}|[`~]{1,2}$|\||$)|^[\s*_-]+$|^ {0,3}#/;
/** The first word of a line and the beginning of the next, with the box of a task. */
const SETTLED = /^\s*(?:(?:[-*+]|\d{1,9}[.)])\s+(?:[^[\s]|\[.{3})|(?![-*+]\s|\d{1,9}[.)]\s)\S+\s+\S)/;

/** The longest text that waits for the end of its word or its emphasis. */
const HELD_MAX = 4000;

export class MarkdownWriter {
  readonly #screen: Screen;
  readonly #flow: Flow;
  /** The part of the present line that was not written yet. */
  #line = "";
  /** The look of the present line. Null until a part of it was written. */
  #style: Style | null = null;
  #fence: { readonly mark: string; readonly indent: number } | null = null;
  /** Whether an empty line stands before the next one. */
  #isApart = false;
  #isEmpty = true;

  constructor(screen: Screen) {
    this.#screen = screen;
    this.#flow = new Flow(screen);
  }

  /** Whether the cursor stands within a row. */
  get isWithin(): boolean {
    return this.#flow.isWithin;
  }

  /** Adds to the end of the text. */
  add(text: string): void {
    const [first = "", ...others] = text.split("\n");
    this.#line += first;
    for (const line of others) {
      this.#finish();
      this.#line = line;
    }
    this.#grow();
  }

  /** The text has ended. */
  end(): void {
    if (this.#line !== "" || this.#style !== null) this.#finish();
  }

  /** Goes to a new row, where something else may be written. The text goes on in the row after that. */
  pause(): void {
    this.#flow.end();
  }

  /** Somebody typed a line: the cursor stands at the beginning of a row. */
  moved(): void {
    this.#flow.moved();
  }

  /** Writes what no later text changes. */
  #grow(): void {
    if (this.#line === "") return;
    if (this.#fence !== null) {
      // It may become the end of the code.
      if (this.#style === null && /^\s*[`~]*\s*$/.test(this.#line)) return;
      this.#code(this.#line);
      this.#line = "";
      return;
    }
    if (this.#style === null) {
      if (WAITS.test(this.#line) || !SETTLED.test(this.#line)) {
        if (this.#line.length <= HELD_MAX) return;
      }
      this.#open();
    }
    const { parts, length } = readInline(this.#line, this.#style ?? [], this.#line.length <= HELD_MAX);
    this.#flow.words(parts);
    this.#line = this.#line.slice(length);
  }

  #finish(): void {
    const line = this.#line.replace(/\r$/, "");
    if (this.#style === null) this.#whole(line);
    else {
      if (this.#fence === null) this.#flow.words(readInline(line, this.#style).parts);
      else this.#code(line);
      this.#flow.end();
    }
    this.#line = "";
    this.#style = null;
  }

  /** A line of which nothing was written. */
  #whole(line: string): void {
    const [fence, blanks = "", mark = "", info = ""] = FENCE.exec(line) ?? [];
    if (this.#fence !== null) {
      const isEnd = fence !== undefined && mark.startsWith(this.#fence.mark) && info.trim() === "";
      if (isEnd) this.#fence = null;
      else if (line.trim() === "") this.#flow.blank();
      else {
        this.#code(line);
        this.#flow.end();
      }
    } else if (fence !== undefined) this.#fence = { mark, indent: blanks.length };
    else if (line.trim() === "") this.#isApart = !this.#isEmpty;
    else if (RULE.test(line)) {
      this.#apart();
      this.#flow.code("─".repeat(Math.min(RULE_MAX, this.#screen.columns() - 1)), ["dim"]);
      this.#flow.end();
    } else if (line.trimStart().startsWith("|")) {
      this.#apart();
      this.#flow.code(line, []);
      this.#flow.end();
    } else {
      this.#open();
      this.#flow.words(readInline(this.#line.replace(/\r$/, ""), this.#style ?? []).parts);
      this.#flow.end();
    }
  }

  /** Writes the beginning of a line. */
  #open(): void {
    this.#apart();
    const { lead, hang, style, rest } = opening(this.#line);
    this.#flow.begin(lead, hang);
    this.#style = style;
    this.#line = rest;
  }

  #code(text: string): void {
    if (this.#style === null) {
      this.#apart();
      const { indent = 0 } = this.#fence ?? {};
      const own = text.slice(0, indent).trimStart() + text.slice(indent);
      this.#flow.code(`  ${own}`, ["cyan"]);
      this.#style = [];
    } else this.#flow.code(text, ["cyan"]);
  }

  #apart(): void {
    if (this.#isApart) this.#screen.write("\n");
    this.#isApart = false;
    this.#isEmpty = false;
  }
}
