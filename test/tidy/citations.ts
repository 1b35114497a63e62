/**
 * Citations of the contract and of other documents, as code, tests, migrations and documents write them. The grammar is in
 * docs/contract/README.md.
 */

/** What can be cited of a document. Names are in lower case. */
export interface CitedDocument {
  /** The named parts of each numbered section: headings and bold words. */
  readonly sections: ReadonlyMap<string, ReadonlySet<string>>;
  /** Each heading without a number, with how many numbered items stand below it. */
  readonly headings: ReadonlyMap<string, number>;
  /** Ids in bold: cases and invariants. */
  readonly ids: ReadonlySet<string>;
}

const HEADING = /^#{1,6} (?:(\d+(?:\.\d+)?)\.? )?(.+)$/;
const BOLD = /\*\*([^*]+?)[.:]?\*\*/g;
const CASE = /^[A-Z]\d{1,2}$/;

const topOf = (number: string): string => number.split(".")[0] ?? number;

/** Reads what a markdown document has to cite. */
export const readDocument = (markdown: string): CitedDocument => {
  const sections = new Map<string, Set<string>>();
  const headings = new Map<string, number>();
  const ids = new Set<string>();
  let number: string | null = null;
  let heading = "";
  const addPart = (name: string): void => {
    if (number === null) return;
    for (const key of [number, topOf(number)]) sections.get(key)?.add(name.toLowerCase());
  };
  for (const line of proseOf(markdown)) {
    const [isHeading, found, title = ""] = HEADING.exec(line) ?? [];
    if (isHeading !== undefined) {
      heading = title.toLowerCase();
      if (found !== undefined) {
        number = found;
        sections.set(found, sections.get(found) ?? new Set());
      } else if (line.startsWith("## ")) number = null;
      addPart(title);
      headings.set(heading, 0);
    }
    if (/^\d+\. /.test(line)) headings.set(heading, (headings.get(heading) ?? 0) + 1);
    for (const [, name = ""] of line.matchAll(BOLD)) {
      if (CASE.test(name)) ids.add(name);
      else addPart(name);
    }
  }
  return { sections, headings, ids };
};

/** Lines of a document that are not inside a block of code. */
const proseOf = (markdown: string): readonly string[] => {
  let isCode = false;
  return markdown.split("\n").filter((line) => {
    if (line.startsWith("```")) isCode = !isCode;
    return !isCode;
  });
};

/** A text in one line, with the marks of comments removed, so that a citation may continue on the next line. */
interface Flat {
  readonly text: string;
  readonly lineAt: (offset: number) => number;
}

const COMMENT_MARK = /^\s*(?:\/?\*+|\/\/|--|#)?\s*/;

export const flatten = (text: string): Flat => {
  const starts: number[] = [];
  let flat = "";
  for (const line of text.split("\n")) {
    starts.push(flat.length);
    flat += `${line.replace(COMMENT_MARK, "")} `;
  }
  const lineAt = (offset: number): number => {
    const next = starts.findIndex((start) => start > offset);
    return next === -1 ? starts.length : next;
  };
  return { text: flat, lineAt };
};

/** A citation that resolves to nothing. */
export interface Fault {
  readonly line: number;
  readonly citation: string;
  readonly problem: string;
}

/** Reads one text from left to right. */
class Reader {
  readonly #text: string;
  at: number;

  constructor(text: string, at: number) {
    this.#text = text;
    this.at = at;
  }

  /** The match of the pattern, which is sticky, at this place; the place then moves behind it. */
  take(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.at;
    const match = pattern.exec(this.#text);
    if (match !== null) this.at = pattern.lastIndex;
    return match;
  }
}

const FIRST_NUMBER = /,? (\d+(?:\.\d+)?)(?![\w%])/y;
const NEXT_NUMBER = /(?:,| and|, and) (\d+(?:\.\d+)?)(?![\w%])/y;
const PART = /(?:,| and)? "([^"]+)"/y;
const FACT = /,? (fact) (\d+)/y;
const APPENDIX = /, ([a-z]+ [a-z]+)(?: (\d+))?/y;
const FIRST_CASE = /,? ([A-Z]\d{1,2})\b/y;

/** A contract document's places, from behind its name on. @returns the error, or null. */
const placeFault = (reader: Reader, document: CitedDocument): string | null => {
  // Cases and invariants are resolved wherever they stand (`idFaults`).
  if (document.ids.size > 0 && reader.take(FIRST_CASE) !== null) return null;
  const fact = reader.take(FACT);
  if (fact !== null) return itemFault(document, "facts", fact[2] ?? "");
  let number = reader.take(FIRST_NUMBER)?.[1];
  if (number === undefined) return headingFault(reader, document);
  while (number !== undefined) {
    const parts = document.sections.get(number);
    if (parts === undefined) return `has no section ${number}`;
    const unknown = partsOf(reader).find((part) => !parts.has(part.toLowerCase()));
    if (unknown !== undefined) return `${number} has no part "${unknown}"`;
    number = reader.take(NEXT_NUMBER)?.[1];
  }
  return null;
};

