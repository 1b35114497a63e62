import { expect, it } from "vitest";
import { quantity } from "../../src/domain/counted.ts";

it("counts in words", () => {
  expect([0, 1, 2].map((count) => quantity(count, "file"))).toEqual(["0 files", "1 file", "2 files"]);
  expect([1, 2].map((count) => quantity(count, "search", "searches"))).toEqual(["1 search", "2 searches"]);
});
