/** Finds the phrases of the rules in the prose of a file. */
import { proseOf, type Kind } from "./prose.ts";
import { RULES, type Rule } from "./rules.ts";

export interface Phrase {
  readonly line: number;
  readonly phrase: string;
  readonly kind: Kind;
  readonly rule: Rule;
}

/** A space of a pattern is any white space; a sentence may begin after some. */
const EXPRESSIONS: readonly { readonly rule: Rule; readonly expression: RegExp }[] = RULES.map((rule) => ({
  rule,
  expression: new RegExp(
    rule.pattern.replaceAll(/\(\?:\^/g, "(?:^\\s*").replaceAll(/(?<!\[\^[^\]]*) /g, "\\s+"),
    "gi",
  ),
}));

const MARKER = /plain-english: \S+ \S+/;

const asksFrom = (text: string, index: number): boolean =>
  /[.!?;](?=\s|$)/.exec(text.slice(index))?.[0] === "?";

export const findPhrases = (file: string, source: string): readonly Phrase[] => {
  const lines = source.split("\n");
  const lineAt = (offset: number): number => source.slice(0, offset).split("\n").length;
  const excused = (line: number): boolean =>
    lines.slice(Math.max(0, line - 2), line).some((text) => MARKER.test(text));
  return proseOf(file, source).flatMap(({ kind, start, text }) =>
    EXPRESSIONS.flatMap(({ rule, expression }) =>
      [...text.matchAll(expression)]
        .filter(({ index }) => rule.exceptQuestions !== true || !asksFrom(text, index))
        .map(({ 0: phrase, index }) => {
          const leading = /^[^a-z]*/i.exec(phrase)?.[0].length ?? 0;
          return {
            kind,
            rule,
            line: lineAt(start + index + leading),
            phrase: phrase.trim().replaceAll(/\s+/g, " "),
          };
        })
        .filter(({ line }) => !excused(line)),
    ),
  );
};
