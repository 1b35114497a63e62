import { describe, expect, it } from "vitest";
import {
  callEstimate,
  promptEstimate,
  WrittenText,
} from "../../../src/features/model-providers/rules/estimate.ts";

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
