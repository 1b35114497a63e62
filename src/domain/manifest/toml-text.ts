/**
 * Where the statements of a TOML document stand in its text, so that an editor can change one of them and leave all others byte for
 * byte. The document must be valid (toml.ts); of another one, the places are meaningless.
 */

/** A line `key = value`, whose value may continue on further lines. */
export interface Pair {
  readonly kind: "pair";
  /** From the document's root: the table's path and the key's. */
  readonly path: readonly string[];
  /** The beginning of its line, and the end after its line break, in UTF-16 units. */
  readonly from: number;
  readonly to: number;
  readonly valueFrom: number;
  readonly valueTo: number;
}

/** A line `[table]`, or `[[table]]` (`isEntry`). */
export interface Header {
  readonly kind: "header";
  readonly path: readonly string[];
  readonly isEntry: boolean;
  readonly from: number;
  readonly to: number;
}

export type Statement = Pair | Header;

const BLANK = /[ \t]*/y;
const BARE = /[A-Za-z0-9_-]+/y;
/** What neither ends a value nor begins a string, a bracket or a comment. */
const PLAIN = /[^"'[\]{}#\n]+/y;
const COMMENT = /#[^\n]*/y;
const REST = /[^\n]*\n?/y;

/** The end of what the sticky pattern matches at this place; the place itself if it does not match. */
const after = (pattern: RegExp, text: string, at: number): number => {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : at;
};

/** The end of the string that begins at this place. */
const stringEnd = (text: string, at: number): number => {
  const quote = text.charAt(at);
  const fence = quote.repeat(3);
  const isLong = text.startsWith(fence, at);
  const end = isLong ? fence : quote;
  let place = at + end.length;
  while (place < text.length && !text.startsWith(end, place))
    place += quote === '"' && text.charAt(place) === "\\" ? 2 : 1;
  place += end.length;
  // Up to two quotes may stand before the closing three.
  if (isLong && text.charAt(place) === quote) place += text.charAt(place + 1) === quote ? 2 : 1;
  return place;
};

/** The end of the value that begins at this place, with the blanks after it. */
const valueEnd = (text: string, at: number): number => {
  let depth = 0;
  let place = at;
  while (place < text.length) {
    const unit = text.charAt(place);
    if (unit === '"' || unit === "'") place = stringEnd(text, place);
    else if (unit === "#") {
      if (depth === 0) return place;
      place = after(COMMENT, text, place);
    } else if (unit === "\n") {
      if (depth === 0) return place;
      place += 1;
    } else if ("[{]}".includes(unit)) {
      depth += unit === "[" || unit === "{" ? 1 : -1;
      place += 1;
    } else place = after(PLAIN, text, place);
  }
  return place;
};

/** A key in quotes. Escapes that JSON does not know stay as they are: no key of the service has one. */
const unquote = (text: string): string => {
  if (text.startsWith("'")) return text.slice(1, -1);
  try {
    return String(JSON.parse(text));
  } catch {
    return text.slice(1, -1);
  }
};

/** The dotted key at this place, and where it ends. */
const keyAt = (text: string, at: number): { readonly path: readonly string[]; readonly end: number } => {
  const path: string[] = [];
  let place = after(BLANK, text, at);
  for (;;) {
    const isQuoted = text.charAt(place) === '"' || text.charAt(place) === "'";
    const end = isQuoted ? stringEnd(text, place) : after(BARE, text, place);
    path.push(isQuoted ? unquote(text.slice(place, end)) : text.slice(place, end));
    place = after(BLANK, text, end);
    if (text.charAt(place) !== ".") return { path, end: place };
    place = after(BLANK, text, place + 1);
  }
};

/** The statements of a valid document, in their order. */
export const readStatements = (text: string): readonly Statement[] => {
  const statements: Statement[] = [];
  let table: readonly string[] = [];
  let from = text.startsWith("\ufeff") ? 1 : 0;
  while (from < text.length) {
    const begin = after(BLANK, text, from);
    const first = text.charAt(begin);
    if (first === "[") {
      const isEntry = text.startsWith("[[", begin);
      const { path, end } = keyAt(text, begin + (isEntry ? 2 : 1));
      const to = after(REST, text, end);
      table = path;
      statements.push({ kind: "header", path, isEntry, from, to });
      from = to;
    } else if (first === "#" || first === "\n" || first === "\r" || first === "") {
      from = Math.max(after(REST, text, begin), begin + 1);
    } else {
      const { path, end } = keyAt(text, begin);
      const valueFrom = after(BLANK, text, end + 1);
      const stop = valueEnd(text, valueFrom);
      const valueTo = valueFrom + text.slice(valueFrom, stop).trimEnd().length;
      const to = after(REST, text, stop);
      statements.push({ kind: "pair", path: [...table, ...path], from, to, valueFrom, valueTo });
      from = to;
    }
  }
  return statements;
};

/** A part of a text that another text replaces. `from` and `to` are equal for an insertion. */
export interface Splice {
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

/** The text with all splices. Those at one place keep their order. */
export const applySplices = (text: string, splices: readonly Splice[]): string => {
  const parts: string[] = [];
  let copiedEnd = 0;
  const orderedSplices = splices.toSorted((one, other) => one.from - other.from || one.to - other.to);
  for (const { from, to, text: part } of orderedSplices) {
    parts.push(text.slice(copiedEnd, Math.max(from, copiedEnd)), part);
    copiedEnd = Math.max(to, copiedEnd);
  }
  return [...parts, text.slice(copiedEnd)].join("");
};

/** How the document ends its lines. */
export const lineEnd = (text: string): "\r\n" | "\n" => (/^[^\n]*\r\n/.test(text) ? "\r\n" : "\n");
