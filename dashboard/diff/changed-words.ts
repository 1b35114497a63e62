/** Which words of a changed line differ from the line in whose place it came. It uses no document. */
import type { Piece } from "../code/colour.ts";
import { type DiffLine, pairLines } from "./parse.ts";

/** A part of a line's text, in UTF-16 units from its beginning. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** Longer lines are not compared. */
const LINE_CHARS = 1000;
/** Of the longer line, this share must be the same. Else the line is another one. */
const SAME_SHARE = 0.3;

/** Words, runs of blanks, and each other sign. */
const tokens = (text: string): readonly string[] => text.match(/[\p{L}\p{N}_]+|\s+|./gsu) ?? [];

const sizeOf = (some: readonly string[]): number => some.reduce((sum, one) => sum + one.length, 0);

/** @param texts without their signs @returns the changed part of each, or null if they are equal or have little in common */
const spansOf = (texts: readonly [string, string]): readonly [Span, Span] | null => {
  const [one, other] = [tokens(texts[0]), tokens(texts[1])];
  const most = Math.min(one.length, other.length);
  let begin = 0;
  while (begin < most && one[begin] === other[begin]) begin += 1;
  let end = 0;
  while (end < most - begin && one.at(-1 - end) === other.at(-1 - end)) end += 1;
  const from = sizeOf(one.slice(0, begin));
  const after = sizeOf(one.slice(one.length - end));
  const longer = Math.max(texts[0].length, texts[1].length);
  const isSame = begin === one.length && begin === other.length;
  // Blanks in front alone make no likeness.
  const alike = from + after - (/^\s*/.exec(texts[0])?.[0].length ?? 0);
  if (isSame || alike < longer * SAME_SHARE) return null;
  return [
    { from, to: texts[0].length - after },
    { from, to: texts[1].length - after },
  ];
};

/** The changed part of each line that came in the place of another one. */
export const changedWords = (lines: readonly DiffLine[]): ReadonlyMap<DiffLine, Span> => {
  const found = new Map<DiffLine, Span>();
  for (const [before, after] of pairLines([...lines])) {
    if (before?.kind !== "removed" || after?.kind !== "added") continue;
    if (Math.max(before.text.length, after.text.length) > LINE_CHARS) continue;
    const spans = spansOf([before.text.slice(1), after.text.slice(1)]);
    for (const [index, line] of [before, after].entries()) {
      const { from, to } = spans?.[index] ?? { from: 0, to: 0 };
      // Behind the sign.
      if (to > from) found.set(line, { from: from + 1, to: to + 1 });
    }
  }
  return found;
};

/** The pieces of a line, with the look `changed` where its words changed. */
export const withChanged = (pieces: readonly Piece[], { from, to }: Span): readonly Piece[] => {
  let at = 0;
  return pieces.flatMap(({ text, look }) => {
    const [first, last] = [Math.max(from - at, 0), Math.min(to - at, text.length)];
    at += text.length;
    if (first >= last) return [{ text, look }];
    return [
      { text: text.slice(0, first), look },
      { text: text.slice(first, last), look: look === "" ? "changed" : `${look} changed` },
      { text: text.slice(last), look },
    ].filter((piece) => piece.text !== "");
  });
};
