import { describe, expect, it } from "vitest";
import { failure } from "../../../src/domain/session/failure.ts";
import { cutFront, cutText, storableText } from "../../../src/domain/text.ts";

describe("text from other sources", () => {
  it.each([
    ["plain, with lines\n\tand escapes \u001b[31m", "plain, with lines\n\tand escapes \u001b[31m"],
    ["a\0b\0", "ab"],
    ["\ud83d cut", "\ufffd cut"],
    ["cut \ude80", "cut \ufffd"],
    ["\ude80\ud83d", "\ufffd\ufffd"],
    ["whole 🚀", "whole 🚀"],
    ["\ud83d\0\ude80", "🚀"],
    ["", ""],
  ])("%j is kept as %j", (text, kept) => {
    expect(storableText(text)).toBe(kept);
  });

  it.each([
    ["abc", 3, "abc"],
    ["abc", 2, "ab"],
    ["a🚀b", 1, "a"],
    ["a🚀b", 2, "a"],
    ["a🚀b", 3, "a🚀"],
    ["a🚀", 3, "a🚀"],
    ["🚀", 1, ""],
    ["🚀", 0, ""],
  ])("%j is cut at %i to %j", (text, maxLength, cut) => {
    expect(cutText(text, maxLength)).toBe(cut);
  });
});

describe("a failure's message", () => {
  it("can be stored, whatever its source", () => {
    expect(failure("runtime_failed", "\0 out of fuel 🚀 \ud83d")).toEqual({
      code: "runtime_failed",
      message: " out of fuel 🚀 \ufffd",
    });
  });

  it("has at most 16,384 code units, and never ends in half of a surrogate pair", () => {
    const { message } = failure("runtime_failed", "🚀".repeat(9_000).padStart(18_001, "x"));
    expect(message).toHaveLength(16_383);
    expect(message.isWellFormed()).toBe(true);
  });
});

it.each([
  ["abc", 3, "abc"],
  ["abc", 2, "bc"],
  ["a😀b", 2, "b"],
  ["a😀b", 3, "😀b"],
])("the end of %j in %i units is %j", (text, maxLength, cut) => {
  expect(cutFront(text, maxLength)).toBe(cut);
});
