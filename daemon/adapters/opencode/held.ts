/**
 * The held messages of an agent session's conversation, and what they tell about each other.
 *
 * If a conversation is longer than the model can read, opencode asks for a summary, which replaces the conversation so far. Then it
 * writes the person's message a second time, and goes on.
 */
import { timeIn } from "./ids.ts";
import type { PendingRequest, MessageInfo, Part, Recorded, SummaryState } from "./records.ts";

export interface HeldPart {
  part: Part;
  /** V2. */
  isExact: boolean;
}

export interface HeldMessage {
  info: MessageInfo;
  /** V3: its end is certain. */
  isSettled: boolean;
  readonly parts: Map<string, HeldPart>;
}

/** A tool call that started a subagent, or went on with one. */
export interface Task {
  readonly partId: string;
  readonly turnId: string | null;
}

export interface OpenRequest {
  readonly asked: PendingRequest;
  readonly askedMs: number;
  /** What the call will run that asks. Null until its arguments are known, and if it runs no command. */
  command: string | null;
}

/** The message as a listing has it. */
export const heldRecord = ({ info, parts }: HeldMessage): Recorded => ({
  info,
  parts: [...parts.values()].map(({ part }) => part).toSorted((a, b) => (a.id < b.id ? -1 : 1)),
});

/** Oldest first. A listing may bring older messages after newer ones. */
export const inOrder = (messages: Iterable<HeldMessage>): readonly HeldMessage[] =>
  [...messages].toSorted((one, other) => (timeIn(one.info.id) < timeIn(other.info.id) ? -1 : 1));

/** A message that asks for a summary. */
const findCompaction = (parts: readonly Part[]): Part | undefined =>
  parts.find(({ type }) => type === "compaction");

/** What became of the summary that a message asks for. Null if it asks for none. @param session the infos of its session */
export const summaryState = (
  { info, parts }: Recorded,
  session: readonly MessageInfo[],
): SummaryState | null => {
  if (findCompaction(parts) === undefined) return null;
  const summary = session.find(({ parentID, summary: is }) => parentID === info.id && is === true);
  if (summary === undefined) return "open";
  if (summary.error !== undefined) return "failed";
  if (summary.time.completed === undefined) return "open";
  return summary.finish === undefined || summary.finish === "error" ? "failed" : "made";
};

/**
 * Whether opencode wrote a person's message again, so that it follows the summary.
 *
 * @param session the messages of its session, oldest first
 */
export const isRepetition = (id: string, session: readonly Recorded[]): boolean => {
  const summary = session[session.findIndex(({ info }) => info.id === id) - 1];
  if (summary?.info.summary !== true) return false;
  const request = session.find(({ info }) => info.id === summary.info.parentID);
  return request !== undefined && findCompaction(request.parts)?.overflow === true;
};
