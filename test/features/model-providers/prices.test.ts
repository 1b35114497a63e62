import { describe, expect, it } from "vitest";
import {
  callEstimate,
  promptEstimate,
  WrittenText,
} from "../../../src/features/model-providers/rules/estimate.ts";
import { callPrice, costOf, priceOf } from "../../../src/features/model-providers/rules/prices.ts";

const own = { large: { input: 1, cached: 1, output: 1 } };

describe("a price", () => {
  it("is the owner's, or else that of the table, also for a dated name and at a router", () => {
    expect(priceOf("large", own)).toEqual(own.large);
    const sonnet = { input: 3, cached: 0.3, output: 15 };
    for (const name of ["claude-sonnet-4-6", "claude-sonnet-4-6-20260101", "anthropic/claude-sonnet-4.6"])
      expect(priceOf(name, {})).toEqual(sonnet);
    expect(priceOf("gpt-5-mini-2025-08-07", {})).toEqual({ input: 0.25, cached: 0.025, output: 2 });
  });

  it("is never guessed", () => {
    for (const name of ["large", "gpt-5.5-pro", "claude-sonnet-9", "toString", ""])
      expect(priceOf(name, {})).toBe(null);
  });

  it("of a request that names two models is the dearer one's", () => {
    expect(callPrice(["gpt-5-nano", "gpt-5.5", null], {})?.output).toBe(30);
    expect(callPrice(["unknown", null], {})).toBe(null);
  });

  it("makes billionths of a dollar, with cached tokens at their own price", () => {
    expect(costOf({ input: 1000, cached: 400, output: 100 }, { input: 2, cached: 1, output: 10 })).toBe(
      2_600_000,
    );
  });
});

describe("an estimate", () => {
  it("has a token for four bytes of the prompt, and the wished answer, both bounded", () => {
    expect(callEstimate('{"model":"x","max_tokens": 512}', 4000)).toEqual({
      input: 1000,
      cached: 0,
      output: 512,
    });
    expect(callEstimate('{"max_output_tokens":32000}', 4).output).toBe(8192);
    expect(callEstimate("{}", 4).output).toBe(8192);
    expect(promptEstimate(100_000_000)).toBe(200_000);
  });

  it("counts what a model wrote in each wire format, wherever a piece ends", () => {
    const answers = [
      'data: {"choices":[{"delta":{"content":"abcdefgh"}}]}\n\n',
      'data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"abcdefgh"}}\n\n',
      'data: {"type":"response.output_text.delta","delta":"abcdefgh"}\n\n',
      'data: {"candidates":[{"content":{"parts":[{"text":"abcdefgh"}]}}]}\n\n',
    ];
    for (const answer of answers)
      for (const at of [1, answer.indexOf("abcd") + 2, answer.length - 2]) {
        const written = new WrittenText();
        written.take(answer.slice(0, at));
        written.take(answer.slice(at));
        expect(written.tokens).toBe(2);
      }
  });
});
