import { expect, it } from "vitest";
import { isBlank, isLongerThan, isOneLine, plainLine } from "../../src/domain/text.ts";

it("counts characters, not their units", () => {
  expect(isLongerThan("😀".repeat(200), 200)).toBe(false);
  expect(isLongerThan("😀".repeat(201), 200)).toBe(true);
  expect(isLongerThan("x".repeat(201), 200)).toBe(true);
});

it("takes invisible text for blank", () => {
  for (const text of ["", " \n\t", "\u200b\ufeff", "\u3164", "\u00a0\u2060", "\u2800"])
    expect(isBlank(text)).toBe(true);
  for (const text of ["a", "\u200b.", "😀"]) expect(isBlank(text)).toBe(false);
});

it("takes a line end and every other control character for more than a line", () => {
  for (const text of ["a\nb", "a\u2028b", "a\u0085b", "a\u001bb", "a\tb"])
    expect(isOneLine(text)).toBe(false);
  expect(isOneLine("👩‍💻 می‌خواهم a b")).toBe(true);
});

it.each([
  ["a\r\nBcc: x", "a Bcc: x"],
  ["\u202ea\u0000\u200bb\ud83d ", "a b"],
  ["👩‍💻 می‌خواهم", "👩‍💻 می‌خواهم"],
])("makes one line of %j, with the joiners that scripts and emoji need", (text, line) => {
  expect(plainLine(text)).toBe(line);
});
