import { expect, it } from "vitest";
import { firstSentence, shortRequest } from "../../../src/domain/conversation/row-texts.ts";

it.each([
  ["The tests pass. I pushed the branch.", "The tests pass."],
  ["**Done!** See `src/cart.ts` and [the docs](https://example.com/a_b).", "Done!"],
  [
    "I changed `src/cart.ts` and [the docs](https://example.com/a_b) today.\n\nMore.",
    "I changed src/cart.ts and the docs today.",
  ],
  ["## Summary\n\nThe cart\nis fixed", "The cart is fixed"],
  ["## Summary", "Summary"],
  ["- first point\n- second", "first point second"],
  ["```sh\nrm -r build\n```\nRemoved it.", "Removed it."],
  ["```sh\nrm -r build", null],
  ["Version 1.2 of e.g. node_modules works. Yes.", "Version 1.2 of e.g. node_modules works."],
  ["修好了。测试通过。", "修好了。"],
  [" \n ", null],
  ["", null],
])("takes the first sentence of %j as plain text", (markdown, expected) => {
  expect(firstSentence(markdown)).toBe(expected);
});

it("bounds a sentence without an end, and splits no character", () => {
  const sentence = firstSentence("😀".repeat(5000)) ?? "";
  expect(sentence).toHaveLength(199);
  expect(sentence.isWellFormed()).toBe(true);
  expect(sentence.endsWith("😀…")).toBe(true);
});

const REQUEST = { kind: "permission", title: "Run a command", patterns: ["rm *"], questions: [] } as const;
const question = (title: string, text: string) => ({ title, text, options: [], multiple: false });

it("says what the agent asks: the command, the first question, or the title", () => {
  expect(shortRequest(REQUEST)).toEqual({ kind: "permission", text: "Run a command" });
  expect(shortRequest({ ...REQUEST, command: "rm -r\n  build" }).text).toBe("rm -r build");
  const asked = { ...REQUEST, kind: "question", questions: [question("Database", "Which one?")] } as const;
  expect(shortRequest(asked)).toEqual({ kind: "question", text: "Which one?" });
  expect(shortRequest({ ...asked, questions: [question("Database", "")] }).text).toBe("Database");
});
