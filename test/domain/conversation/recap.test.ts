import { expect, test } from "vitest";
import { RECAP_MAX, makeRecap, type Recalled } from "../../../src/domain/conversation/recap.ts";

const ADA = { kind: "user", userId: "u", name: "Ada", triggerSlug: null, fireId: null } as const;
const at = (minute: number) => Date.UTC(2026, 10, 20, 12, minute);

const item = (fields: Partial<Recalled>): Recalled => ({
  kind: "message",
  status: "completed",
  role: "agent",
  author: null,
  parentId: null,
  content: [],
  tool: null,
  plan: [],
  request: null,
  answer: null,
  createdAt: at(0),
  ...fields,
});
const text = (words: string) => [{ type: "text" as const, text: words }];
const asked = (words: string, fields: Partial<Recalled> = {}) =>
  item({ role: "user", author: ADA, status: "accepted", content: text(words), ...fields });
const tool = { name: "bash", kind: "execute", input: { secret: "input" }, output: "its output" } as const;

/** The entries below the introduction. */
const entries = (items: readonly Recalled[], hasGap = false) =>
  makeRecap(items, hasGap)?.split("\n\n").slice(1);

test("tells what people and the agent said, what it did, asked and planned", () => {
  const items = [
    asked("Fix the test."),
    item({ kind: "thought", content: text("Hm.") }),
    item({ kind: "plan", plan: [{ text: "Read it", status: "completed" }] }),
    item({ kind: "tool", tool: { ...tool, title: "npm test", truncated: false, changes: [] } }),
    item({
      kind: "request",
      request: { kind: "permission", title: "git push", patterns: [], questions: [] },
      answer: { answer: { choice: "reject", message: "Not yet." } },
    }),
    item({
      kind: "request",
      status: "interrupted",
      request: {
        kind: "question",
        title: "Colour",
        patterns: [],
        questions: [{ title: "Colour", text: "Which one?", options: [], multiple: false }],
      },
    }),
    item({ content: text("Done.\nIt passes."), createdAt: at(5) }),
    asked("And the docs?", { content: [...text("And the docs?"), { ...file }] }),
    item({ content: text("I beg"), status: "interrupted" }),
  ];
  expect(entries(items)).toEqual([
    "[2026-11-20 12:00 UTC] Ada: Fix the test.",
    "[2026-11-20 12:00 UTC] Your plan: Read it (completed)",
    "[2026-11-20 12:00 UTC] You used bash: npm test",
    "[2026-11-20 12:00 UTC] You asked for a permission: git push - The answer: reject (Not yet.).",
    "[2026-11-20 12:00 UTC] You asked Which one? - No person answered. (interrupted)",
    "[2026-11-20 12:05 UTC] You: Done.\nIt passes.",
    "[2026-11-20 12:00 UTC] Ada: And the docs?\n[file: plan.pdf]",
    "[2026-11-20 12:00 UTC] You: I beg (interrupted)",
  ]);
});

const file = { type: "file", name: "plan.pdf", media_type: "application/pdf", attachment_id: null } as const;

test("is nothing without an item that a runtime had", () => {
  expect(makeRecap([], false)).toBeNull();
  const unseen = (["queued", "sending", "cancelled"] as const).map((status) => asked("Later.", { status }));
  expect(makeRecap(unseen, false)).toBeNull();
  expect(entries([asked("Now."), ...unseen])).toHaveLength(1);
});

test("leaves out what subagents did, and notes", () => {
  const inner = item({ parentId: "task", content: text("inner") });
  expect(makeRecap([inner, item({ kind: "note", content: text("A note.") })], false)).toBeNull();
});

test("keeps the first message and the newest entries in bounded space, and says that there are others", () => {
  const many = Array.from({ length: 900 }, (_, n) => asked(`${n}: ${"é".repeat(100)}`));
  const recap = makeRecap(many, false) ?? "";
  expect(Buffer.byteLength(recap)).toBeLessThanOrEqual(RECAP_MAX);
  expect(Buffer.byteLength(recap)).toBeGreaterThan(RECAP_MAX - 400);
  const told = recap.split("\n\n").slice(1);
  expect([told[0], told[1], told.at(-1)]).toEqual([
    expect.stringContaining("Ada: 0: "),
    "[Earlier entries are left out here.]",
    expect.stringContaining("Ada: 899: "),
  ]);
  expect(entries([asked("First."), asked("Last.")], true)).toHaveLength(3);
  const long = makeRecap([asked("x".repeat(130_000)), ...many], false) ?? "";
  expect(Buffer.byteLength(long)).toBeLessThanOrEqual(RECAP_MAX);
  expect(long).toContain("x [cut]");
  const plan = Array.from({ length: 2000 }, () => ({ text: "é".repeat(900), status: "pending" as const }));
  const planned = makeRecap([item({ kind: "plan", plan }), ...many], false) ?? "";
  expect(Buffer.byteLength(planned)).toBeLessThanOrEqual(RECAP_MAX);
});
