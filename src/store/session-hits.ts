/** What a search of sessions shows of the message, or the answer, that it found. Both adapters use it. */
import { sentenceAround } from "../domain/conversation/search.ts";
import type { SearchHit } from "./ports/sessions/conversations.ts";

export interface FoundItem {
  readonly itemId: string;
  readonly at: number;
  /** The text in which the words were looked for. */
  readonly text: string;
}

export const hitIn = ({ itemId, at, text }: FoundItem, words: readonly string[]): SearchHit => ({
  itemId,
  at,
  text: sentenceAround(text, words),
});
