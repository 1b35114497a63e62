/** A tool call in a line of a terminal, in the words of the page. */
import { duration } from "../../../../domain/duration.ts";
import { failureWord, KIND_WORDS, toolTitle } from "../../../../domain/conversation/tool-words.ts";
import { cutToWidth, type Screen, safeLine } from "../../../terminal.ts";
import type { Item } from "../agent-requests.ts";
import { paint } from "./flow.ts";

/** What stands behind the words: the mark with the exit code, and the time. */
const BEHIND = 28;
const WORDS_MIN = 20;
/** A reason is shown up to here. */
const REASON_MAX = 300;

/** The call's work, in a line of the screen. A command or a path has its verb before it. */
export const toolWords = (item: Item, screen: Screen): string => {
  if (item.tool === null) return "";
  const { text, isProse } = toolTitle(item.tool);
  const words = isProse ? text : `${KIND_WORDS[item.tool.kind]} ${text}`;
  return cutToWidth(safeLine(words), Math.max(WORDS_MIN, screen.columns() - BEHIND));
};

/** How the call ended, and how long it took, to stand behind its words. */
export const toolEnd = (item: Item, screen: Screen): string => {
  const failure = failureWord(item);
  const mark = failure === null ? paint(screen, ["green"], "✓") : paint(screen, ["red"], `✗ ${failure}`);
  if (item.completed_at === null) return `  ${mark}`;
  const took = duration(Date.parse(item.completed_at) - Date.parse(item.created_at));
  return `  ${mark}  ${paint(screen, ["dim"], took)}`;
};

/** Why the call failed, in one line. "": it did not, or its end says all. */
export const toolReason = ({ error }: Item): string =>
  error === null ? "" : cutToWidth(safeLine(error.message.trim().replaceAll(/\s+/g, " ")), REASON_MAX);
