/**
 * Items of a conversation as a reader follows them. The page and the command line load this file, so it imports no schema.
 *
 *  G1 A piece of text that does not begin where the known text ends changes nothing. The next version of the item has the whole text.
 */
import type { ContentPart, ItemStatus } from "./conversation.ts";

const OPEN: ReadonlySet<ItemStatus> = new Set(["queued", "sending", "pending", "running"]);

/** Whether the item may still change. */
export const isOpen = ({ status }: { readonly status: ItemStatus }): boolean => OPEN.has(status);

/** Whether the item is finished. */
export const isClosed = (status: ItemStatus): boolean => !isOpen({ status });

/** @returns the text of an item's parts */
export const contentText = ({ content }: { readonly content: readonly ContentPart[] }): string =>
  content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n");

/** @param offset where the piece begins in the last text, in UTF-16 units @returns the longer content; null: the piece does not fit (G1) */
export const appendText = (
  content: readonly ContentPart[],
  { offset, text }: { readonly offset: number; readonly text: string },
): ContentPart[] | null => {
  const index = content.findLastIndex((part) => part.type === "text");
  const part = content[index];
  const lastText = part?.type === "text" ? part.text : "";
  if (lastText.length !== offset) return null;
  const longer = { type: "text" as const, text: lastText + text };
  return index < 0 ? [...content, longer] : content.with(index, longer);
};
