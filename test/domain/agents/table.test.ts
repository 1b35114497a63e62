/** One table of an agent, by itself. */
import * as Result from "effect/Result";
import { expect, it } from "vitest";
import { readAgentTable } from "../../../src/domain/agents/table.ts";

const fieldsOf = (table: unknown) => {
  const read = readAgentTable("a", table);
  return Result.isSuccess(read) ? null : read.failure.map(({ field }) => field);
};

it("names every fault of a table, and takes no field of it", () => {
  expect(fieldsOf({ runtime: 1, mode: "a b", colour: "red", model: "opus" })).toEqual([
    "colour",
    "runtime",
    "mode",
  ]);
});

it.each([
  ["64 words", Array.from({ length: 64 }, () => "x"), null],
  ["65 words", Array.from({ length: 65 }, () => "x"), ["command"]],
  ["an empty word", ["x", ""], ["command"]],
  ["a word with NUL", ["x\0"], ["command"]],
  ["a word that is too long", ["x".repeat(4097)], ["command"]],
  ["a number", ["x", 1], ["command"]],
])("reads a command of %s", (_, command, faults) => {
  expect(fieldsOf({ command })).toEqual(faults);
});

it("names at most ten unknown fields", () => {
  const stray = Object.fromEntries(Array.from({ length: 1000 }, (__, at) => [`x${at}`, 1]));
  expect(fieldsOf(stray)).toHaveLength(10);
});
