/**
 * Markdown as tokens: paragraphs, headings, lists, code, quotes and tables. HTML is text. The time is linear in the text's
 * length, and nothing in a text is an error: a fence without an end reaches to the end of the text.
 */
import { inline } from "./markdown-inline.js";

/** @typedef {import("./markdown-inline.js").Inline} Inline */
/** @typedef {import("./markdown-inline.js").Budget} Budget */
/** @typedef {"left" | "right" | "center" | null} Align */
/** @typedef {{task: boolean | null, blocks: Block[]}} Entry `task`: whether it is done; null: no task */

/**
 * @typedef {{type: "paragraph", children: Inline[]}
 *   | {type: "heading", level: number, children: Inline[]}
 *   | {type: "code", language: string, text: string}
 *   | {type: "quote", blocks: Block[]}
 *   | {type: "list", ordered: boolean, start: number, entries: Entry[]}
 *   | {type: "table", align: Align[], head: Inline[][], rows: Inline[][][]}
 *   | {type: "rule"}
 *   | {type: "plain", text: string}} Block
 */

/** @typedef {{lines: string[], at: number, depth: number, budget: Budget}} Place */

/** Longer text is shown as it is. */
export const MARKDOWN_MAX = 200_000;
/** Deeper lists and quotes are shown as text. */
const DEPTH = 8;
/** The page stays fast with this many tokens in a text. The rest of the text is plain. */
const TOKENS_MAX = 20_000;
const COLUMNS_MAX = 40;

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]|$)/;
const RULE = /^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/;
const QUOTE = /^ {0,3}> ?/;
const ENTRY = /^( {0,3})([-*+]|\d{1,9}[.)])(?: {1,4}(?! )| |$)/;
const TASK = /^\[([ xX])\](?: |$)/;

/** @param {string} text @returns {Block[]} */
export const parse = (text) => {
  if (text.length > MARKDOWN_MAX) return [{ type: "plain", text }];
  const lines = text
    .replace(/\r\n/g, "\n")
    .split("\n")
    .map((line) => line.replace(/^[ \t]+/, (blank) => blank.replaceAll("\t", "    ")));
  return blocks({ lines, at: 0, depth: 0, budget: { left: TOKENS_MAX } });
};

/** @param {Place} place */
const lineAt = ({ lines, at }) => lines[at] ?? "";

/** @param {string} line */
const isBlank = (line) => line.trim() === "";

/** @param {Place} place @returns {Block[]} */
const blocks = (place) => {
  /** @type {Block[]} */
  const found = [];
  while (place.at < place.lines.length) {
    if (isBlank(lineAt(place))) place.at += 1;
    else if (place.budget.left <= 0) {
      found.push({ type: "plain", text: place.lines.slice(place.at).join("\n") });
      return found;
    } else found.push(block(place));
  }
  return found;
};

