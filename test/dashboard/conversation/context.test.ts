import { expect, it } from "vitest";
import { contextState, contextWords, fullShare } from "../../../dashboard/conversation/foot/context.ts";
import { clock } from "../../../dashboard/elements/format.ts";
import type { Item } from "../../../dashboard/wire.d.ts";
import { sampleItem } from "../samples/sample-conversation.ts";

const AT = "2026-11-20T06:52:05.000Z";

// eslint-disable-next-line typescript/no-unsafe-type-assertion -- it has all fields of one
const made = (rest: object) => sampleItem("a", { ...rest }) as unknown as Item;
const call = (tokens: number, size: number | null) => made({ context: { tokens, size } });
const summary = made({ kind: "note", compacts: true, created_at: AT });

const wordsFor = (...order: Item[]) => {
  const state = contextState({ order });
  return state && contextWords(state);
};

it("says how full the context was after the last call, or only its tokens", () => {
  expect(wordsFor(call(1, 10), call(122_000, 200_000), made({}))).toBe("Context: 61 % of 200,000 tokens");
  expect(wordsFor(call(1, 10), call(4528, null))).toBe("Context: 4,528 tokens");
  expect(wordsFor(made({}))).toBeNull();
});

it("names the last summary, and knows nothing until the call after it", () => {
  const replaced = `What came before ${clock(AT)} was replaced with a summary.`;
  expect(wordsFor(call(9, 10), summary)).toBe(`Context: known after the agent's next call. ${replaced}`);
  expect(wordsFor(summary, call(5, 10))).toBe(`Context: 50 % of 10 tokens. ${replaced}`);
});

const share = (tokens: number | null, size: number | null) => fullShare({ tokens, size, compactedAt: null });

it("is never more than full", () => {
  expect([share(5, 10), share(11, 10), share(5, null), share(null, 10)]).toEqual([0.5, 1, null, null]);
});
