/** The titles of sessions without a name. */
import { describe, expect, it } from "vitest";
import { promptTitle } from "../../../src/domain/session/title.ts";

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
