import * as Result from "effect/Result";
import { expect, test } from "vitest";
import { DEFAULT_TIER_CAPS, isTier, parseTierCaps, parseTierList } from "../../../src/domain/person/tier.ts";

test("caps are 50, 200 and 2000", () => {
  expect(DEFAULT_TIER_CAPS).toEqual({ free: 50, pro: 200, enterprise: 2000 });
});

test("an override replaces the caps it names and keeps the others", () => {
  expect(parseTierCaps('{"free": 2}')).toEqual(Result.succeed({ free: 2, pro: 200, enterprise: 2000 }));
  expect(parseTierCaps("{}")).toEqual(Result.succeed(DEFAULT_TIER_CAPS));
});

test.each([
  ["", "JSON object"],
  ["50", "JSON object"],
  ["null", "JSON object"],
  ["[50]", "JSON object"],
  ["{free: 50}", "JSON object"],
  ['{"gold": 1}', '"gold"'],
  ['{"__proto__": 1}', '"__proto__"'],
  ['{"free": 0}', "the cap of tier free to be a whole number"],
  ['{"free": -1}', "the cap of tier free to be a whole number"],
  ['{"free": 1.5}', "the cap of tier free to be a whole number"],
  ['{"pro": "50"}', "the cap of tier pro to be a whole number"],
  ['{"pro": null}', "the cap of tier pro to be a whole number"],
  ['{"pro": 1e12}', "the cap of tier pro to be a whole number"],
])("refuses the override %j and says why", (text, expected) => {
  const result = parseTierCaps(text);
  expect(Result.isFailure(result) && result.failure).toContain(expected);
});

test("accepts only the three exact tier names", () => {
  expect(["free", "pro", "enterprise"].every(isTier)).toBe(true);
  expect(["Free", "", "toString", 1, null].some(isTier)).toBe(false);
});

test("reads a list of tiers", () => {
  expect(parseTierList('["pro", "enterprise"]')).toEqual(Result.succeed(["pro", "enterprise"]));
  expect(parseTierList("[]")).toEqual(Result.succeed([]));
  for (const text of ["", "pro", '"pro"', '["gold"]', "{}"]) {
    expect(Result.isFailure(parseTierList(text))).toBe(true);
  }
});
