import { describe, expect, it } from "vitest";
import { callPrice, tokenCost, modelPrice } from "../../../src/domain/model/prices.ts";

const own = { large: { input: 1, cached: 1, output: 1 } };

describe("a price", () => {
  it("is the owner's, or else that of the table, also for a dated name and at a router", () => {
    expect(modelPrice("large", own)).toEqual(own.large);
    const sonnet = { input: 3, cached: 0.3, output: 15 };
    for (const name of ["claude-sonnet-4-6", "claude-sonnet-4-6-20260101", "anthropic/claude-sonnet-4.6"])
      expect(modelPrice(name, {})).toEqual(sonnet);
    expect(modelPrice("gpt-5-mini-2025-08-07", {})).toEqual({ input: 0.25, cached: 0.025, output: 2 });
  });

  it("is never guessed", () => {
    for (const name of ["large", "gpt-5.5-pro", "claude-sonnet-9", "toString", ""])
      expect(modelPrice(name, {})).toBe(null);
  });

  it("of a request that names two models is the dearer one's", () => {
    expect(callPrice(["gpt-5-nano", "gpt-5.5", null], {})?.output).toBe(30);
    expect(callPrice(["unknown", null], {})).toBe(null);
  });

  it("makes billionths of a dollar, with cached tokens at their own price", () => {
    expect(tokenCost({ input: 1000, cached: 400, output: 100 }, { input: 2, cached: 1, output: 10 })).toBe(
      2_600_000,
    );
  });
});
