import { expect, test } from "vitest";
import {
  applyDelta,
  applyItem,
  applyText,
  emptyConversation,
  type Item,
  lacksText,
  textOf,
} from "../../../dashboard/conversation/reading/model.ts";
import { sampleItem } from "../samples/sample-conversation.ts";

/** An event's version of the item, with the beginning of its text. */
const version = (seq: number, text: string, status: string): Item =>
  // eslint-disable-next-line typescript/no-unsafe-type-assertion -- it has all fields of one
  sampleItem("a", {
    seq,
    place: 1,
    truncated: true,
    status,
    content: [{ type: "text", text }],
  }) as unknown as Item;

test("the whole of a long text is read once when it begins to be long, and once when it has ended", () => {
  const conversation = emptyConversation();
  const take = (next: Item): boolean => {
    applyItem(conversation, next);
    return lacksText(conversation, next);
  };
  const shown = () => [...conversation.items.values()].map((item) => [textOf(item), item.truncated]);
  expect(take(version(1, "begin", "running"))).toBe(true);
  applyText(conversation, "a", "beginning");
  applyDelta(conversation, { item_id: "a", offset: 9, text: " and" });
  // The event has less than the page.
  expect(take(version(2, "begin", "running"))).toBe(false);
  expect(shown()).toEqual([["beginning and", true]]);
  expect(take(version(3, "begin", "completed"))).toBe(true);
  applyText(conversation, "a", "beginning and end");
  // An answer that is older than what the page has changes nothing.
  applyText(conversation, "a", "beginning");
  expect(shown()).toEqual([["beginning and end", false]]);
});
