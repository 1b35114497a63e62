/** Words that a person looks for in messages, and the sentence around them. Both stores use it. */
import { cutText } from "../text.ts";
import type { RequestAnswer } from "./steering.ts";
import { contentText, type ContentPart, type ItemStatus } from "./conversation.ts";
import { isClosed } from "./growing.ts";

/** How many words of a search count. */
const WORDS_MAX = 10;
/** How much of a message is searched, in characters. Migration 0019 has it, too. */
export const MESSAGE_SEARCHED = 20_000;
const SENTENCE_MAX = 200;
/** How much before the word is shown at least. */
const LEAD = 60;

/** Signs divide words, as in `src/main.ts`. */
const splitWords = (text: string): readonly string[] =>
  text.toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];

/** @returns in lower case, at most WORDS_MAX */
export const searchWords = (search: string): readonly string[] => splitWords(search).slice(0, WORDS_MAX);

interface Searched {
  readonly kind: string;
  readonly status: ItemStatus;
  readonly parentId: string | null;
  readonly content: readonly ContentPart[];
  readonly answer: { readonly answer: RequestAnswer } | null;
}

/** What a person answered to a request of the agent, in her words or by choosing. Each is a line. */
const answerLines = (answer: RequestAnswer): readonly string[] => {
  if ("answers" in answer) return answer.answers.flat();
  return "message" in answer && answer.message !== null ? [answer.message] : [];
};

/**
 * What people find an item by: the text of a message that is whole, of a person or the agent itself, and what a person answered to a
 * request. Null if it is not searched.
 */
export const searchedText = ({ kind, status, parentId, content, answer }: Searched): string | null => {
  if (kind === "request") return answer === null ? null : answerLines(answer.answer).join("\n");
  const isWhole = kind === "message" && parentId === null && isClosed(status) && status !== "cancelled";
  return isWhole ? contentText(content) : null;
};

/** Whether what is searched of an item has a word that begins with each of `words`. */
export const hasWords = (item: Searched, words: readonly string[]): boolean => {
  const own = new Set(splitWords((searchedText(item) ?? "").slice(0, MESSAGE_SEARCHED)));
  return words.length > 0 && words.every((word) => [...own].some((one) => one.startsWith(word)));
};

const SENTENCES = new Intl.Segmenter("en", { granularity: "sentence" });

/** The sentence in which the first of the words is, as one line. A long one is cut around it. */
export const sentenceAround = (text: string, words: readonly string[]): string => {
  const line = text.slice(0, MESSAGE_SEARCHED).replaceAll(/\s+/gu, " ").trim();
  const beginnings = words.map((word) => `(?<![\\p{L}\\p{M}\\p{N}])${word}`).join("|");
  const at = Math.max(0, line.search(new RegExp(beginnings, "iu")));
  const segment = SENTENCES.segment(line).containing(at);
  const sentence = (segment?.segment ?? line).trim();
  if (sentence.length <= SENTENCE_MAX) return sentence;
  const from = Math.max(0, at - (segment?.index ?? 0) - LEAD);
  const begins = from === 0 ? "" : "…";
  const rest = sentence.slice(from).replace(/^[\uDC00-\uDFFF]/u, "");
  return begins + (rest.length <= SENTENCE_MAX ? rest : `${cutText(rest, SENTENCE_MAX - 1).trimEnd()}…`);
};
