import { expect, test } from "vitest";
import type { PastItem } from "../../../src/domain/conversation/history.ts";
import { RECAP_MAX } from "../../../src/domain/conversation/recap.ts";
import { makeSince } from "../../../src/domain/conversation/since.ts";

const past = (text: string, at: number, more: Partial<PastItem> = {}): PastItem => ({
  kind: "message",
  role: "agent",
  status: "completed",
  text,
  files: [],
  tool: null,
  plan: [],
  model: null,
  agent: null,
  usage: null,
  error: null,
  created_at: at,
  completed_at: at,
  ...more,
});

test("tells what ended after a record was saved, and nothing else", () => {
  const items = [
    past("former words", 1),
    past("go on", 3, { role: "user" }),
    past("half a", 3, { status: "interrupted" }),
    past("", 4, {
      kind: "tool",
      tool: { name: "bash", title: "make", input: { key: "hidden" }, output: "hidden" },
    }),
  ];
  const since = makeSince(items, 2);
  expect(since).toMatch(/A person: go on\n\nYou: half a \(interrupted\)\n\nYou used bash: make$/);
  expect(since).not.toMatch(/former words|hidden/);
  expect(makeSince(items, 4)).toBeNull();
  // It began before, and ended after.
  expect(makeSince([past("long", 1, { completed_at: 5 })], 4)).toContain("You: long");
});

test("keeps the newest if it is too long", () => {
  const items = Array.from({ length: 20 }, (_, at) => past(`${at} ${"é".repeat(5000)}`, 3));
  const since = makeSince(items, 2) ?? "";
  expect(Buffer.byteLength(since)).toBeLessThanOrEqual(RECAP_MAX);
  expect(since).toContain("You: 19 ");
  expect(since).not.toContain("You: 0 ");
  expect(since).toContain("left out");
});
