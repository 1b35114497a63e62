/**
 * Markdown within a paragraph: emphasis, code and links, as tokens. The time is linear in the text's length: the text is
 * read once, and at most `DEPTH` marks are open at a time.
 */

/**
 * @typedef {{type: "text", text: string}
 *   | {type: "code", text: string}
 *   | {type: "strong" | "em" | "del", children: Inline[]}
 *   | {type: "link", href: string | null, target: string, image: boolean, children: Inline[]}} Inline
 * `href` is null if the target is no address that the page links to
 */

/** @typedef {{left: number}} Budget how many more tokens a text may have; the rest of it is plain */

/** @typedef {{mark: string, at: number, children: Inline[]}} Open */

/**
 * @typedef {object} Reader
 * @property {string} source
 * @property {number} at
 * @property {Open[]} open the marks that are open, outermost first; the first is the text itself
 * @property {Budget} budget
 * @property {Map<number, number[]> | null} ticks where runs of backticks begin, by their length
 */

const DEPTH = 16;
/** The longest address of a link. */
const TARGET_MAX = 2048;
const PARENTHESES_MAX = 8;
const SPECIAL = /[\\`*_~[\]!<]|https?:\/\//g;
const ESCAPED = /[!-/:-@[-`{-~]/;
const ANGLED = new RegExp(`<((?:https?://|mailto:)[^\\s<>]{1,${TARGET_MAX}})>`, "y");
const BARE = new RegExp(`https?://[^\\s<>"\`]{1,${TARGET_MAX}}`, "y");
const SPACE = /\s/;
const WORD = /[\p{L}\p{N}]/u;
/** @type {Record<string, "strong" | "em" | "del">} */
const TYPES = { "**": "strong", __: "strong", "*": "em", _: "em", "~~": "del" };
const PROTOCOLS = new Set(["http:", "https:", "mailto:"]);

/** @param {string} source @param {Budget} budget @returns {Inline[]} */
export const inline = (source, budget) => {
  /** @type {Reader} */
  const reader = { source, at: 0, open: [{ mark: "", at: 0, children: [] }], budget, ticks: null };
  while (reader.at < source.length && budget.left > 0) {
    SPECIAL.lastIndex = reader.at;
    const found = SPECIAL.exec(source)?.index ?? source.length;
    say(reader, source.slice(reader.at, found));
    reader.at = found;
    if (found < source.length) special(reader);
  }
  say(reader, source.slice(reader.at));
  while (reader.open.length > 1) flatten(reader);
  return reader.open[0]?.children ?? [];
};

/** @param {string} text @returns {string | null} the address, if the page may link to it */
export const address = (text) => {
  if (text.length > TARGET_MAX) return null;
  try {
    const url = new URL(text);
    // Names before the host serve only to hide the host.
    return PROTOCOLS.has(url.protocol) && url.username === "" && url.password === "" ? url.href : null;
  } catch {
    return null;
  }
};

/** @param {Reader} reader */
const top = (reader) => /** @type {Open} */ (reader.open.at(-1));

/** @param {Reader} reader @param {Inline} token */
const add = (reader, token) => {
  reader.budget.left -= 1;
  top(reader).children.push(token);
};

/** @param {Reader} reader @param {string} text */
const say = (reader, text) => {
  if (text === "") return;
  const last = top(reader).children.at(-1);
  if (last?.type === "text") last.text += text;
  else add(reader, { type: "text", text });
};

/** Takes so many characters as they are. @param {Reader} reader @param {number} length */
const take = (reader, length) => {
  say(reader, reader.source.slice(reader.at, reader.at + length));
  reader.at += length;
};

/** @param {Reader} reader */
const special = (reader) => {
  const { source, at } = reader;
  switch (source[at]) {
    case "\\":
      return escaped(reader);
    case "`":
      return codeSpan(reader);
    case "[":
      return opened(reader, "[");
    case "!":
      return source[at + 1] === "[" ? opened(reader, "![") : take(reader, 1);
    case "]":
      return closedBracket(reader);
    case "<":
      return bareLink(reader, ANGLED);
    case "h":
      return bareLink(reader, BARE);
    default:
      return emphasis(reader);
  }
};

/** @param {Reader} reader */
const escaped = (reader) => {
  if (!ESCAPED.test(reader.source[reader.at + 1] ?? "")) return take(reader, 1);
  reader.at += 1;
  take(reader, 1);
};

/** @param {string} source */
const ticksOf = (source) => {
  /** @type {Map<number, number[]>} */
  const ticks = new Map();
  for (const run of source.matchAll(/`+/g)) {
    const known = ticks.get(run[0].length);
    if (known === undefined) ticks.set(run[0].length, [run.index]);
    else known.push(run.index);
  }
  // The nearest run is at the end, so that passed ones can be dropped.
  for (const places of ticks.values()) places.reverse();
  return ticks;
};

/** @param {Reader} reader */
const codeSpan = (reader) => {
  const length = runAt(reader);
  reader.ticks ??= ticksOf(reader.source);
  const places = reader.ticks.get(length) ?? [];
  while (places.length > 0 && /** @type {number} */ (places.at(-1)) < reader.at + length) places.pop();
  const end = places.at(-1);
  if (end === undefined) return take(reader, length);
  const text = reader.source.slice(reader.at + length, end);
  const padded = text.startsWith(" ") && text.endsWith(" ") && text.trim() !== "";
  add(reader, { type: "code", text: padded ? text.slice(1, -1) : text });
  reader.at = end + length;
};

/** @param {Reader} reader @returns {number} how often the character repeats */
const runAt = ({ source, at }) => {
  let end = at;
  while (source[end] === source[at]) end += 1;
  return end - at;
};

/** @param {Reader} reader @param {RegExp} pattern */
const bareLink = (reader, pattern) => {
  pattern.lastIndex = reader.at;
  const found = pattern.exec(reader.source);
  if (found === null) return take(reader, 1);
  const target = pattern === BARE ? withoutPunctuation(found[0]) : (found[1] ?? "");
  const href = address(target);
  if (href === null) return take(reader, 1);
  add(reader, { type: "link", href, target, image: false, children: [{ type: "text", text: target }] });
  reader.at += pattern === BARE ? target.length : found[0].length;
};

/** A sentence's punctuation after an address is no part of it. @param {string} target */
const withoutPunctuation = (target) => {
  let end = target.length;
  while (end > 0 && /[.,:;!?'"*_~\]]/.test(target[end - 1] ?? "")) end -= 1;
  const kept = target.slice(0, end);
  return kept.endsWith(")") && !kept.includes("(") ? kept.slice(0, -1) : kept;
};

/** @param {Reader} reader @param {string} mark */
const opened = (reader, mark) => {
  if (reader.open.length > DEPTH) return take(reader, mark.length);
  reader.open.push({ mark, at: reader.at, children: [] });
  reader.at += mark.length;
};

/** The innermost mark turned out to be plain text. @param {Reader} reader */
const flatten = (reader) => {
  const { mark, children } = /** @type {Open} */ (reader.open.pop());
  say(reader, mark);
  for (const child of children) {
    if (child.type === "text") say(reader, child.text);
    else top(reader).children.push(child);
  }
};

/** @param {Reader} reader @param {number} index of the mark that ends here @returns {Open} */
const closed = (reader, index) => {
  while (reader.open.length > index + 1) flatten(reader);
  return /** @type {Open} */ (reader.open.pop());
};

/** @param {Reader} reader */
const closedBracket = (reader) => {
  const index = reader.open.findLastIndex(({ mark }) => mark.endsWith("["));
  if (index < 0) return take(reader, 1);
  const found = targetAt(reader.source, reader.at + 1);
  if (found === null) {
    if (index === reader.open.length - 1) flatten(reader);
    return take(reader, 1);
  }
  const { mark, children } = closed(reader, index);
  const { target, end } = found;
  add(reader, { type: "link", href: address(target), target, image: mark === "![", children });
  reader.at = end;
};

/**
 * `(address)` or `(address "title")`. Titles are left out.
 *
 * @param {string} source @param {number} at @returns {{target: string, end: number} | null}
 */
const targetAt = (source, at) => {
  if (source[at] !== "(") return null;
  let depth = 0;
  for (let end = at; end < source.length && end - at < TARGET_MAX; end += 1) {
    const character = source[end];
    if (character === "\n") return null;
    if (character === "(") depth += 1;
    if (character === ")") depth -= 1;
    if (depth > PARENTHESES_MAX) return null;
    if (depth === 0) {
      const target = source
        .slice(at + 1, end)
        .trim()
        .split(/\s/, 1)[0];
      return { target: (target ?? "").replace(/^<|>$/g, ""), end: end + 1 };
    }
  }
  return null;
};

/** @param {Reader} reader */
const emphasis = (reader) => {
  const { source, at } = reader;
  const sign = source[at] ?? "";
  const length = runAt(reader);
  if (length > 3 || (sign === "~" && length !== 2)) return take(reader, length);
  const [before, after] = [source[at - 1] ?? " ", source[at + length] ?? " "];
  const inWord = sign === "_";
  let left = length;
  if (!SPACE.test(before) && !(inWord && WORD.test(after))) left = closedMarks(reader, sign, length);
  const opens = !SPACE.test(after) && !(inWord && WORD.test(before));
  if (left > 0 && !opens) return take(reader, left);
  if (left > 1) opened(reader, sign.repeat(2));
  if (left % 2 === 1) opened(reader, sign);
};

/** @param {Reader} reader @param {string} sign @param {number} length @returns {number} how many signs are left */
const closedMarks = (reader, sign, length) => {
  let left = length;
  while (left > 0) {
    const most = left;
    const index = reader.open.findLastIndex(
      ({ mark, at, children }) =>
        mark.startsWith(sign) && mark.length <= most && (children.length > 0 || at + mark.length < reader.at),
    );
    if (index < 0) return left;
    const { mark, children } = closed(reader, index);
    add(reader, { type: TYPES[mark] ?? "em", children });
    reader.at += mark.length;
    left -= mark.length;
  }
  return 0;
};
