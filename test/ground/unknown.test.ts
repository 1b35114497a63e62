import { expect, test } from "vitest";
import { isRecord } from "../../src/ground/record.ts";
import { thrownText, toError } from "../../src/ground/thrown.ts";

test.each([
  [{}, true],
  [{ a: 1 }, true],
  [[], false],
  [new Date(0), false],
  [null, false],
  ["text", false],
])("knows an object with named fields: %j", (value, expected) => {
  expect(isRecord(value)).toBe(expected);
});

test("reads what was thrown, an error or anything else", () => {
  const error = new TypeError("no");
  expect([thrownText(error), thrownText("no"), thrownText(undefined)]).toEqual(["no", "no", "undefined"]);
  expect(toError(error)).toBe(error);
  expect(toError("no")).toEqual(new Error("no"));
});