/** @param {Place} place @returns {Block} */
const block = (place) => {
  const line = lineAt(place);
  place.budget.left -= 1;
  const fence = fenceOf(line);
  if (fence !== null) return codeBlock(place, fence);
  const heading = HEADING.exec(line);
  if (heading !== null) {
    place.at += 1;
    const text = line.slice(heading[0].length).trim().replace(/ #+$/, "");
    return { type: "heading", level: heading[1]?.length ?? 1, children: inline(text, place.budget) };
  }
  if (RULE.test(line)) {
    place.at += 1;
    return { type: "rule" };
  }
  if (place.depth < DEPTH && QUOTE.test(line)) return quote(place);
  if (place.depth < DEPTH && ENTRY.test(line)) return list(place);
  return table(place) ?? paragraph(place);
};

/** @param {string} line @returns {{mark: string, language: string} | null} */
const fenceOf = (line) => {
  const found = FENCE.exec(line);
  if (found === null) return null;
  const mark = found[1] ?? "";
  const rest = line.slice(found[0].length).trim();
  if (mark.startsWith("`") && rest.includes("`")) return null;
  return { mark, language: rest.split(/\s/, 1)[0]?.slice(0, 40) ?? "" };
};

/** @param {Place} place @param {{mark: string, language: string}} fence @returns {Block} */
const codeBlock = (place, { mark, language }) => {
  const indent = lineAt(place).search(/[^ ]/);
  /** @type {string[]} */
  const text = [];
  place.at += 1;
  for (; place.at < place.lines.length; place.at += 1) {
    const end = fenceOf(lineAt(place));
    if (end?.language === "" && end.mark.startsWith(mark)) {
      place.at += 1;
      break;
    }
    text.push(unindented(lineAt(place), indent));
  }
  return { type: "code", language, text: text.join("\n") };
};

/** @param {string} line @param {number} most */
const unindented = (line, most) => line.slice(Math.min(most, indentOf(line)));

/** @param {string} line */
const indentOf = (line) => {
  const first = line.search(/[^ ]/);
  return first < 0 ? line.length : first;
};

/** @param {Place} place @param {string[]} lines @returns {Block[]} */
const inner = ({ depth, budget }, lines) => blocks({ lines, at: 0, depth: depth + 1, budget });

/** @param {Place} place @returns {Block} */
const quote = (place) => {
  /** @type {string[]} */
  const lines = [];
  for (; place.at < place.lines.length; place.at += 1) {
    const line = lineAt(place);
    if (!QUOTE.test(line) && (isBlank(line) || startsBlock(line))) break;
    lines.push(line.replace(QUOTE, ""));
  }
  return { type: "quote", blocks: inner(place, lines) };
};

/** Whether the line ends a paragraph before it. @param {string} line */
const startsBlock = (line) =>
  fenceOf(line) !== null || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || ENTRY.test(line);

/** @param {string} line */
const isOrdered = (line) => /^ *\d/.test(line);

/** @param {Place} place @returns {Block} */
const list = (place) => {
  const first = lineAt(place);
  const ordered = isOrdered(first);
  /** @type {Entry[]} */
  const entries = [];
  while (ENTRY.test(lineAt(place)) && isOrdered(lineAt(place)) === ordered && !RULE.test(lineAt(place))) {
    const [head = "", ...rest] = entryLines(place);
    const task = TASK.exec(head);
    const lines = [task === null ? head : head.slice(task[0].length), ...rest];
    place.budget.left -= 1;
    entries.push({
      task: task === null ? null : task[1] !== " ",
      blocks: inner(place, lines),
    });
    let next = place.at;
    while (next < place.lines.length && isBlank(place.lines[next] ?? "")) next += 1;
    // Blank lines may separate entries. Without a further entry, they end the list.
    if (next < place.lines.length && ENTRY.test(place.lines[next] ?? "")) place.at = next;
  }
  return { type: "list", ordered, start: Number.parseInt(first.trim(), 10) || 1, entries };
};

/** The lines of one entry without its mark and indent. @param {Place} place */
const entryLines = (place) => {
  const found = ENTRY.exec(lineAt(place));
  const [mark = "", base = ""] = found ?? [];
  const lines = [lineAt(place).slice(mark.length)];
  place.at += 1;
  let blanks = 0;
  for (let at = place.at; at < place.lines.length; at += 1) {
    const line = place.lines[at] ?? "";
    if (isBlank(line)) {
      blanks += 1;
      continue;
    }
    const belongs = indentOf(line) >= base.length + 2 || (blanks === 0 && !startsBlock(line));
    if (!belongs) break;
    for (; blanks > 0; blanks -= 1) lines.push("");
    lines.push(unindented(line, mark.length));
    place.at = at + 1;
  }
  return lines;
};

/** @param {string} line @returns {string[]} */
const cells = (line) => {
  /** @type {string[]} */
  const found = [];
  const text = line.trim().replace(/^\|/, "");
  let from = 0;
  for (let at = 0; at < text.length && found.length < COLUMNS_MAX; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === "|") {
      found.push(text.slice(from, at));
      from = at + 1;
    }
  }
  if (from < text.length) found.push(text.slice(from));
  return found.map((cell) => cell.trim().replaceAll("\\|", "|"));
};

/** @param {string} line @returns {Align[] | null} */
const alignment = (line) => {
  if (!line.includes("-") || !line.includes("|")) return null;
  const found = cells(line);
  if (!found.every((cell) => /^:?-+:?$/.test(cell))) return null;
  return found.map((cell) => {
    if (cell.endsWith(":")) return cell.startsWith(":") ? "center" : "right";
    return cell.startsWith(":") ? "left" : null;
  });
};

/** @param {Place} place @returns {Block | null} */
const table = (place) => {
  if (!lineAt(place).includes("|")) return null;
  const align = alignment(place.lines[place.at + 1] ?? "");
  if (align === null) return null;
  const head = cells(lineAt(place)).map((cell) => inline(cell, place.budget));
  /** @type {Inline[][][]} */
  const rows = [];
  place.at += 2;
  for (; place.at < place.lines.length && place.budget.left > 0; place.at += 1) {
    if (isBlank(lineAt(place)) || startsBlock(lineAt(place))) break;
    place.budget.left -= 1;
    rows.push(cells(lineAt(place)).map((cell) => inline(cell, place.budget)));
  }
  return { type: "table", align, head, rows };
};

/** @param {Place} place @returns {Block} */
const paragraph = (place) => {
  const lines = [lineAt(place).trim()];
  for (place.at += 1; place.at < place.lines.length; place.at += 1) {
    const line = lineAt(place);
    if (isBlank(line) || startsBlock(line)) break;
    lines.push(line.trim());
  }
  return { type: "paragraph", children: inline(lines.join("\n"), place.budget) };
};
