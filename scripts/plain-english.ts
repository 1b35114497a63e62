/**
 * `npm run check` ends with this: it reads the comments and strings of all programs and every document, and prints each
 * phrase of plain-english/rules.ts with its place and a plain alternative.
 *
 * A phrase that must stay (a quotation, another program's output) has the marker `plain-english: REASON` in a comment on its
 * line or on the line before.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { findPhrases } from "./plain-english/find.ts";

const ROOT = path.join(import.meta.dirname, "..");

/** The rules and their test: both quote the phrases that the rules refuse. */
const NOT_PROSE = new Set(["scripts/plain-english/rules.ts", "test/plain-english.test.ts"]);
/** Migrations are not read: one that ran is never edited. */
const READ =
  /^(?:src|daemon|dashboard|demo|scripts|test)\/.*\.(?:ts|js|mjs|cjs|sh|html|css)$|^[^/]+\.(?:ts|cjs)$|\/light-agent$|\.md$/;

/** Files under version control and new ones; safe.directory: the checkout may be another user's. */
const files = execFileSync(
  "git",
  ["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
  { cwd: ROOT, encoding: "utf8" },
)
  .split("\0")
  .filter((file) => READ.test(file) && !NOT_PROSE.has(file) && existsSync(path.join(ROOT, file)));

/** Starts of paths: only those files. */
const only = process.argv.slice(2);

const read = files.filter((file) => only.length === 0 || only.some((start) => file.startsWith(start)));

const found = read.flatMap((file) =>
  findPhrases(file, readFileSync(path.join(ROOT, file), "utf8")).map(
    ({ line, phrase, kind, rule }) =>
      `${file}:${line} ${kind} “${phrase}”: ${rule.reason}. Write: ${rule.instead}`,
  ),
);

for (const line of found) process.stdout.write(`${line}\n`);
if (found.length > 0) {
  process.stdout.write(`${found.length} phrases are not plain English (scripts/plain-english/rules.ts).\n`);
  process.exitCode = 1;
}
