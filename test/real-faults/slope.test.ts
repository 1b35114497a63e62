import { expect, it } from "vitest";
import { isRising, lineThrough } from "./slope.ts";

const line = (value: (minutes: number) => number) =>
  lineThrough(Array.from({ length: 11 }, (_, index) => ({ minutes: index, value: value(index) })));

it("computes the slope of a line", () => {
  expect(line((minutes) => 7 + 3 * minutes).slope).toBeCloseTo(3);
  expect(line((minutes) => 7 + 3 * minutes).error).toBeCloseTo(0);
  expect(line((minutes) => 100 - minutes / 2).slope).toBeCloseTo(-0.5);
});

it("computes no slope from too few samples", () => {
  expect(lineThrough([])).toEqual({ slope: 0, error: 0 });
  expect(lineThrough([{ minutes: 1, value: 9 }])).toEqual({ slope: 0, error: 0 });
});

it("distinguishes a slope above the limit from one below it, and from noise", () => {
  expect(
    isRising(
      line((minutes) => 3 * minutes),
      2,
    ),
  ).toBe(true);
  expect(
    isRising(
      line((minutes) => 3 * minutes),
      4,
    ),
  ).toBe(false);
  const scattered = [0, 60, 5, 70, 0, 80, 10, 60, 5, 75, 40];
  const scatter = (minutes: number) => scattered[minutes] ?? 0;
  expect(line(scatter).slope).toBeGreaterThan(0.5);
  expect(isRising(line(scatter), 0.5)).toBe(false);
  // A leak that scatter does not hide.
  expect(
    isRising(
      line((minutes) => 50 * minutes + scatter(minutes)),
      0.5,
    ),
  ).toBe(true);
});
