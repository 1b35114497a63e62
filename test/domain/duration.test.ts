import { expect, it } from "vitest";
import { duration } from "../../src/domain/duration.ts";

it.each([
  [-5, "0 ms"],
  [999, "999 ms"],
  [3_210, "3.2 s"],
  [59_400, "59 s"],
  [61_000, "1 min"],
  [3_600_000, "1 h"],
  [3_900_000, "1 h 5 min"],
  [200_000_000, "2 days"],
])("%d ms are %s", (ms, words) => {
  expect(duration(ms)).toBe(words);
});
