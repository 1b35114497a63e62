import { expect, test } from "vitest";
import { isCheckoutPath } from "../../../src/domain/save/checkout-path.ts";

const latin1 = (text: string): string => Buffer.from(text).toString("latin1");

test.each([
  "a",
  "a/b.txt",
  ".gitignore",
  ".github/x",
  "git",
  "a.git/x",
  "näme",
  "a\nb",
  "\xff\xfe",
  "..a",
  "a..",
])("git checks out %j", (path) => {
  expect(isCheckoutPath(latin1(path))).toBe(true);
});

test.each([
  "",
  "/a",
  "a/",
  "a//b",
  ".",
  "a/../b",
  "..",
  ".git",
  "a/.git/config",
  ".GIT/x",
  ".git./x",
  ".git /x",
  ".git::$INDEX_ALLOCATION/x",
  "git~1",
  "GIT~1/x",
  "a\\.git\\config",
  ".g\u200cit/x",
  "\u{feff}.git",
  "a\0b",
])("git does not check out %j", (path) => {
  expect(isCheckoutPath(latin1(path))).toBe(false);
});

test("git takes its settings from no link", () => {
  expect(isCheckoutPath(".gitmodules")).toBe(true);
  for (const path of [".gitmodules", "a/.GITMODULES", "gitmod~1"])
    expect([path, isCheckoutPath(path, "120000")]).toEqual([path, false]);
  expect(isCheckoutPath("a/link", "120000")).toBe(true);
});
