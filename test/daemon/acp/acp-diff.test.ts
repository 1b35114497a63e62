import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makePatch } from "../../../daemon/adapters/acp/diff.ts";

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "acp-diff-"));
});
afterAll(() => rmSync(directory, { recursive: true }));

const numbered = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, at) => `line ${from + at}\n`).join("");

test.each([
  ["a line in the middle", numbered(1, 20), numbered(1, 20).replace("line 9\n", "changed\nand more\n")],
  ["the first line", numbered(1, 5), `new\n${numbered(2, 5)}`],
  ["the last line", numbered(1, 5), `${numbered(1, 4)}new\n`],
  ["lines that come", numbered(1, 3), `${numbered(1, 3)}more\nand more\n`],
  ["lines that go", numbered(1, 30), numbered(1, 10)],
  ["two places", numbered(1, 20), numbered(1, 20).replace("line 3\n", "three\n").replace("line 15\n", "")],
  ["a repeated line", "a\na\na\n", "a\na\n"],
  ["everything", "a\nb\n", "c\n"],
  ["a file that becomes empty", "a\n", ""],
])("describes %s so that git makes the new text from the old one", (_, before, after) => {
  writeFileSync(join(directory, "file.txt"), before);
  const patch = makePatch("file.txt", before, after);
  execFileSync("git", ["apply", "-p0", "--unidiff-zero", "--whitespace=nowarn", "-"], {
    cwd: directory,
    input: patch,
    env: { PATH: process.env["PATH"], GIT_CEILING_DIRECTORIES: directory },
  });
  expect(readFileSync(join(directory, "file.txt"), "utf8")).toBe(after);
});

test("describes a new file, and keeps three lines around a change", () => {
  expect(makePatch("new.txt", null, "a\nb\n")).toBe("--- /dev/null\n+++ new.txt\n@@ -0,0 +1,2 @@\n+a\n+b\n");
  expect(makePatch("f", numbered(1, 9), numbered(1, 9).replace("line 5", "five"))).toBe(
    "--- f\n+++ f\n@@ -2,7 +2,7 @@\n line 2\n line 3\n line 4\n-line 5\n+five\n line 6\n line 7\n line 8\n",
  );
});
