/** The tokens of model calls, as the gateway's answers name them. */
import { expect, test } from "vitest";
import { PassedCalls } from "../../../daemon/agent/passed-calls.ts";
import { type Tokens, usageIn } from "../../../src/domain/sandbox/model-tokens.ts";

const tokens = (input: number, output: number, cached = 0): Tokens => ({
  input: input - cached,
  output,
  reasoning: 0,
  cache: { read: cached, write: 0 },
});
const NONE = tokens(0, 0);

test("a call whose message was stopped has those that the gateway named, once", () => {
  const calls = new PassedCalls();
  for (const call of [tokens(300, 5), tokens(1000, 100, 400), tokens(2000, 50)]) calls.passed(call);
  // The runtime recorded the second of them. The first one was for a title.
  expect(calls.messageTokens("recorded", tokens(1000, 100, 400), false)).toEqual(tokens(1000, 100, 400));
  expect(calls.messageTokens("open", NONE, false)).toEqual(NONE);
  expect(calls.messageTokens("stopped", NONE, true)).toEqual(tokens(2000, 50));
  expect(calls.messageTokens("stopped", NONE, true)).toEqual(tokens(2000, 50));
  expect(calls.messageTokens("recorded", tokens(1000, 100, 400), false)).toEqual(tokens(1000, 100, 400));
  expect(usageIn(calls.sum ?? NONE)).toMatchObject({ input_tokens: 300, output_tokens: 5 });
  expect(calls.messageTokens("another", undefined, true)).toEqual(tokens(300, 5));
  expect([calls.sum, calls.messageTokens("without a call", NONE, true)]).toEqual([null, NONE]);
});

test("a call that the runtime counts in another way is not counted twice", () => {
  const calls = new PassedCalls();
  calls.passed(tokens(1000, 100));
  expect(calls.messageTokens("recorded", tokens(1001, 100), false)).toEqual(tokens(1001, 100));
  expect(calls.messageTokens("stopped", NONE, true)).toEqual(NONE);
});
