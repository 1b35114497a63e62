import { expect, it } from "vitest";
import { changedWords, withChanged } from "../../../dashboard/diff/changed-words.ts";
import { type DiffLine, parseDiff } from "../../../dashboard/diff/parse.ts";

const linesOf = (...texts: readonly string[]): readonly DiffLine[] =>
  parseDiff(`diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n${texts.join("\n")}\n`).files[0]?.lines ??
  [];

/** The marked part of each line. */
const marked = (...texts: readonly string[]) => {
  const lines = linesOf(...texts);
  const found = changedWords(lines);
  return lines.slice(1).map((line) => {
    const span = found.get(line);
    return span === undefined ? null : line.text.slice(span.from, span.to);
  });
};

it("marks the words that changed in a line", () => {
  expect(marked("-const total = sum(items);", "+const total = sumOf(items);")).toEqual(["sum", "sumOf"]);
  const pairs = marked("-  return a;", "-  return b + 1;", "+  return a2;", "+  return b;");
  expect(pairs).toEqual(["a", " + 1", "a2", null]);
  expect(marked("-call(one, two)", "+call(one, zero, two)")).toEqual([null, "zero, "]);
});

it("marks nothing in lines that have little in common, are alone or too long", () => {
  expect(marked("-    import fs", "+    whole other")).toEqual([null, null]);
  expect(marked("+new line")).toEqual([null]);
  const long = "x ".repeat(600);
  expect(marked(`-${long}a`, `+${long}b`)).toEqual([null, null]);
});

it("keeps the looks of a line beside the mark", () => {
  const pieces = [
    { text: "+", look: "sign" },
    { text: "sum", look: "code-function" },
    { text: "(items)", look: "" },
  ];
  expect(withChanged(pieces, { from: 2, to: 6 })).toEqual([
    { text: "+", look: "sign" },
    { text: "s", look: "code-function" },
    { text: "um", look: "code-function changed" },
    { text: "(i", look: "changed" },
    { text: "tems)", look: "" },
  ]);
});
