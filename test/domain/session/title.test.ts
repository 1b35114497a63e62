/** The titles of sessions. */
import { describe, expect, it } from "vitest";
import { promptTitle, sessionTitle } from "../../../src/domain/session/title.ts";

describe("the title of a prompt", () => {
  it("is its first sentence, without Markdown, also over two lines", () => {
    expect(promptTitle("# Task\n\nThe **checkout** fails\nwith an empty cart. Fix it.")).toBe(
      "The checkout fails with an empty cart.",
    );
  });
  it("is cut at 60 characters, between whole ones", () => {
    expect(promptTitle("😀".repeat(70))).toBe(`${"😀".repeat(60)}…`);
  });
  it("is null without words", () => {
    expect(promptTitle(" \n ")).toBeNull();
  });
});

it.each([
  ["Checkout", "nightly", "Fix it.", "Checkout"],
  [null, "nightly", "Fix it.", "nightly"],
  [null, null, "Fix it. Then push.", "Fix it."],
  [null, null, null, null],
])("of a session with the name %j, the trigger %j and the prompt %j is %j", (name, slug, prompt, title) => {
  expect(sessionTitle(name, slug, prompt)).toBe(title);
});
