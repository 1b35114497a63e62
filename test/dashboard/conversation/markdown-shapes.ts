/** Short forms of Markdown that was read, and what can be counted in it. */
import { type Block, type Inline, parse } from "../../../dashboard/elements/markdown.ts";

type Token = Block | Inline;

/** The tokens directly in a token. */
const inside = (token: Token): readonly Token[] => {
  switch (token.type) {
    case "quote":
      return token.blocks;
    case "list":
      return token.entries.flatMap(({ blocks }) => blocks);
    case "table":
      return [token.head, ...token.rows].flat(2);
    default:
      return "children" in token ? token.children : [];
  }
};

export const all = (tokens: readonly Token[]): readonly Token[] =>
  tokens.flatMap((token) => [token, ...all(inside(token))]);

export const depthOf = (tokens: readonly Token[]): number =>
  tokens.reduce((most, token) => Math.max(most, 1 + depthOf(inside(token))), 0);

export const letters = (text: string): string => text.replaceAll(/[^ab]/g, "");

export const hrefs = (text: string) =>
  all(parse(text)).flatMap((token) => (token.type === "link" && token.href !== null ? [token.href] : []));

export const written = (text: string): string =>
  all(parse(text))
    .map((token) => ("text" in token ? token.text : ""))
    .join("");

/** Short forms, so that a test reads as the text that it means. */
export const brief = (token: Token): unknown => {
  switch (token.type) {
    case "text":
      return token.text;
    case "code":
      return { code: token.text, ...("language" in token ? { language: token.language } : {}) };
    case "link":
      return {
        [token.image ? "image" : "link"]: token.href ?? `no: ${token.target}`,
        in: token.children.map(brief),
      };
    case "list":
      return {
        [token.ordered ? `from ${token.start}` : "list"]: token.entries.map(({ task, blocks }) =>
          task === null ? blocks.map(brief) : { task, in: blocks.map(brief) },
        ),
      };
    case "table":
      return {
        align: token.align,
        rows: [token.head, ...token.rows].map((row) => row.map((cell) => cell.map(brief))),
      };
    case "rule":
      return "---";
    case "plain":
      return { plain: token.text };
    default:
      return { [token.type]: inside(token).map(brief) };
  }
};

export const shapeOf = (text: string) => parse(text).map(brief);
