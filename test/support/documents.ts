/** The Markdown documents of the repository, and the code blocks in them. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { Marked } from "marked";

export const ROOT = path.join(import.meta.dirname, "../..");

export const read = (file: string): string => readFileSync(path.join(ROOT, file), "utf8");

/** Files that git knows, and new ones that it does not ignore; paths from the root. */
export const files = (...patterns: readonly string[]): readonly string[] =>
  execFileSync(
    "git",
    // The checkout may be another user's.
    ["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard", ...patterns],
    { cwd: ROOT, encoding: "utf8" },
  )
    .split("\0")
    .filter((file) => file !== "" && existsSync(path.join(ROOT, file)));

export interface CodeBlock {
  readonly text: string;
  /** The first word after the fence. */
  readonly language: string;
  /** The fence is marked `untested`. A reader does not see the mark. */
  readonly isUntested: boolean;
  /** Where its text begins, from 1. */
  readonly line: number;
}

export const codeBlocks = (source: string): readonly CodeBlock[] => {
  const blocks: CodeBlock[] = [];
  let line = 1;
  for (const token of new Marked().lexer(source)) {
    if (token.type === "code") {
      const [language = "", ...rest] = String(token.lang ?? "").split(" ");
      const isUntested = rest.includes("untested");
      blocks.push({ text: String(token.text), language, isUntested, line: line + 1 });
    }
    line += token.raw.split("\n").length - 1;
  }
  return blocks;
};
