/** A summary of what is newer than a runtime's own record of its conversation. */
import { cutText } from "../text.ts";
import type { PastItem } from "./history.ts";
import { RECAP_MAX } from "./recap.ts";

const INTRODUCTION =
  "The end of the conversation is not part of what you have. Below is a summary of it, oldest first, without the output of tools.";
const LEFT_OUT = "[Earlier entries are left out here.]";
/** How much of one entry is shown, in UTF-16 code units. */
const ENTRY_SHOWN = 6_000;

const renderItem = ({ kind, role, status, text, tool, plan }: PastItem): string => {
  const state = status === "completed" ? "" : ` (${status})`;
  const who = role === "agent" ? "You" : "A person";
  if (tool !== null) return `You used ${tool.name}: ${cutText(tool.title ?? "", ENTRY_SHOWN)}${state}`;
  if (kind === "plan")
    return `Your plan: ${plan.map((entry) => `${entry.text} (${entry.status})`).join("; ")}`;
  return text === "" ? "" : `${who}: ${cutText(text, ENTRY_SHOWN)}${state}`;
};

/**
 * @param items oldest first
 * @param untilMs when the record was saved, ms since the epoch
 * @returns null if nothing is newer. At most `RECAP_MAX` bytes, the newest
 */
export const makeSince = (items: readonly PastItem[], untilMs: number): string | null => {
  const lines = items
    .filter(({ created_at: began, completed_at: ended }) => (ended ?? began) > untilMs)
    .map(renderItem)
    .filter((line) => line !== "");
  if (lines.length === 0) return null;
  let room = RECAP_MAX - INTRODUCTION.length - LEFT_OUT.length;
  const newestLines = lines.toReversed().filter((line) => {
    room = line === "" ? room : room - Buffer.byteLength(line) - 2;
    return room >= 0;
  });
  const gap = newestLines.length < lines.length ? [LEFT_OUT] : [];
  return [INTRODUCTION, ...gap, ...newestLines.toReversed()].join("\n\n");
};
