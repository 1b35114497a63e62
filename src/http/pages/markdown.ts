/**
 * Markdown as HTML, and what a document links to. HTML inside Markdown is shown as text, and a link is kept only where the
 * caller says where it leads, so that a document can put no markup and no script into a page.
 */
import MarkdownIt, { type Token } from "markdown-it";
import { escapeHtml } from "../../ground/html.ts";

export interface Heading {
  readonly depth: number;
  /** Its anchor: the same one as on GitHub. */
  readonly id: string;
  readonly text: string;
}

/** A link's address in the page; null: the text stands there without a link. */
export type Resolve = (href: string) => string | null;

const COMMENT = /^<!--[\s\S]*?-->$/;

/** Links stay as they are written; `Resolve` decides where each leads. */
const makeReader = () => {
  const reader = new MarkdownIt({ html: false, linkify: true });
  reader.linkify.set({ fuzzyEmail: false });
  reader.validateLink = () => true;
  reader.normalizeLink = (url) => url;
  reader.normalizeLinkText = (url) => url;
  return reader;
};
const reader = makeReader();

/** The words of a heading, without their markup. */
const plainText = (tokens: readonly Token[]): string => tokens.map(({ content }) => content).join("");

/** GitHub's rule: lower case, blanks to hyphens, no other punctuation than hyphens and underscores. */
const toAnchor = (text: string): string =>
  text
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, "")
    .replaceAll(" ", "-");

/** The headings in their order, by their opening tokens. One in a quotation or a list has no anchor. */
const headingsIn = (tokens: readonly Token[]): ReadonlyMap<Token, Heading> => {
  const anchors = new Map<string, number>();
  const headings = new Map<Token, Heading>();
  for (const [index, token] of tokens.entries()) {
    if (token.type !== "heading_open" || token.level > 0) continue;
    const text = plainText(tokens[index + 1]?.children ?? []);
    const anchor = toAnchor(text);
    const before = anchors.get(anchor) ?? 0;
    anchors.set(anchor, before + 1);
    // A name that comes again has a number at its end.
    headings.set(token, {
      depth: Number(token.tag.slice(1)),
      text,
      id: before === 0 ? anchor : `${anchor}-${before}`,
    });
  }
  return headings;
};

const withInner = (tokens: readonly Token[]): readonly Token[] =>
  tokens.flatMap((token) => [token, ...withInner(token.children ?? [])]);

/** The anchors of a document, and the targets of its links and pictures as they are written. */
export const outline = (source: string): { anchors: ReadonlySet<string>; links: readonly string[] } => {
  const tokens = reader.parse(source, {});
  const targets = withInner(tokens).map((token) => token.attrGet("href") ?? token.attrGet("src"));
  return {
    anchors: new Set([...headingsIn(tokens).values()].map(({ id }) => id)),
    links: targets.filter((target) => target !== null).map(String),
  };
};

const isComment = (token: Token | undefined): boolean =>
  token?.type === "inline" && COMMENT.test(token.content);

/** A paragraph that is a comment is left out, with its opening and its closing token. */
const withoutComments = (tokens: readonly Token[]): Token[] =>
  tokens.filter((_, index) => ![-1, 0, 1].some((offset) => isComment(tokens[index + offset])));

/** Changes tokens within text, so that the page neither links to what `resolve` does not know nor loads a picture. */
const settle = (tokens: readonly Token[], resolve: Resolve): void => {
  let leads = true;
  for (const token of tokens) {
    if (token.type === "link_open") {
      const address = resolve(String(token.attrGet("href")));
      leads = address !== null;
      token.attrs = address === null ? null : [["href", address]];
    }
    if (token.tag === "a") token.hidden = !leads;
    // A picture is its description.
    if (token.type === "image") token.type = "text";
  }
};

const codeBlock = (tokens: readonly Token[], index: number): string => {
  const { content = "", info = "" } = tokens[index] ?? {};
  // The page runs no script that could draw one.
  const label = info.trim() === "mermaid" ? '<p class="caption">Diagram in Mermaid notation</p>' : "";
  return `${label}<pre tabindex="0"><code>${escapeHtml(content.replace(/\n$/, ""))}</code></pre>\n`;
};

const headingEnd = (tokens: readonly Token[], index: number): string => {
  const { tag = "", meta } = tokens[index] ?? {};
  const id = meta?.["id"];
  if (typeof id !== "string") return `</${tag}>\n`;
  return ` <a class="anchor" href="#${escapeHtml(id)}" aria-label="Link to this section">#</a></${tag}>\n`;
};

Object.assign(reader.renderer.rules, {
  fence: codeBlock,
  code_block: codeBlock,
  heading_close: headingEnd,
  // A wide table scrolls in itself; the page does not.
  table_open: () => '<div class="wide" tabindex="0"><table>\n',
  table_close: () => "</table></div>\n",
  // The library aligns by a style, which no policy of these pages allows.
  th_open: () => "<th>",
  td_open: () => "<td>",
});

/** Renders a document. */
export const renderMarkdown = (source: string, resolve: Resolve) => {
  const tokens = withoutComments(reader.parse(source, {}));
  const headings = headingsIn(tokens);
  for (const [index, token] of tokens.entries()) {
    const heading = headings.get(token);
    const end = tokens[index + 2];
    if (heading !== undefined && end !== undefined) {
      token.attrs = [["id", heading.id]];
      end.meta = { id: heading.id };
    }
    settle(token.children ?? [], resolve);
  }
  return { html: reader.renderer.render(tokens, reader.options, {}), headings: [...headings.values()] };
};
