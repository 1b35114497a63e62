import { expect, test } from "vitest";
import {
  isMoreUrgent,
  isRequired,
  SAVE_ORDERS,
  stillUnsaved,
  type Unsaved,
} from "../../../src/domain/save/order.ts";

test("a stop that waits for no longer than it says replaces one that does, and a save that is required weakens none", () => {
  const replaces = SAVE_ORDERS.map((order) => SAVE_ORDERS.filter((than) => isMoreUrgent(order, than)));
  expect(Object.fromEntries(SAVE_ORDERS.map((order, index) => [order, replaces[index]]))).toEqual({
    pause: [],
    require: ["pause"],
    last: ["pause", "require"],
    try: ["pause", "require", "last"],
    dismiss: ["pause", "require", "last", "try"],
    skip: ["pause", "require", "last", "try", "dismiss"],
  });
});

test("a sandbox stays only if its save is required", () => {
  expect(SAVE_ORDERS.filter(isRequired)).toEqual(["pause", "require"]);
});

test("the pauses between two tries grow to an hour", () => {
  const pauses: number[] = [];
  let unsaved: Unsaved | null = null;
  for (let now = 0; pauses.length < 9; now = unsaved.nextAt) {
    unsaved = stillUnsaved(unsaved, now);
    pauses.push((unsaved.nextAt - now) / 60_000);
  }
  expect(pauses).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60]);
  expect(unsaved).toMatchObject({ since: 0, tries: 9 });
});
