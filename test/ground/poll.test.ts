import { expect, test } from "vitest";
import { poll } from "../../src/ground/poll.ts";

/** A look that sees these values, one after the other. */
const looks = <A>(...values: readonly A[]) => {
  const left = [...values];
  return { look: () => left.shift() as A, left };
};

test("looks until it sees something, and not again", async () => {
  const { look, left } = looks<string | null>(null, null, "it", "more");
  expect(await poll(look, { everyMs: 1, withinMs: 100 })).toBe("it");
  expect(left).toEqual(["more"]);
});

test("gives up after its pauses, with a last look behind the last pause", async () => {
  const { look, left } = looks(false, false, false, true);
  expect(await poll(look, { everyMs: 1, withinMs: 2 })).toBeNull();
  expect(left).toEqual([true]);
});