const partsOf = (reader: Reader): readonly string[] => {
  const parts: string[] = [];
  for (let part = reader.take(PART); part !== null; part = reader.take(PART)) parts.push(part[1] ?? "");
  return parts;
};

const UNPLACED = "is cited without a section";

/** Part of the appendix, or a quoted heading. */
const headingFault = (reader: Reader, document: CitedDocument): string | null => {
  const [, quoted] = reader.take(PART) ?? [];
  if (quoted !== undefined) {
    return document.headings.has(quoted.toLowerCase()) ? null : `has no heading "${quoted}"`;
  }
  const [, name, item] = reader.take(APPENDIX) ?? [];
  if (name === undefined) return UNPLACED;
  if (document.headings.has(name)) return itemFault(document, name, item);
  return item === undefined ? UNPLACED : `has no part ${name}`;
};

const itemFault = (document: CitedDocument, heading: string, item?: string): string | null => {
  if (item === undefined) return null;
  const items = document.headings.get(heading) ?? 0;
  return Number(item) >= 1 && Number(item) <= items ? null : `${heading} has no item ${item}`;
};

/** Documents by the name with which they are cited. */
export type Documents = ReadonlyMap<string, CitedDocument>;

export const CONTRACT: readonly string[] = ["spec.md", "api.md", "threats.md"];

/** Another document's name with a place behind it, or in parentheses. */
const NAME =
  /(?:(?<![\w/.-])(?:[\w.-]+\/)*([A-Za-z][\w-]*\.md)\b(?=,? \d|,? "[A-Z])|(?<=(?<!\])\()([A-Za-z][\w-]*\.md)(?=[,;)]))/g;
const CONTRACT_NAME = /(?<![\w/.-])(spec|api|threats)\.md\b/g;
/** The specification by its short name: before a number or a part of the appendix. */
const SHORT_NAME = /(?<![\w.$])spec(?= \d|, (?:branch model|sandbox layout|injected environment)\b)/g;
/** The specification without a place. */
const UNPLACED_SPEC = /(?<= \()spec(?=\)(?! =>))/g;

const excerpt = (text: string, from: number, to: number): string => text.slice(from, Math.max(to, from + 24));

/**
 * Every citation of a document in a text that does not resolve.
 *
 * @param isProse a document itself: it may name another one as a whole.
 */
export const documentFaults = (text: string, documents: Documents, isProse = false): readonly Fault[] => {
  const flat = flatten(text);
  const faults: Fault[] = [];
  const add = (from: number, to: number, problem: string): void => {
    faults.push({ line: flat.lineAt(from), citation: excerpt(flat.text, from, to), problem });
  };
  for (const match of [...flat.text.matchAll(CONTRACT_NAME), ...flat.text.matchAll(SHORT_NAME)]) {
    const reader = new Reader(flat.text, match.index + match[0].length);
    const name = match[0] === "spec" ? "spec.md" : match[0];
    const document = documents.get(name);
    const problem = document === undefined ? "does not exist" : placeFault(reader, document);
    if (problem !== null && !(isProse && problem === UNPLACED)) {
      add(match.index, reader.at, `${name} ${problem}`);
    }
  }
  for (const match of flat.text.matchAll(NAME)) {
    const [cited, placed, alone] = match;
    const name = placed ?? alone ?? "";
    if (CONTRACT.includes(name)) continue;
    const reader = new Reader(flat.text, match.index + cited.length);
    const [, heading] = reader.take(PART) ?? [];
    const document = documents.get(name);
    if (document === undefined) add(match.index, reader.at, `${name} does not exist`);
    else if (heading !== undefined && !document.headings.has(heading.toLowerCase())) {
      add(match.index, reader.at, `${name} has no heading "${heading}"`);
    }
  }
  for (const { index } of flat.text.matchAll(UNPLACED_SPEC)) add(index, index, `spec.md ${UNPLACED}`);
  return faults;
};

/** A letter with two digits, or I with a plain number, as a word of its own. */
const ID = /(?<![\w\\#%/.+-])(?:I\d{1,2}|[A-Z]\d{2})(?![\w.%-]|:\d)/g;

/** Every case or invariant in a text that the list of threats does not have. */
export const idFaults = (text: string, ids: ReadonlySet<string>): readonly Fault[] =>
  text
    .split("\n")
    .flatMap((line, index) =>
      [...line.matchAll(ID)].flatMap(([id]) =>
        ids.has(id) ? [] : [{ line: index + 1, citation: id, problem: `threats.md has no ${id}` }],
      ),
    );

/** Ids in brackets at the end of a text in quotes, or before further ones. */
const CARRIED = /\[((?:I\d{1,2}|[A-Z]\d{2})(?:, (?:I\d{1,2}|[A-Z]\d{2}))*)\](?=(?: \[[^\]]+\])*["`'])/g;

/** The cases and invariants that names of tests in a file carry. */
export const coveredBy = (text: string): readonly string[] =>
  [...text.matchAll(CARRIED)].flatMap(([, ids = ""]) => ids.split(", "));
