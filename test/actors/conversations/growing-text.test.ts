import { describe, expect, it } from "vitest";
import { GrowingTexts } from "../../../src/actors/conversations/growing-text.ts";
import type { NativeItem } from "../../../src/domain/conversation/conversation.ts";
import type { ItemDelta } from "../../../src/services/sessions/conversation-hub.ts";
import type { ChangedConversation, Item } from "../../../src/store/ports/sessions/conversations.ts";
import { nativeItem } from "../../support/world/conversations.ts";

const version = (rev: number, text: string, status: NativeItem["status"] = "running"): NativeItem =>
  nativeItem("m", rev, { status, content: [{ type: "text", text }] });

/** The write of a version, as the store tells it. */
const writeOf = (item: NativeItem, seq: number): ChangedConversation =>
  ({
    conversation: { seq },
    changes: [
      {
        type: "item",
        seq,
        item: { id: "ours", nativeId: item.native_id, status: item.status, content: item.content },
      },
    ],
  }) as unknown as ChangedConversation;

/** A reader that applies the rules of the contract: a version replaces, a delta whose offset does not fit is dropped. */
class Shown {
  text: string | null = null;

  item({ content }: Pick<Item, "content">): void {
    this.text = content.map((part) => (part.type === "text" ? part.text : "")).join("");
  }

  deltas(deltas: readonly ItemDelta[]): void {
    for (const { offset, text } of deltas) if (this.text?.length === offset) this.text += text;
  }
}

const delta = (offset: number, text: string) => ({ native_id: "m", offset, text });

describe("a text that grows", () => {
  it("goes out at once after its first version, also while a later version is being written", () => {
    const texts = new GrowingTexts(1);
    const first = version(1, "one ");
    texts.reported(first);
    expect(texts.grew(delta(4, "two "))).toEqual([]);
    expect(texts.written(writeOf(first, 2))).toEqual([{ itemId: "ours", offset: 4, text: "two ", seq: 2 }]);
    texts.reported(version(2, "one two "));
    expect(texts.grew(delta(8, "three "))).toEqual([{ itemId: "ours", offset: 8, text: "three ", seq: 2 }]);
  });

  it("goes out again with a version that it is later than", () => {
    const texts = new GrowingTexts(1);
    const [first, second] = [version(1, "one "), version(2, "one two ")];
    const shown = new Shown();
    texts.reported(first);
    shown.item(first);
    shown.deltas(texts.written(writeOf(first, 2)));
    shown.deltas(texts.grew(delta(4, "two ")));
    texts.reported(second);
    shown.deltas(texts.grew(delta(8, "three ")));
    expect(shown.text).toBe("one two three ");
    shown.item(second);
    const again = texts.written(writeOf(second, 3));
    expect(again).toEqual([{ itemId: "ours", offset: 8, text: "three ", seq: 3 }]);
    shown.deltas(again);
    // Readers that have only the first version, and the text after it, have the same text.
    const more = texts.grew(delta(14, "four "));
    expect(more).toEqual([{ itemId: "ours", offset: 14, text: "four ", seq: 2 }]);
    shown.deltas(more);
    expect(shown.text).toBe("one two three four ");
  });

  it("does not go out where it would continue another text", () => {
    const texts = new GrowingTexts(1);
    const first = version(1, "one two ");
    texts.reported(first);
    texts.written(writeOf(first, 2));
    const other = version(2, "uno due ");
    texts.reported(other);
    expect(texts.grew(delta(8, "tre "))).toEqual([]);
    expect(texts.written(writeOf(first, 3))).toEqual([]);
    expect(texts.grew(delta(12, "quattro "))).toEqual([]);
    expect(texts.written(writeOf(other, 4))).toEqual([
      { itemId: "ours", offset: 8, text: "tre quattro ", seq: 4 },
    ]);
  });

  it("does not go out after a part that is missing, until the next version", () => {
    const texts = new GrowingTexts(1);
    const first = version(1, "one ");
    texts.reported(first);
    texts.written(writeOf(first, 2));
    expect(texts.grew(delta(9, "three "))).toEqual([]);
    expect(texts.grew(delta(4, "two "))).toEqual([]);
    const second = version(2, "one two three ");
    texts.reported(second);
    texts.written(writeOf(second, 3));
    expect(texts.grew(delta(14, "four "))).toHaveLength(1);
  });

  it("ends with its item", () => {
    const texts = new GrowingTexts(1);
    const first = version(1, "one ");
    texts.reported(first);
    texts.written(writeOf(first, 2));
    const closed = version(2, "one ", "completed");
    texts.reported(closed);
    expect(texts.written(writeOf(closed, 3))).toEqual([]);
    expect(texts.grew(delta(4, "two "))).toEqual([]);
  });
});
