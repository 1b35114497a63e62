import { expect, it } from "vitest";
import { projectNameKey } from "../../../src/domain/project/name.ts";

it("compares names without case, width and space around them", () => {
  for (const name of ["Shop", " shop ", "SHOP", "ｓｈｏｐ", "sh\u200bop", "\ufeffshop"])
    expect(projectNameKey(name)).toBe("shop");
  expect(projectNameKey("Ünit")).toBe(projectNameKey("üNIT"));
  expect(projectNameKey("shop 2")).not.toBe(projectNameKey("shop"));
});
