/**
 * Output for people. Names, titles and messages are text from other people and agents. So characters that control a
 * terminal are written as escapes (`\x1b`), and so are those that change the direction of text.
 */

/** Control characters, DEL among them, and the characters that change the direction of text; line and paragraph separators. */
// oxlint-disable-next-line no-control-regex -- control characters are what is looked for
const OBEYED = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

const escaped = (character: string): string => {
  const code = character.charCodeAt(0);
  return code <= 0xff
    ? `\\x${code.toString(16).padStart(2, "0")}`
    : `\\u${code.toString(16).padStart(4, "0")}`;
};

/** One line. */
export const visible = (text: string): string => text.replaceAll(OBEYED, escaped);

/** Several lines: line breaks and tabs stay. */
export const visibleLines = (text: string): string =>
  text.replaceAll(OBEYED, (character) =>
    character === "\n" || character === "\t" ? character : escaped(character),
  );

/** The same JSON document without terminal control characters: JSON itself does not escape those beyond ASCII. */
export const visibleJson = (document: string): string =>
  document.replaceAll(OBEYED, (character) => {
    // Outside of strings, JSON contains only blanks of this kind. Inside, raw characters below a blank are invalid.
    if (character === "\n" || character === "\t" || character === "\r") return character;
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });

/** Cells give an overview at a terminal. The single view, a pipe, a file and `--json` get the whole text. */
const CELL_MAX = 60;
/** Columns of paths, which may contain blanks. */
const PATHS: ReadonlySet<string> = new Set(["FILE", "BELONGED TO"]);

/** The text in one line: a title may be the first lines of a prompt. */
const inOneLine = (text: string): string => visible(text.replaceAll(/[\t\r\n]+/g, " "));

/** A part of an address, an id or a path is of no use. So only words are cut. */
const cut = (text: string, heading: string): string => {
  const characters = [...text];
  if (characters.length <= CELL_MAX || !text.includes(" ") || PATHS.has(heading)) return text;
  return `${characters.slice(0, CELL_MAX - 1).join("")}…`;
};

const width = (text: string): number => [...text].length;

type Table = (headings: readonly string[], rows: readonly (readonly string[])[], none: string) => string;

/** Tables for a terminal, or for a pipe or file: only a terminal gets cells that are cut. */
export const tableFor =
  ({ isTerminal }: { readonly isTerminal: boolean }): Table =>
  (headings, rows, none) => {
    if (rows.length === 0) return none;
    const shown = rows.map((row) =>
      row.map((text, column) => {
        const whole = inOneLine(text);
        return isTerminal ? cut(whole, headings[column] ?? "") : whole;
      }),
    );
    const lines = [headings, ...shown];
    const widths = headings.map((_, column) => Math.max(...lines.map((line) => width(line[column] ?? ""))));
    const pad = (text: string, column: number) => text + " ".repeat((widths[column] ?? 0) - width(text));
    return lines.map((line) => line.map(pad).join("  ").trimEnd()).join("\n");
  };

/** Rows below their headings, with columns as wide as their content. @param none the text if there are no rows */
export const table: Table = (...parts) => tableFor({ isTerminal: process.stdout.isTTY })(...parts);

/** The fields of one record with their names, without those that are null. Further lines of a text stand below its first. */
export const fields = (pairs: readonly (readonly [name: string, value: string | null])[]): string => {
  const shown = pairs.flatMap(([name, value]) => (value === null ? [] : [[name, value] as const]));
  const widest = Math.max(...shown.map(([name]) => name.length));
  const below = `\n${" ".repeat(widest + 2)}`;
  const lines = (value: string): string => value.trimEnd().split(/\r?\n/).map(visible).join(below);
  return shown.map(([name, value]) => `${name.padEnd(widest)}  ${lines(value)}`).join("\n");
};

/** An instant from the API, to the minute. */
export const time = (instant: string): string => `${instant.slice(0, 16).replace("T", " ")}Z`;
export const timeOrDash = (instant: string | null): string => (instant === null ? "-" : time(instant));
