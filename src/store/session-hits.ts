/** What a search of sessions shows of the message that it found. Both adapters use it. */
import { contentText, type ContentPart } from "../domain/conversation/conversation.ts";
import { sentenceAround } from "../domain/conversation/search.ts";
import type { ShownSession } from "./ports/sessions/sessions.ts";

export interface FoundMessage {
  readonly itemId: string;
  readonly at: number;
  readonly content: readonly ContentPart[];
}

export const hitIn = (
  { itemId, at, content }: FoundMessage,
  words: readonly string[],
): NonNullable<ShownSession["hit"]> => ({ itemId, at, text: sentenceAround(contentText(content), words) });
