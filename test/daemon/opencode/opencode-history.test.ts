/** How a history becomes opencode's records. restore.deep.test.ts gives them to the real opencode. */
import { describe, expect, test } from "vitest";
import {
  eventBatches,
  messageEvents,
  restoredMessages,
  type Place,
  type ListedMessage,
} from "../../../daemon/adapters/opencode/history.ts";
import { isRestored, timeIn } from "../../../daemon/adapters/opencode/ids.ts";
import { messageItems, TOP } from "../../../daemon/adapters/opencode/items.ts";
import { nativeMessageId } from "../../../daemon/adapters/opencode/messages.ts";
import { readMessage } from "../../../daemon/adapters/opencode/records.ts";
import type { History, PastItem } from "../../../src/domain/conversation/history.ts";
import { makeHistory } from "../../../src/domain/conversation/history.ts";
import { PAST_MS, pastItem } from "../support/past-items.ts";
import { LISTING, SESSION } from "../support/recorded.ts";

const NOW = PAST_MS;
const PLACE: Place = {
  session: "ses_1",
  directory: "/workspace",
  agent: "build",
  model: "held/one",
  nowMs: NOW,
};

const asked = (text: string, fields: Partial<PastItem> = {}) =>
  pastItem({ role: "user", text, model: null, ...fields });
const said = (text: string, fields: Partial<PastItem> = {}) => pastItem({ text, ...fields });
const used = (output: string, fields: Partial<PastItem> = {}) =>
  pastItem({
    kind: "tool",
    tool: { name: "bash", title: "ls", input: { command: "ls" }, output },
    ...fields,
  });
const USAGE = { input_tokens: 9, output_tokens: 2, cached_tokens: 4, cost_usd: 0.5 };

const made = (items: readonly PastItem[], summary: string | null = null) =>
  restoredMessages({ summary, items } satisfies History, PLACE);
/** The role and the texts or tools of each message. */
const outline = (messages: readonly ListedMessage[]) =>
  messages.map(({ info, parts }) => [info["role"], ...parts.map((part) => part["text"] ?? part["tool"])]);
const idsOf = (messages: readonly ListedMessage[]) =>
  messages.flatMap(({ info, parts }) => [info, ...parts]).map(({ id }) => String(id));

describe("the messages", () => {
  test("are one for each person's message and one for each call of the model", () => {
    const items = [
      asked("First."),
      said("I look."),
      used("a.txt"),
      used("b.txt", { usage: USAGE }),
      said("Two files."),
      asked("And now?"),
      used("c.txt"),
      said("One.", { model: "held/two" }),
    ];
    const messages = made(items);
    expect(outline(messages)).toEqual([
      ["user", "First."],
      ["assistant", "I look.", "bash", "bash"],
      ["assistant", "Two files."],
      ["user", "And now?"],
      ["assistant", "bash"],
      ["assistant", "One."],
    ]);
    const [first, call, , second, , last] = messages.map(({ info }) => info);
    expect(call).toMatchObject({
      parentID: first?.["id"],
      finish: "tool-calls",
      cost: 0.5,
      tokens: { input: 5, output: 2, cache: { read: 4, write: 0 } },
      path: { cwd: "/workspace" },
    });
    expect(last).toMatchObject({
      parentID: second?.["id"],
      finish: "stop",
      modelID: "two",
      providerID: "held",
    });
  });

  test("have the tools' input and output, also of tools that failed and of plans", () => {
    const [, call] = made([
      asked("Do it."),
      used("a.txt"),
      used("", { status: "failed", error: { code: "tool_failed", message: "no such file" } }),
      pastItem({ kind: "plan", plan: [{ text: "Read", status: "running" }] }),
      used("no object", { tool: { name: "odd", title: null, input: null, output: "" } }),
    ]);
    expect(call?.parts.map(({ state }) => state)).toMatchObject([
      { status: "completed", input: { command: "ls" }, output: "a.txt", title: "ls" },
      { status: "error", input: { command: "ls" }, error: "no such file" },
      {
        status: "completed",
        input: { todos: [{ content: "Read", status: "in_progress" }] },
        output: expect.stringContaining('"Read"') as string,
      },
      { status: "completed", input: {}, title: "" },
    ]);
    const calls = call?.parts.map((part) => part["callID"]);
    expect(new Set(calls).size).toBe(4);
  });

  test("are closed: what was interrupted is aborted, with the output so far", () => {
    const messages = made([
      asked("Go."),
      said("I beg", { status: "interrupted", completed_at: null }),
      asked("Again."),
      used("half", { status: "interrupted" }),
      used("", { status: "interrupted" }),
      asked("Once more."),
      said("No", { status: "failed", error: { code: "model_failed", message: "no credit" } }),
      said("", { status: "failed", error: { code: "model_failed", message: "no parts" } }),
    ]);
    const answers = messages.filter(({ info }) => info["role"] === "assistant");
    expect(answers.map(({ info }) => info["error"])).toMatchObject([
      { name: "MessageAbortedError" },
      { name: "MessageAbortedError" },
      { name: "UnknownError", data: { message: "no parts" } },
    ]);
    for (const { info } of answers) {
      expect(info["time"]).toMatchObject({ completed: expect.any(Number) as number });
      expect(info).not.toHaveProperty("finish");
    }
    expect(answers[1]?.parts.map(({ state }) => state)).toMatchObject([
      { status: "error", metadata: { interrupted: true, output: "half" } },
      { status: "error", metadata: { interrupted: true } },
    ]);
  });

  test("name files, begin with the summary, and never with the agent", () => {
    const files = [{ name: "plan.pdf", media_type: "application/pdf" }];
    const [summary, message] = made([asked("See.", { files })], "It went well.");
    expect(summary).toMatchObject({
      info: { role: "user" },
      parts: [{ text: "It went well.", synthetic: true }],
    });
    expect(message?.parts).toMatchObject([
      { text: "See." },
      { text: expect.stringContaining("plan.pdf (application/pdf)") as string, synthetic: true },
    ]);
    expect(outline(made([said("Hello.")]))).toEqual([
      ["user", expect.stringContaining("not known")],
      ["assistant", "Hello."],
    ]);
  });

  test("have rising ids that are older than those of later messages, and times that do not fall", () => {
    const items = Array.from({ length: 3000 }, (_, n) =>
      n % 2 === 0
        ? asked(`${n}`, { created_at: NOW + 5000 - n })
        : said(`${n}`, { created_at: -5, completed_at: NOW - n }),
    );
    const messages = made(items);
    const ids = idsOf(messages);
    const times = ids.map(timeIn);
    expect(times).toEqual(times.toSorted());
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.every(isRestored)).toBe(true);
    const next = nativeMessageId({ id: "m1", sentMs: NOW });
    expect(isRestored(next)).toBe(false);
    expect((times.at(-1) ?? "") < timeIn(next)).toBe(true);
    const created = messages.map(({ info }) => (info["time"] as { created: number }).created);
    expect(created).toEqual(created.toSorted((a, b) => a - b));
    expect(created.every((ms) => ms >= 0 && ms <= NOW)).toBe(true);
  });

  test("are never items a second time", () => {
    for (const { info, parts } of made([asked("First."), used("a.txt"), said("Done.")]))
      expect(readMessage({ info, parts })).toBeNull();
  });
});

