import { expect, test } from "vitest";
import { fileFault, isOutOfSpace } from "../../../src/domain/repository/file-fault.ts";

test.each([
  ["ENOENT", "it does not exist"],
  ["EISDIR", "it is a directory"],
  ["ENOSPC", "the disk is full"],
  ["EWHATEVER", "EWHATEVER: raw"],
])("says why a file cannot be used (%s), as the end of a sentence", (code, words) => {
  expect(fileFault(Object.assign(new Error(`${code}: raw`), { code }))).toBe(words);
});

test("repeats anything else", () => {
  expect(fileFault("a text")).toBe("a text");
});

test.each([
  ["ENOSPC", true],
  ["EDQUOT", true],
  ["EACCES", false],
])("knows whether a write found no space (%s)", (code, isFull) => {
  expect(isOutOfSpace(Object.assign(new Error(code), { code }))).toBe(isFull);
});
