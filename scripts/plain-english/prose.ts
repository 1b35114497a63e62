/**
 * Finds the prose of a file: comments and string literals of programs, the whole text of other files. Other characters
 * (markers of comments, code in backticks) are blanked, so that an offset in a piece is an offset in the file.
 */
import ts from "typescript";

export type Kind = "comment" | "text" | "document";

export interface Piece {
  readonly kind: Kind;
  /** Offset of the first character in the file. */
  readonly start: number;
  readonly text: string;
}

const blank = (found: string): string => found.replace(/[^\n]/g, " ");

/** Inline code is not prose. In its place stands a word, so that a sentence keeps its length and its shape. */
const withoutCode = (text: string): string =>
  text.replace(/`[^`\n]+`/g, (code) => "x".repeat(code.length)).replace(/https?:[/][/][^\s)>]+/g, blank);

/** An empty line ends a paragraph, also one with a comment's star. */
const paragraphs = (piece: Piece): readonly Piece[] => {
  const found: Piece[] = [];
  let start = 0;
  for (const { 0: gap, index } of piece.text.matchAll(/\n[ \t]*(?=\n)|$/g)) {
    const text = piece.text.slice(start, index);
    if (text.trim() !== "") found.push({ ...piece, start: piece.start + start, text });
    start = index + gap.length;
  }
  return found;
};

const commentText = (text: string): string =>
  withoutCode(text.replace(/\/\*\*?|\*\/|\/\/+|^[ \t]*\*(?!\*)|@\w+/gm, blank));

const literalText = (text: string): string =>
  // `${` and `}` of a template's parts, quotes, and escapes of new lines.
  withoutCode(
    text
      .replace(/^[`"'}]|(?:\$\{|[`"'])$/g, blank)
      .replace(/\\n/g, "\n ")
      .replace(/\\`/g, " `"),
  );

const isLiteral = (node: ts.Node): boolean =>
  ts.isStringLiteral(node) ||
  ts.isNoSubstitutionTemplateLiteral(node) ||
  ts.isTemplateHead(node) ||
  ts.isTemplateMiddleOrTemplateTail(node);

const ofProgram = (file: string, source: string): readonly Piece[] => {
  const tree = ts.createSourceFile(file, source, ts.ScriptTarget.Latest, false, ts.ScriptKind.TS);
  const pieces: Piece[] = [];
  const visit = (node: ts.Node): void => {
    const children = ts.isToken(node) ? [] : node.getChildren(tree);
    if (children.length > 0) {
      for (const child of children) visit(child);
      return;
    }
    const start = node.getStart(tree);
    const trivia = source.slice(node.pos, start);
    if (trivia.trim() !== "") pieces.push({ kind: "comment", start: node.pos, text: commentText(trivia) });
    if (isLiteral(node))
      pieces.push({ kind: "text", start, text: literalText(source.slice(start, node.end)) });
  };
  visit(tree);
  return pieces;
};

/** Fenced code is not prose, and each row of a table is a piece of its own. */
const ofMarkdown = (source: string): readonly Piece[] => [
  {
    kind: "document",
    start: 0,
    text: withoutCode(source.replace(/^```[\s\S]*?^```/gm, blank)).replace(/[|*]/g, " "),
  },
];

const whole = (source: string): readonly Piece[] => [
  {
    kind: "comment",
    start: 0,
    text: withoutCode(source.replace(/^[ \t]*(?:#+|--)|<[^>]+>|\/\*|\*\//gm, blank)),
  },
];

export const proseOf = (file: string, source: string): readonly Piece[] => {
  const pieces = /\.(?:ts|js|mjs|cjs)$/.test(file)
    ? ofProgram(file, source)
    : file.endsWith(".md")
      ? ofMarkdown(source)
      : whole(source);
  return pieces.flatMap(paragraphs);
};
