/** The tokens that answers of models name. */
import { expect, test } from "vitest";
import { TokensReader, usageIn, type Tokens } from "../../../src/domain/sandbox/model-tokens.ts";

const NONE: Tokens = { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } };

const event = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;

/** An answer of a model that has 1,000 tokens read, 400 of them from its cache, and 100 written. */
test.each([
  [
    "a stream of completions",
    event({ choices: [{ delta: { content: "Hi" } }], usage: null }) +
      event({
        choices: [],
        usage: { prompt_tokens: 1000, completion_tokens: 100, prompt_tokens_details: { cached_tokens: 400 } },
      }),
  ],
  [
    "a response",
    event({
      response: {
        usage: { input_tokens: 1000, input_tokens_details: { cached_tokens: 400 }, output_tokens: 100 },
      },
    }),
  ],
  [
    "a stream of a message, with the input at its beginning",
    event({ message: { usage: { input_tokens: 600, cache_read_input_tokens: 400, output_tokens: 1 } } }) +
      event({ type: "content_block_delta", delta: { text: '"usage": {"output_tokens": "many"}' } }) +
      event({ type: "message_delta", usage: { input_tokens: null, output_tokens: 100 } }),
  ],
  [
    "a stream of Gemini, which repeats what came before",
    event({
      usageMetadata: { promptTokenCount: 1000, cachedContentTokenCount: 400, candidatesTokenCount: 1 },
    }) +
      event({
        usageMetadata: {
          promptTokenCount: 1000,
          cachedContentTokenCount: 400,
          candidatesTokenCount: 70,
          thoughtsTokenCount: 30,
          promptTokensDetails: [{ modality: "TEXT", tokenCount: 1000 }],
        },
      }),
  ],
])("are read from %s, wherever its pieces end", (_, answer) => {
  for (const size of [1, 7, answer.length]) {
    const reader = new TokensReader();
    for (let at = 0; at < answer.length; at += size) reader.take(answer.slice(at, at + size));
    expect(usageIn(reader.tokens ?? NONE)).toEqual({
      input_tokens: 1000,
      output_tokens: 100,
      cached_tokens: 400,
    });
  }
});

test("are none in an answer without them", () => {
  const reader = new TokensReader();
  reader.take(event({ choices: [{ delta: { content: "the usage: {}" } }] }));
  expect(reader.tokens).toBeNull();
});

test("are those that were named before a stream broke off", () => {
  const reader = new TokensReader();
  reader.take(
    event({ message: { usage: { input_tokens: 600, cache_read_input_tokens: 400, output_tokens: 1 } } }),
  );
  reader.take('data: {"type":"message_delta","usage":{"output_tok');
  expect(usageIn(reader.tokens ?? NONE)).toEqual({
    input_tokens: 1000,
    output_tokens: 1,
    cached_tokens: 400,
  });
});
