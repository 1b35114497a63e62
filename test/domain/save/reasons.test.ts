import { expect, it } from "vitest";
import { REASON_WORDS, reasonWords } from "../../../dashboard/saved-report.js";
import { LEFT_OUT_WORDS, leftOutWords } from "../../../src/domain/save/reasons.ts";

it("says in words why something was left out, and leaves sentences of earlier versions as they are", () => {
  expect(leftOutWords("limit")).toBe("no room within the limits");
  expect(leftOutWords("larger than 10 MiB")).toBe("larger than 10 MiB");
  expect(leftOutWords("a_new_reason")).toBe("a new reason");
  expect(leftOutWords("constructor")).toBe("constructor");
});

it("says so on the page in the same words", () => {
  expect(REASON_WORDS).toEqual(LEFT_OUT_WORDS);
  for (const reason of [...Object.keys(LEFT_OUT_WORDS), "constructor", "a_new_reason"])
    expect(reasonWords(reason)).toBe(leftOutWords(reason));
});
