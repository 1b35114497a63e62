/** Where a comment on a diff stands: on lines of a file, or on the file as a whole. */
import type { DiffLine } from "./parse.ts";

export interface Lines {
  /** Of the file before the change, or after it. */
  readonly side: "base" | "head";
  /** From 1. */
  readonly first: number;
  readonly last: number;
}

export interface Place {
  readonly file: string;
  /** Null: the whole file. */
  readonly lines: Lines | null;
}

/** As people say it, e.g. "greet.sh, lines 3 to 5". */
export const placeWords = ({ file, lines }: Place): string => {
  if (lines === null) return file;
  const { side, first, last } = lines;
  const numbers = first === last ? `line ${first}` : `lines ${first} to ${last}`;
  return `${file}, ${numbers}${side === "base" ? " before the change" : ""}`;
};

/** What tells two places apart. */
export const placeKey = ({ file, lines }: Place): string => JSON.stringify([file, lines]);

/** Whether a comment can stand on it: heads and notes are no lines of a file. */
export const isNumbered = ({ before, after }: DiffLine): boolean => before !== null || after !== null;

/**
 * The lines that a reader chose. If some of them are in the file after the change, the comment is about those.
 *
 * @returns null: the choice has no line of the file
 */
export const linesOf = (chosen: readonly DiffLine[]): Lines | null => {
  for (const [side, name] of [
    ["head", "after"],
    ["base", "before"],
  ] as const) {
    const numbers = chosen.map((line) => line[name]).filter((number) => number !== null);
    const [first, last] = [numbers.at(0), numbers.at(-1)];
    if (first !== undefined && last !== undefined) return { side, first, last };
  }
  return null;
};

/** Whether a place still has the text that a comment is about. @param quote the beginning of it, with the signs of a diff */
export const hasQuote = (
  { side, first, last }: Lines,
  quote: string,
  lines: readonly DiffLine[],
): boolean => {
  const chosen = lines.filter((line) => {
    const number = side === "head" ? line.after : line.before;
    return number !== null && number >= first && number <= last;
  });
  // The choice may have had lines of the other side, too.
  const text = chosen.map((line) => line.text.slice(1)).join("\n");
  return quote.split("\n").some((line) => text.includes(line.slice(1)));
};

/** Which of a file's lines has the end of a place. -1: the diff does not show it. */
export const endOf = ({ side, last }: Lines, lines: readonly DiffLine[]): number =>
  lines.findIndex((line) => (side === "head" ? line.after : line.before) === last);
