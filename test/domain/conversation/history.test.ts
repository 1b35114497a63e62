import { expect, test } from "vitest";
import { OUTPUT_INLINE_MAX, type ToolCall } from "../../../src/domain/conversation/conversation.ts";
import {
  HISTORY_BYTES_MAX,
  HISTORY_ITEMS_MAX,
  makeHistory,
  tooOld,
  type HistoryItem,
} from "../../../src/domain/conversation/history.ts";

const ADA = { kind: "user", userId: "u", name: "Ada", triggerSlug: null, fireId: null } as const;
const NOON = Date.UTC(2026, 10, 20, 12);
const text = (words: string) => [{ type: "text" as const, text: words }];

const item = (fields: Partial<HistoryItem>): HistoryItem => ({
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
  createdAt: NOON,
  model: "held/one",
  agent: null,
  usage: null,
  error: null,
  pruned: false,
  completedAt: NOON + 1,
  ...fields,
});
const asked = (words: string, fields: Partial<HistoryItem> = {}) =>
  item({ role: "user", author: ADA, status: "accepted", content: text(words), model: null, ...fields });
const said = (words: string, fields: Partial<HistoryItem> = {}) => item({ content: text(words), ...fields });
const used = (output: string, fields: Partial<ToolCall> = {}) =>
  item({
    kind: "tool",
    tool: {
      name: "bash",
      kind: "execute",
      title: "ls",
      input: { command: "ls" },
      output,
      truncated: false,
      changes: [{ path: "a", operation: "add", patch: "+a" }],
      ...fields,
    },
  });
const ownSummary = (words: string) => item({ kind: "note", content: text(words) });
const textsOf = (items: readonly HistoryItem[], older: HistoryItem | null = null) =>
  makeHistory(items, older)?.items.map((one) => one.text);

test("has what people and the agent said and what its tools printed, in order", () => {
  const history = makeHistory(
    [
      asked("Look.", { agent: "build", content: [...text("Look."), FILE] }),
      used("a.txt"),
      item({ kind: "plan", plan: [{ text: "Read it", status: "running" }] }),
      said("Done.", { usage: { input_tokens: 9, output_tokens: 2, cached_tokens: 4, cost_usd: 0.5 } }),
    ],
    null,
  );
  expect(history).toMatchObject({
    summary: null,
    items: [
      {
        kind: "message",
        role: "user",
        status: "completed",
        text: "Look.",
        files: [{ name: "plan.pdf", media_type: "application/pdf" }],
        agent: "build",
      },
      {
        kind: "tool",
        role: "agent",
        tool: { name: "bash", title: "ls", input: { command: "ls" }, output: "a.txt" },
        created_at: NOON,
        completed_at: NOON + 1,
      },
      { kind: "plan", plan: [{ text: "Read it", status: "running" }] },
      { kind: "message", role: "agent", text: "Done.", model: "held/one", usage: { input_tokens: 9 } },
    ],
  });
  expect(JSON.stringify(history)).not.toContain("patch");
});

const FILE = {
  type: "file",
  name: "plan.pdf",
  media_type: "application/pdf",
  attachment_id: "secret-place",
} as const;

test("leaves out what the runtime never had, thoughts, requests, notes and what subagents did", () => {
  const unseen = (["queued", "sending", "cancelled", "failed"] as const).map((status) =>
    asked("Later.", { status }),
  );
  const others = (["thought", "request", "note"] as const).map((kind) =>
    item({ kind, role: kind === "note" ? null : "agent", content: text("No.") }),
  );
  const inner = said("inner", { parentId: "task" });
  expect(makeHistory([...unseen, ...others, inner, said("")], null)).toBeNull();
  expect(textsOf([asked("Now."), ...unseen, ...others, inner])).toEqual(["Now."]);
});

test("closes what was open", () => {
  const open = (["pending", "running", "lost", "interrupted"] as const).map((status) =>
    said("I beg", { status }),
  );
  expect(makeHistory(open, null)?.items.map(({ status }) => status)).toEqual(open.map(() => "interrupted"));
});

test("says where an output is not whole, and not where the runtime itself has cut it", () => {
  const whole = "x".repeat(OUTPUT_INLINE_MAX);
  const items = [
    used(whole, { truncated: true }),
    used("cut by opencode", { truncated: true }),
    { ...used(""), pruned: true },
  ];
  expect(makeHistory(items, null)?.items.map(({ tool }) => tool?.output)).toEqual([
    `${whole}\n[The rest of this output is left out.]`,
    "cut by opencode",
    "[This output is no longer kept.]",
  ]);
});

test("begins at the summary by which the runtime replaced the conversation, with the newest items before it", () => {
  const before = Array.from({ length: 100 }, (_, n) => said(`${n} ${"x".repeat(2000)}`));
  const items = [asked("First."), ...before, ownSummary("It went well."), said("And on.")];
  const history = makeHistory(items, asked("Never."));
  expect(history?.summary).toBe("It went well.");
  const kept = history?.items.map((one) => one.text.split(" ")[0]);
  expect(kept?.slice(-3)).toEqual(["98", "99", "And"]);
  expect(kept?.length).toBeGreaterThan(20);
  expect(kept?.length).toBeLessThan(35);
});

test("has the newest items within its limits, and a summary of the others", () => {
  const many = Array.from({ length: HISTORY_ITEMS_MAX + 50 }, (_, n) => said(`number ${n}.`));
  const history = makeHistory([asked("First."), ...many], null);
  expect(history?.items).toHaveLength(HISTORY_ITEMS_MAX);
  expect(history?.items.at(-1)?.text).toBe(`number ${HISTORY_ITEMS_MAX + 49}.`);
  expect(history?.summary).toContain("Ada: First.");
  expect(history?.summary).toContain("You: number 49.");
  expect(history?.summary).not.toContain("number 50.");
  expect(tooOld([asked("First."), ...many])).toBe(51);

  const large = Array.from({ length: 50 }, (_, n) => used(`${n} ${"y".repeat(60 * 1024)}`));
  const bounded = makeHistory(large, asked("First."));
  const bytes = Buffer.byteLength(JSON.stringify(bounded?.items));
  expect(bytes).toBeLessThan(HISTORY_BYTES_MAX + 100);
  expect(bytes).toBeGreaterThan(HISTORY_BYTES_MAX - 70 * 1024);
  expect(bounded?.items.at(-1)?.tool?.output).toContain("49 y");
  expect(bounded?.summary).toMatch(/Ada: First\.\n\n\[Earlier entries are left out here\.\].*You used bash/s);

  const own = makeHistory([asked("First."), ownSummary("It went well."), ...large], null);
  expect(own?.summary).toMatch(/^It went well\..*You used bash/s);
  expect(own?.summary).not.toContain("First.");
});
