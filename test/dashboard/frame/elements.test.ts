import { describe, expect, it } from "vitest";
import { jsx, jsxs } from "../../../dashboard/ui/jsx-runtime.ts";

/** Turns the direction of the text after it. */
const TURN = "\u202e";

describe("an element of a page", () => {
  it("shows invisible characters in its text and in what is read aloud [P09]", () => {
    const name = `a${TURN}b`;
    expect(jsx("p", { children: name }).props).toEqual({ children: "a[U+202E]b" });
    expect(jsxs("p", { children: ["by ", name, 7] }).props).toEqual({ children: ["by ", "a[U+202E]b", 7] });
    expect(jsx("p", { title: name, "aria-label": name }).props).toEqual({
      title: "a[U+202E]b",
      "aria-label": "a[U+202E]b",
    });
    // The value of a field is what is sent.
    expect(jsx("input", { value: name }).props).toEqual({ value: name });
  });

  it.each(["dangerouslySetInnerHTML", "srcDoc", "src", "action", "formAction"])(
    "has no attribute %s [T08]",
    (name) => {
      expect(() => jsx("p", { [name]: "x" })).toThrow("the page sets no");
    },
  );

  it.each(["javascript:pwned=1", "https://example.com/", "//example.com/"])(
    "does not link to %s [T08]",
    (href) => {
      expect(() => jsx("a", { href })).toThrow("the page links to itself");
    },
  );

  it("links within the page and to the service", () => {
    expect(jsx("a", { href: "#/audit" }).props).toEqual({ href: "#/audit" });
    expect(jsx("a", { href: "/docs/guide" }).props).toEqual({ href: "/docs/guide" });
  });
});
