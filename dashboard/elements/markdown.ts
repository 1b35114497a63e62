/**
 * Markdown as a tree. markdown-it reads it (CommonMark, with tables and strikethrough), and this file turns its tokens into
 * what is shown. HTML is text, and nothing in a text is an error.
 *
 * A text beyond one of the limits below is shown as it is: no text may keep the page busy for long, and the library leaves
 * out what is nested too deeply (docs/decisions/0095-the-page-is-remade-with-react.md has the figures).
 */
import MarkdownIt, { type Token } from "markdown-it/browser";

type Align = "left" | "right" | "center" | null;
/** `task`: whether it is done; null: no task. */
export type Entry = { task: boolean | null; blocks: Block[] };

/** `href` is null if the page does not link to the target. */
export type Inline =
  | { type: "text"; text: string }
  | { type: "code"; text: string }
  | { type: "strong" | "em" | "del"; children: Inline[] }
  | { type: "link"; href: string | null; target: string; image: boolean; children: Inline[] };

export type Block =
  | { type: "paragraph"; children: Inline[] }
  | { type: "heading"; level: number; children: Inline[] }
  | { type: "code"; language: string; text: string }
  | { type: "quote"; blocks: Block[] }
  | { type: "list"; ordered: boolean; start: number; entries: Entry[] }
  | { type: "table"; align: Align[]; head: Inline[][]; rows: Inline[][][] }
  | { type: "rule" }
  | { type: "plain"; text: string };

/** A token, and what is between it and its closing token. */
type Node = { token: Token; inside: Node[] };

/** The longest text that is read as Markdown, in UTF-16 units. */
export const MARKDOWN_MAX = 60_000;
/** A short text can have many tokens: an empty row of a table is as many cells as the table has columns. */
const TOKENS_MAX = 10_000;
/** How deep the library reads. A quote is one level, a list is two. */
const NESTING_MAX = 32;
/** Emphasis within so many others is left out, and its text is shown. The library has no limit for it. */
const INLINE_DEPTH = 16;
/** The longest address of a link. */
const TARGET_MAX = 2048;
const LANGUAGE_MAX = 40;

const TASK = /^\[([ xX])\](?: |$)/;
const PROTOCOLS = new Set(["http:", "https:", "mailto:"]);
const EMPHASIS: Record<string, "strong" | "em" | "del"> = {
  strong_open: "strong",
  em_open: "em",
  s_open: "del",
};

const makeReader = () => {
  const reader = new MarkdownIt({ html: false, linkify: true, maxNesting: NESTING_MAX });
  // A bare address of mail is text.
  reader.linkify.add("mailto:", null);
  // Targets stay as they are written. `address` decides where a link may lead.
  reader.validateLink = () => true;
  reader.normalizeLink = (url) => url;
  reader.normalizeLinkText = (url) => url;
  return reader;
};
const reader = makeReader();

export const parse = (text: string): readonly Block[] => read(text, null).blocks;

/** A text that was read, and what it takes to read it on. */
export interface Read {
  text: string;
  blocks: readonly Block[];
  /** How many of the blocks no later text changes. */
  settled: number;
  /** Where the others begin, in UTF-16 units. */
  from: number;
  /** How many the settled blocks have. */
  tokens: number;
  /** Addresses that the text gives names to. */
  references: object;
}

/**
 * Reads a text that grows: only its end is read again. The blocks before it are the same objects. A name that the end gives to an
 * address holds for the blocks before it once the whole text is read.
 *
 * @param known what was read before, of this text or of another one
 */
export const readOn = (text: string, known: Read | null): Read => {
  if (known === null || !text.startsWith(known.text)) return read(text, null);
  return known.text === text ? known : read(text, known);
};

/** @param known its beginning */
const read = (text: string, known: Read | null): Read => {
  const plain: Read = {
    text,
    blocks: [{ type: "plain", text }],
    settled: 0,
    from: 0,
    tokens: 0,
    references: {},
  };
  if (text.length > MARKDOWN_MAX) return plain;
  const { settled = 0, from = 0, tokens: before = 0 } = known ?? {};
  const references = { ...known?.references };
  const rest = text.slice(from);
  const tokens = reader.parse(rest, { references });
  const isTooDeep = tokens.some(({ nesting, level }) => nesting > 0 && level >= NESTING_MAX - 1);
  if (isTooDeep || before + countOf(tokens) > TOKENS_MAX) return plain;
  const end = lastApart(tokens, rest.split(LINE_END));
  return {
    text,
    blocks: [...(known?.blocks.slice(0, settled) ?? []), ...treeOf(tokens, NESTING_MAX).map(blockOf)],
    settled: settled + tokens.slice(0, end).filter(isBlock).length,
    from: from + lineStart(rest, tokens[end]?.map?.[0] ?? 0),
    tokens: before + countOf(tokens.slice(0, end)),
    references,
  };
};

/** The library ends a line at each of these. */
const LINE_END = /\r\n?|\n/;

/** Whether a block of the text itself begins with it. */
const isBlock = ({ level, nesting }: Token) => level === 0 && nesting >= 0;

/**
 * The last block that stays one of its own: it has an empty line before it, and no list. Others may still become a part of the block
 * before them.
 *
 * @returns its first token
 */
