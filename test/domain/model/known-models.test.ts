import { expect, it } from "vitest";
import { knownFacts } from "../../../src/domain/model/known-models.ts";

const SONNET = { price: { input: 3, cached: 0.3, output: 15 }, context: 1_000_000 };

it("knows price and context of a model by its name, by a dated one and at a router, and guesses none", () => {
  for (const model of [
    "anthropic/claude-sonnet-4-6",
    "x/claude-sonnet-4-6-20260101",
    "router/a/claude-sonnet-4.6",
  ])
    expect(knownFacts(model, [])).toEqual(SONNET);
  for (const model of ["anthropic/claude-sonnet-9", "x/toString", "claude-sonnet-4-6", "opus", ""])
    expect(knownFacts(model, [])).toEqual({});
});

it("takes the own price of the model's provider first", () => {
  const price = { input: 1, cached: 1, output: 2 };
  const provider = { owner: "account", name: "acme", kind: "openai", models: [] } as const;
  const providers = [{ ...provider, prices: { "claude-sonnet-4-6": price, large: price } }];
  expect(knownFacts("acme/claude-sonnet-4-6", providers)).toEqual({ ...SONNET, price });
  expect(knownFacts("acme/large", providers)).toEqual({ price });
  expect(knownFacts("other/large", providers)).toEqual({});
  expect(knownFacts("acme/claude-sonnet-4-6", [provider])).toEqual(SONNET);
});
