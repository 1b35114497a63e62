/** When a session has news, and when it is archived (session-news.ts B1, B2). */
import { expect, it } from "vitest";
import { isArchived, isUnread } from "../../../src/domain/session/session-news.ts";

const at = (second: number): number => Date.UTC(2026, 10, 20, 12, 0, second);
const ended = (second: number) => ({
  state: "completed" as const,
  error: null,
  at: new Date(at(second)).toISOString(),
});
const resting = {
  status: "running",
  conversation: {
    turn: { state: "idle", since: at(1), waitingFor: null },
    turnRequest: null,
  },
  oldestApproval: null,
  unsaved: null,
  stopReason: null,
  asked: null,
  restarts: false,
  initialPrompt: "Go.",
  lastTurn: ended(2),
  changeRequest: null,
  changes: null,
  failure: null,
} as const;
const askedInSleep = {
  ...resting,
  status: "stopped",
  stopReason: "idle",
  asked: { kind: "question", text: "Which colour?" },
} as const;
const approvalIn = { id: "c", connector: "docs", tool: "delete", at: at(1) };
const working = {
  ...resting,
  conversation: { ...resting.conversation, turn: { state: "running", since: at(9), waitingFor: null } },
} as const;

it.each([
  ["the end of a turn", resting, at(1), true],
  ["the same again", resting, at(2), false],
  ["a turn that goes on", working, at(2), false],
  ["a failure", { ...resting, failure: { at: at(5) } }, at(2), true],
  ["an unreadable instant", { ...resting, lastTurn: { ...ended(2), at: "soon" } }, at(1), false],
  ["no person who asks", resting, null, false],
] as const)("is unread: %s", (_, facts, seenAt, unread) => {
  expect(isUnread(facts, seenAt)).toBe(unread);
});

it.each([
  ["at rest", resting, at(3), true],
  ["asleep, with a question", askedInSleep, at(3), true],
  ["asleep, with a question and an approval", { ...askedInSleep, oldestApproval: approvalIn }, at(3), false],
  ["never put away", resting, null, false],
  ["with a turn since", { ...resting, lastTurn: ended(4) }, at(3), false],
  ["while it works", working, at(3), false],
  ["with a failure since", { ...resting, status: "failed", failure: { at: at(4) } }, at(3), false],
] as const)("is archived: %s", (_, facts, archivedAt, archived) => {
  expect(isArchived({ ...facts, archivedAt })).toBe(archived);
});
