/** The tokens of model calls, as the gateway's answers name them. */
import { expect, test } from "vitest";
import { PassedCalls, TokensReader, type Tokens, usageIn } from "../../daemon/agent/passed-calls.ts";

const tokens = (input: number, output: number, cached = 0): Tokens => ({
  input: input - cached,
  output,
  reasoning: 0,
  cache: { read: cached, write: 0 },
});
const NONE = tokens(0, 0);

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
      event({ type: "message_delta", usage: { output_tokens: 100 } }),
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

test("a call whose message was stopped has those that the gateway named, once", () => {
  const calls = new PassedCalls();
  for (const call of [tokens(300, 5), tokens(1000, 100, 400), tokens(2000, 50)]) calls.passed(call);
  // The runtime recorded the second of them. The first one was for a title.
  expect(calls.tokensOf("recorded", tokens(1000, 100, 400), false)).toEqual(tokens(1000, 100, 400));
  expect(calls.tokensOf("open", NONE, false)).toEqual(NONE);
  expect(calls.tokensOf("stopped", NONE, true)).toEqual(tokens(2000, 50));
  expect(calls.tokensOf("stopped", NONE, true)).toEqual(tokens(2000, 50));
  expect(calls.tokensOf("recorded", tokens(1000, 100, 400), false)).toEqual(tokens(1000, 100, 400));
  expect(usageIn(calls.sum ?? NONE)).toMatchObject({ input_tokens: 300, output_tokens: 5 });
  expect(calls.tokensOf("another", undefined, true)).toEqual(tokens(300, 5));
  expect([calls.sum, calls.tokensOf("without a call", NONE, true)]).toEqual([null, NONE]);
});

test("a call that the runtime counts in another way is not counted twice", () => {
  const calls = new PassedCalls();
  calls.passed(tokens(1000, 100));
  expect(calls.tokensOf("recorded", tokens(1001, 100), false)).toEqual(tokens(1001, 100));
  expect(calls.tokensOf("stopped", NONE, true)).toEqual(NONE);
});
