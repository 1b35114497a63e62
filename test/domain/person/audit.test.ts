import { describe, expect, it } from "vitest";
import { AUDIT_TEXT_MAX, keptChanges } from "../../../src/domain/person/audit.ts";

describe("the changes of an audit row", () => {
  it("leave out fields without a value, and keep null as a new value", () => {
    expect(keptChanges({ name: "a", role: undefined, default_role: null, count: 0, is: false })).toEqual({
      name: "a",
      default_role: null,
      count: 0,
      is: false,
    });
  });

  it("cut long texts, also inside a list, and never inside a character", () => {
    const long = `${"x".repeat(AUDIT_TEXT_MAX - 1)}\u{1f600}`;
    const cut = `${"x".repeat(AUDIT_TEXT_MAX - 1)}\ufffd`;
    expect(keptChanges({ text: long, list: [long, "b"] })).toEqual({ text: cut, list: [cut, "b"] });
  });
});
