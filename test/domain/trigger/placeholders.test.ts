/** What a prompt reads. How places are found is proven where they are filled (prompt.test.ts). */
import { expect, it } from "vitest";
import { templateTokens, usesVariable } from "../../../src/domain/trigger/placeholders.ts";

it("names each variable that a template reads once", () => {
  expect(templateTokens("{{ a.b }} {{a.b}} {{{c}}} {{ not this }} {{ d")).toEqual(["a.b", "c"]);
});

it.each([
  [true, "{{ message.text }}"],
  [true, "{{ message }}"],
  [true, "{{ message.text.length }}"],
  [false, "{{ message.source }} {{ message.texts }}"],
  [false, "message.text"],
])("%s: a prompt reads message.text, %s", (expected, template) =>
  expect(usesVariable(template, "message.text")).toBe(expected),
);
