/**
 * The texts that grow in one sandbox's conversation: which parts of them readers may get before they are written.
 *
 *  G1 Text goes out at once if it continues what readers have: a written version, and the text that went out after it.
 *  G2 A version that is written takes readers back to its own text. So what came after it goes out again with it. Until
 *     readers have that version, text goes on to continue what they have.
 *  G3 If a text was replaced, or a part of it is missing, nothing goes out until its next version is written.
 */
import type { NativeItem, TextDelta } from "../../domain/conversation/conversation.ts";
import { isClosed } from "../../domain/conversation/growing.ts";
import type { ItemDelta } from "../../services/sessions/conversation-hub.ts";
import type { ChangedConversation, Item } from "../../store/ports/sessions/conversations.ts";

interface Growing {
  /** The whole text, as far as it was reported. */
  text: string;
  /** How much of it readers have. Null if their text is another one. */
  shown: number | null;
  /** Since which version their text has only grown. */
  base: number;
  /** Our id of the item. Null before it is written. */
  id: string | null;
}

/** The text that grows, if the item has one. */
const itemText = ({ content }: Pick<Item, "content">): string | null => {
  const last = content.at(-1);
  return last?.type === "text" ? last.text : null;
};

export class GrowingTexts {
  readonly #texts = new Map<string, Growing>();
  /** The conversation's number at the last write. */
  #seq: number;

  constructor(seq: number) {
    this.#seq = seq;
  }

  /** A version that is not written yet. */
  reported(item: NativeItem): void {
    const text = itemText(item);
    // A closed item's text ends. It is forgotten when that version is written.
    if (isClosed(item.status) || text === null) return;
    const growing = this.#texts.get(item.native_id);
    if (growing === undefined) this.#texts.set(item.native_id, { text, shown: null, base: 0, id: null });
    else if (growing.text !== text) Object.assign(growing, { text, shown: null });
  }

  /** @returns what readers get of it now. */
  grew({ native_id: native, offset, text }: TextDelta): readonly ItemDelta[] {
    const growing = this.#texts.get(native);
    if (growing === undefined) return [];
    if (growing.text.length !== offset) {
      growing.shown = null;
      return [];
    }
    growing.text += text;
    if (growing.shown !== offset || growing.id === null) return [];
    growing.shown += text.length;
    return [{ itemId: growing.id, offset, text, seq: growing.base }];
  }

  /** Versions are written. @returns what readers get after them. */
  written({ changes, conversation }: ChangedConversation): readonly ItemDelta[] {
    this.#seq = conversation.seq;
    const open = new Map<string, Item>();
    for (const change of changes) {
      if (change.type !== "item" || change.item.nativeId === null) continue;
      const { nativeId, status } = change.item;
      if (isClosed(status)) {
        open.delete(nativeId);
        this.#texts.delete(nativeId);
      } else open.set(nativeId, change.item);
    }
    return [...open].flatMap(([nativeId, item]) => this.#again(nativeId, item));
  }

  /** What came after a written version (G2). */
  #again(nativeId: string, item: Item): readonly ItemDelta[] {
    const growing = this.#texts.get(nativeId);
    const text = itemText(item);
    if (growing === undefined || text === null) return [];
    growing.id = item.id;
    if (!growing.text.startsWith(text)) {
      growing.shown = null;
      return [];
    }
    if (growing.shown === null) growing.base = this.#seq;
    growing.shown = growing.text.length;
    const rest = growing.text.slice(text.length);
    return rest === "" ? [] : [{ itemId: item.id, offset: text.length, text: rest, seq: this.#seq }];
  }
}