const lastApart = (tokens: Token[], lines: string[]): number =>
  Math.max(
    0,
    tokens.findLastIndex(
      (token, at) =>
        isBlock(token) &&
        token.map !== null &&
        (lines[token.map[0] - 1] ?? "").trim() === "" &&
        tokens[at - 1]?.type.endsWith("list_close") !== true,
    ),
  );

/** @param line from 0 @returns where it begins */
const lineStart = (text: string, line: number): number => {
  let [at, count] = [0, line];
  for (const end of text.matchAll(new RegExp(LINE_END, "g"))) {
    if (count === 0) break;
    count -= 1;
    at = end.index + end[0].length;
  }
  return at;
};

/** @returns the address, if the page may link to it */
const address = (text: string): string | null => {
  if (text.length > TARGET_MAX) return null;
  try {
    const url = new URL(text);
    // Names before the host serve only to hide the host.
    return PROTOCOLS.has(url.protocol) && url.username === "" && url.password === "" ? url.href : null;
  } catch {
    return null;
  }
};

const countOf = (tokens: Token[]): number =>
  tokens.reduce((count, { children }) => count + 1 + (children === null ? 0 : countOf(children)), 0);

/** @param depth deeper elements are left out, and their content takes their place */
const treeOf = (tokens: Token[], depth: number): Node[] => {
  const root: Node[] = [];
  const open = [root];
  for (const token of tokens) {
    if (token.nesting < 0) {
      open.pop();
      continue;
    }
    const siblings = open.at(-1) ?? root;
    const node = { token, inside: [] };
    const isKept = token.nesting === 0 || open.length <= depth;
    if (isKept) siblings.push(node);
    if (token.nesting > 0) open.push(isKept ? node.inside : siblings);
  }
  return root;
};

const blockOf = ({ token, inside }: Node): Block => {
  switch (token.type) {
    case "heading_open":
      return { type: "heading", level: Number(token.tag.slice(1)), children: textIn(inside) };
    case "fence":
    case "code_block":
      return {
        type: "code",
        language: token.info.trim().split(/\s/, 1)[0]?.slice(0, LANGUAGE_MAX) ?? "",
        text: token.content.replace(/\n$/, ""),
      };
    case "blockquote_open":
      return { type: "quote", blocks: inside.map(blockOf) };
    case "bullet_list_open":
    case "ordered_list_open":
      return {
        type: "list",
        ordered: token.type === "ordered_list_open",
        start: Number(token.attrGet("start") ?? 1),
        entries: inside.map(entryOf),
      };
    case "table_open":
      return tableOf(inside);
    case "hr":
      return { type: "rule" };
    default:
      return { type: "paragraph", children: textIn(inside) };
  }
};

const entryOf = ({ inside }: Node): Entry => {
  const blocks = inside.map(blockOf);
  const [first] = blocks;
  const start = first?.type === "paragraph" ? first.children[0] : undefined;
  const task = start?.type === "text" ? TASK.exec(start.text) : null;
  if (start?.type !== "text" || task === null) return { task: null, blocks };
  start.text = start.text.slice(task[0].length);
  return { task: task[1] !== " ", blocks };
};

const tableOf = (sections: Node[]): Block => {
  const [head, ...rows] = sections.flatMap(({ inside }) => inside);
  return {
    type: "table",
    align: head?.inside.map(({ token }) => alignOf(token)) ?? [],
    head: head?.inside.map(({ inside }) => textIn(inside)) ?? [],
    rows: rows.map((row) => row.inside.map(({ inside }) => textIn(inside))),
  };
};

const alignOf = (cell: Token): Align => {
  const style = cell.attrGet("style");
  if (style === "text-align:left") return "left";
  if (style === "text-align:right") return "right";
  return style === "text-align:center" ? "center" : null;
};

/** @param nodes the one token that has the text of a block */
const textIn = ([node]: Node[]) => inlinesOf(treeOf(node?.token.children ?? [], INLINE_DEPTH));

const inlinesOf = (nodes: Node[]): Inline[] => {
  const found: Inline[] = [];
  for (const node of nodes) {
    const next = inlineOf(node);
    const last = found.at(-1);
    if (next.type === "text" && last?.type === "text") last.text += next.text;
    else if (next.type !== "text" || next.text !== "") found.push(next);
  }
  return found;
};

const inlineOf = ({ token, inside }: Node): Inline => {
  switch (token.type) {
    case "softbreak":
    case "hardbreak":
      return { type: "text", text: "\n" };
    case "code_inline":
      return { type: "code", text: token.content };
    case "link_open":
      return linkOf(token, inlinesOf(inside));
    case "image": {
      const target = String(token.attrGet("src"));
      // A description is text: emphasis in it is left out.
      const children = inlinesOf(treeOf(token.children ?? [], 0));
      return { type: "link", href: address(target), target, image: true, children };
    }
    default: {
      const type = EMPHASIS[token.type];
      return type === undefined
        ? { type: "text", text: token.content }
        : { type, children: inlinesOf(inside) };
    }
  }
};

const linkOf = (token: Token, children: Inline[]): Inline => {
  const target = String(token.attrGet("href"));
  const href = address(target);
  const [label] = children;
  // An address without a label is text if the page does not link to it.
  if (href === null && token.info === "auto" && label?.type === "text") {
    return { type: "text", text: token.markup === "autolink" ? `<${label.text}>` : label.text };
  }
  return { type: "link", href, target, image: false, children };
};
