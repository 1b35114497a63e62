/** The Markdown documents of the repository, and the code blocks in them. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import MarkdownIt from "markdown-it";

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

/** @returns the addresses of the documents' pages. */
export const guideAddresses = (): readonly string[] =>
  files("docs/**/*.md", "docs/*.md").map((file) =>
    `/${file}`
      .replace(/\.md$/, "")
      .replace(/\/README$/, "")
      .replace("/docs", "/docs/guide"),
  );

export interface CodeBlock {
  readonly text: string;
  /** The first word after the fence. */
  readonly language: string;
  /** The fence is marked `untested`. A reader does not see the mark. */
  readonly isUntested: boolean;
  /** Where its text begins, from 1. */
  readonly line: number;
}

export const codeBlocks = (source: string): readonly CodeBlock[] =>
  new MarkdownIt()
    .parse(source, {})
    .filter(({ type, level }) => type === "fence" && level === 0)
    .map(({ content, info, map }) => {
      const [language = "", ...rest] = info.trim().split(" ");
      const text = content.replace(/\n$/, "");
      // The library counts from 0, and the text begins below the fence.
      return { text, language, isUntested: rest.includes("untested"), line: (map?.[0] ?? 0) + 2 };
    });
