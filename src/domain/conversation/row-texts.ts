/** Short texts for the row of a session: what its agent asks, and what it said last. */
import type { AgentRequest } from "./conversation.ts";
import { cutText } from "../text.ts";

/** A request of the agent, in short. */
export type TurnRequest = Pick<AgentRequest, "kind"> & { readonly text: string };

/** How long a row's text is, in UTF-16 code units. */
const ROW_TEXT_MAX = 200;

/** In one line, cut where it is longer. */
export const rowText = (text: string): string => {
  const line = text.replaceAll(/\s+/gu, " ").trim();
  return line.length <= ROW_TEXT_MAX ? line : `${cutText(line, ROW_TEXT_MAX - 1).trimEnd()}…`;
};

/** The first sentence of the plan, the first question, the command, or what it asks to do. */
export const shortRequest = ({ kind, title, command, questions, plan }: AgentRequest): TurnRequest => {
  const [first] = questions;
  const text = plan === undefined ? null : firstSentence(plan.text);
  return { kind, text: text ?? rowText(command ?? (first?.text || first?.title || title)) };
};

/** How much of a message is searched for its first sentence. */
const SEARCHED_MAX = 4000;
const SENTENCES = new Intl.Segmenter("en", { granularity: "sentence" });

/** Markdown as plain text, for one line: code blocks and signs go, the words stay. */
const plainText = (markdown: string): string =>
  markdown
    .replaceAll(/^ {0,3}(`{3,}|~{3,})[^\n]*\n[\s\S]*?(?:^ {0,3}\1[^\n]*$|$(?![\s\S]))/gmu, "")
    .replaceAll(/^[ \t]*(?:[-*+>]|\d{1,9}[.)])[ \t]+/gmu, "")
    .replaceAll(/!?\[([^\]\n]*)\]\([^)\n]*\)/gu, "$1")
    .replaceAll(/\*{1,3}(?=\S)([^*\n]+?)\*{1,3}/gu, "$1")
    .replaceAll(/`([^`\n]+)`/gu, "$1");

const isHeading = (line: string): boolean => /^\s{0,3}#{1,6}\s/u.test(line);

/** The first sentence of a message in Markdown, as one line of plain text. Null if it has no words. */
export const firstSentence = (markdown: string): string | null => {
  const lines = plainText(cutText(markdown, SEARCHED_MAX)).split("\n");
  const prose = lines.filter((line) => !isHeading(line)).join("\n");
  const text = prose.trim() === "" ? lines.join("\n").replaceAll(/^\s*#+\s+/gmu, "") : prose;
  const [paragraph = ""] = text.trim().split(/\n\s*\n/u);
  const [first] = SENTENCES.segment(paragraph.replaceAll(/\s+/gu, " "));
  const sentence = rowText(first?.segment ?? "");
  return sentence === "" ? null : sentence;
};
