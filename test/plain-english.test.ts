/** The prose check of `npm run check`: what it reads, and what it finds there. */
import { expect, test } from "vitest";
import { findPhrases } from "../scripts/plain-english/find.ts";
import { RULES } from "../scripts/plain-english/rules.ts";

const found = (file: string, source: string): readonly string[] =>
  findPhrases(file, source).map(({ line, phrase, kind }) => `${line} ${kind} ${phrase}`);

test.each(RULES.map((rule) => ({ pattern: rule.pattern, rule })))(
  "finds $pattern in its example alone",
  ({ rule }) => {
    const [bad, good] = rule.example;
    expect(findPhrases("a.md", bad).map((phrase) => phrase.rule)).toContain(rule);
    expect(found("a.md", good)).toEqual([]);
  },
);

test("reads comments, strings and templates of a program, and no code", () => {
  const source = [
    "/** Read by",
    " *  whoever asks. */",
    "const nobody = { whoever: 1 }; // none",
    "// of it",
    'const a = "nobody";',
    "const b = `x ${a} is not",
    "there ${nobody} such a thing`;",
  ].join("\n");
  expect(found("a.ts", source)).toEqual([
    "2 comment whoever",
    "3 comment none of",
    "5 text nobody",
    "6 text is not there",
    "7 text such a",
  ]);
});

const start = (text: string): number => found("a.md", text).length;

test("finds a sentence whose subject is a clause at the start of a sentence alone", () => {
  expect(start("What is held\nis of a version.")).toBe(1);
  expect(start("It ends. What the sandbox had is lost.")).toBe(1);
  expect(start("- What was kept is lost.")).toBe(1);
  expect(start("It says what is held.")).toBe(0);
  expect(start("What is held? The version.")).toBe(0);
  expect(start("## What is held")).toBe(0);
});

test("does not read code, addresses or the user named in backticks", () => {
  const source = "The user `nobody` and [a page](https://example.org/whoever).\n\n```sh\nid nobody\n```\n";
  expect(found("a.md", source)).toEqual([]);
});

test("excuses a phrase that a marker with a reason stands beside", () => {
  expect(found("a.ts", '// plain-english: a name of POSIX\nconst user = "nobody";')).toEqual([]);
  expect(found("a.ts", '// plain-english:\nconst user = "nobody";')).toHaveLength(1);
});
