/** Makes text from other authors readable. */

/**
 * Characters that affect the display instead of being visible: control characters, marks that change the direction of the
 * text after them, and marks on a letter that has 16 already, because a browser takes minutes to lay out thousands of them.
 * Tabs and line ends are left out (threats.md P09).
 */
const OBEYED =
  /\r(?!\n)|[^\P{Cc}\t\n\r]|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]|\p{M}(?<=\p{M}{17})/gu;
/** Deeper JSON is mostly indentation. */
const DEPTH = 64;
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{},:]|[^\s"[\]{},:]+/gu;

/** @returns the text with a visible sign for each of these characters */
export const visible = (text: string): string => text.replace(OBEYED, sign);

const sign = (character: string) => {
  const point = character.codePointAt(0) ?? 0;
  if (point < 0x20) return String.fromCharCode(0x2400 + point);
  return point === 0x7f ? "\u2421" : `[U+${point.toString(16).toUpperCase().padStart(4, "0")}]`;
};

/**
 * Indents JSON and changes nothing else: numbers that are too long for JavaScript, and repeated names, stay as sent.
 *
 * @returns null if it is not JSON, or nested too deeply to be read
 */
export const prettyJson = (text: string): string | null => {
  const source = text.replace(/^\ufeff/, "");
  if (!isJson(source)) return null;
  const tokens = source.match(TOKEN) ?? [];
  let depth = 0;
  let pretty = "";
  for (const [index, token] of tokens.entries()) {
    if (token === "}" || token === "]") {
      depth -= 1;
      pretty += isOpening(tokens[index - 1]) ? token : `\n${"  ".repeat(depth)}${token}`;
    } else {
      // The first entry of an object or a list begins a line.
      pretty += isOpening(tokens[index - 1]) ? `\n${"  ".repeat(depth)}${token}` : token;
      if (isOpening(token)) depth += 1;
      if (token === ",") pretty += `\n${"  ".repeat(depth)}`;
      if (token === ":") pretty += " ";
    }
    if (depth > DEPTH) return null;
  }
  return pretty;
};

const isOpening = (token: string | undefined) => token === "{" || token === "[";

export const isJson = (text: string) => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};
