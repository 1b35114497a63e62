/**
 * Markdown as HTML, and what a document links to. HTML inside Markdown is shown as text, and a link is kept only where the
 * caller says where it leads, so that a document can put no markup and no script into a page.
 */
import { Marked, type Token, type Tokens } from "marked";
import { escaped } from "./look.ts";

export interface Heading {
  readonly depth: number;
  /** Its anchor: the same one as on GitHub. */
  readonly id: string;
  readonly text: string;
}

/** A link's address in the page; null: the text stands there without a link. */
export type Resolve = (href: string) => string | null;

const COMMENT = /^\s*<!--[\s\S]*?-->\s*$/;

/** The words of a heading or a link, without their markup. */
const plainText = (tokens: readonly Token[]): string =>
  tokens
    .map((token) => {
      const inner = "tokens" in token ? (token.tokens as readonly Token[] | undefined) : undefined;
      if (inner !== undefined) return plainText(inner);
      return "text" in token ? String(token.text) : "";
    })
    .join("");

/** GitHub's rule: lower case, blanks to hyphens, no other punctuation than hyphens and underscores. */
const anchorOf = (text: string): string =>
  text
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, "")
    .replaceAll(" ", "-");

/** The headings in their order; a name that comes again has a number at its end. */
const headingsIn = (tokens: readonly Token[]): readonly Heading[] => {
  const seen = new Map<string, number>();
  const found = tokens.filter((token): token is Tokens.Heading => token.type === "heading");
  return found.map(({ depth, tokens: inner }) => {
    const text = plainText(inner);
    const anchor = anchorOf(text);
    const before = seen.get(anchor) ?? 0;
    seen.set(anchor, before + 1);
    return { depth, text, id: before === 0 ? anchor : `${anchor}-${before}` };
  });
};

/** The anchors of a document, and the targets of its links and pictures as they are written. */
export const outline = (source: string): { anchors: ReadonlySet<string>; links: readonly string[] } => {
  const marked = new Marked();
  const tokens = marked.lexer(source);
  const links: string[] = [];
  marked.walkTokens(tokens, (token) => {
    if (token.type === "link" || token.type === "image") links.push(String(token.href));
  });
  return { anchors: new Set(headingsIn(tokens).map(({ id }) => id)), links };
};

const codeBlock = ({ text, lang = "" }: Tokens.Code): string => {
  // The page runs no script that could draw one.
  const label = lang === "mermaid" ? '<p class="caption">Diagram in Mermaid notation</p>' : "";
  return `${label}<pre tabindex="0"><code>${escaped(text)}</code></pre>\n`;
};

/** Renders a document. */
export const renderMarkdown = (source: string, resolve: Resolve) => {
  const marked = new Marked({ gfm: true });
  const tokens = marked.lexer(source);
  const headings = headingsIn(tokens);
  let next = 0;
  marked.use({
    renderer: {
      html: ({ text }) => (COMMENT.test(text) ? "" : escaped(text)),
      code: codeBlock,
      // No policy of these pages lets a picture load.
      image: ({ text }) => escaped(text),
      heading({ tokens: inner, depth }) {
        const html = this.parser.parseInline(inner);
        // One in a quotation or a list has no anchor.
        const id = headings[next]?.text === plainText(inner) ? headings[next++]?.id : undefined;
        if (id === undefined) return `<h${depth}>${html}</h${depth}>\n`;
        const anchor = `<a class="anchor" href="#${escaped(id)}" aria-label="Link to this section">#</a>`;
        return `<h${depth} id="${escaped(id)}">${html} ${anchor}</h${depth}>\n`;
      },
      link({ href, tokens: inner }) {
        const html = this.parser.parseInline(inner);
        const address = resolve(href);
        return address === null ? html : `<a href="${escaped(address)}">${html}</a>`;
      },
      // A wide table scrolls in itself; the page does not.
      table(token) {
        const row = (cells: readonly Tokens.TableCell[], tag: string) =>
          `<tr>${cells.map((cell) => `<${tag}>${this.parser.parseInline(cell.tokens)}</${tag}>`).join("")}</tr>`;
        const body = token.rows.map((cells) => row(cells, "td")).join("\n");
        return `<div class="wide" tabindex="0"><table>\n${row(token.header, "th")}\n${body}\n</table></div>\n`;
      },
    },
  });
  return { html: marked.parser(tokens), headings };
};
