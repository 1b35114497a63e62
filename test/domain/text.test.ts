import { expect, it } from "vitest";
import { isBlank, isLongerThan, isOneLine } from "../../src/domain/text.ts";

it("counts characters, not their units", () => {
  expect(isLongerThan("😀".repeat(200), 200)).toBe(false);
  expect(isLongerThan("😀".repeat(201), 200)).toBe(true);
  expect(isLongerThan("x".repeat(201), 200)).toBe(true);
});

it("takes invisible text for blank", () => {
  for (const text of ["", " \n\t", "\u200b\ufeff", "\u3164", "\u00a0\u2060"])
    expect(isBlank(text)).toBe(true);
  for (const text of ["a", "\u200b.", "😀"]) expect(isBlank(text)).toBe(false);
});

it("takes a line end and every other control character for more than a line", () => {
  for (const text of ["a\nb", "a\u2028b", "a\u0085b", "a\u001bb", "a\tb"])
    expect(isOneLine(text)).toBe(false);
  expect(isOneLine("👩‍💻 می‌خواهم a b")).toBe(true);
});