describe("the events", () => {
  const messages = made([asked("First."), used("a.txt"), said("Done.")]);

  test("make each message and then its parts, numbered from 1 without gaps", () => {
    const events = messageEvents(messages, PLACE);
    expect(events.map(({ seq, type }) => [seq, type])).toEqual(
      ["message", "message.part", "message", "message.part", "message", "message.part"].map((name, at) => [
        at + 1,
        `${name}.updated.1`,
      ]),
    );
    expect(new Set(events.map(({ id }) => id)).size).toBe(events.length);
    expect(events.every(({ id, aggregateID }) => id.startsWith("evt_") && aggregateID === "ses_1")).toBe(
      true,
    );
    expect(events[1]?.data).toMatchObject({ sessionID: "ses_1", part: { type: "text", text: "First." } });
  });

  test("go out in order, in batches of bounded size", () => {
    const large = Array.from({ length: 200 }, (_, n) => used("x".repeat(n % 3 === 0 ? 60_000 : 10)));
    const huge = [asked("y".repeat(700_000)), ...large];
    const events = messageEvents(made(huge), PLACE);
    const batches = eventBatches(events);
    expect(batches.flat()).toEqual(events);
    for (const batch of batches) {
      expect(batch.length).toBeLessThanOrEqual(50);
      if (batch.length > 1) expect(Buffer.byteLength(JSON.stringify(batch))).toBeLessThan(525_000);
    }
    expect(eventBatches([])).toEqual([]);
  });
});

const toolsIn = (parts: readonly { readonly type?: unknown }[]) =>
  parts.filter(({ type }) => type === "tool") as {
    tool: string;
    state: { input: unknown; output?: string };
  }[];
const wordsIn = (
  parts: readonly { readonly type?: unknown; readonly text?: unknown; readonly synthetic?: unknown }[],
) =>
  parts.flatMap(({ type, text, synthetic }) =>
    type === "text" && synthetic !== true && text !== "" ? [text] : [],
  );

test("a recorded conversation comes back with the same words, tools and results for the model", () => {
  const own = LISTING.filter(({ info }) => info.sessionID === SESSION.id);
  const items = own
    .flatMap((message) => messageItems(message, TOP))
    .map((draft) =>
      Object.assign({}, draft, {
        // The conversation's own summary would replace what is before it.
        role: draft.kind === "note" ? null : draft.role,
        author: null,
        parentId: draft.parent_id,
        answer: null,
        agent: null,
        pruned: false,
        createdAt: draft.created_at,
        completedAt: draft.completed_at,
      }),
    );
  const history = makeHistory(items, null);
  if (history === null) throw new Error("no history");
  const back = restoredMessages(history, PLACE);
  const before = toolsIn(own.flatMap(({ parts }) => parts)).map(({ tool, state }) => [tool, state.input]);
  const after = toolsIn(back.flatMap(({ parts }) => parts)).map(({ tool, state }) => [tool, state.input]);
  expect(after.filter(([tool]) => tool !== "todowrite")).toEqual(
    before.filter(([tool]) => tool !== "todowrite"),
  );
  expect(after.map(([tool]) => tool)).toEqual(before.map(([tool]) => tool));
  const words = own.filter(({ info }) => info.summary !== true).flatMap(({ parts }) => wordsIn(parts));
  expect(back.flatMap(({ parts }) => wordsIn(parts))).toEqual(words);
});
