/** How opencode's records become items of the conversation, by records of the real program. */
import * as Schema from "effect/Schema";
import { describe, expect, test } from "vitest";
import type { ItemDraft } from "../../../daemon/adapters/adapter.ts";
import { messageItems, TOP } from "../../../daemon/adapters/opencode/items.ts";
import { requestItem } from "../../../daemon/adapters/opencode/requests.ts";
import {
  PendingRequest,
  longer,
  readMessage,
  readPart,
  type Recorded,
} from "../../../daemon/adapters/opencode/records.ts";
import { NativeItem, NO_USAGE, TEXT_KEPT_MAX } from "../../../src/domain/conversation/conversation.ts";
import { isClosed } from "../../../src/domain/conversation/growing.ts";
import { addUsage } from "../../../src/domain/conversation/usage.ts";
import { LISTING, openRequests, SESSION, snapshot } from "../support/recorded.ts";

const ITEMS = LISTING.filter(({ info }) => info.sessionID === SESSION.id).flatMap((message) =>
  messageItems(message, TOP),
);
const SUBAGENT = LISTING.filter(({ info }) => info.sessionID !== SESSION.id);

const tools = (name: string): readonly ItemDraft[] => ITEMS.filter(({ tool }) => tool?.name === name);
const textOf = ({ content }: ItemDraft): string =>
  content.map((part) => (part.type === "text" ? part.text : `[${part.name}]`)).join("");
/** The items of the turn that has an item with that text. */
const turnWith = (text: string): readonly ItemDraft[] => {
  const found = ITEMS.find((item) => textOf(item).startsWith(text));
  return ITEMS.filter(({ turn_id: turn }) => turn === found?.turn_id);
};

describe("opencode's listing", () => {
  test("becomes valid items, each with an id of its own, and all of them closed", () => {
    for (const item of ITEMS) Schema.decodeUnknownSync(NativeItem)({ ...item, rev: 1 });
    expect(new Set(ITEMS.map((item) => item.native_id)).size).toBe(ITEMS.length);
    expect(ITEMS.filter(({ status }) => !isClosed(status))).toEqual([]);
    expect(ITEMS.every(({ completed_at: at, created_at: since }) => at !== null && at >= since)).toBe(true);
  });

  test("gives a turn as the message, the thought and the answer, with model and usage", () => {
    const [sent, thought, answer, ...rest] = turnWith("This is a text that grows.");
    expect(rest).toEqual([]);
    expect(sent).toMatchObject({ kind: "message", role: "user", status: "completed", model: null });
    expect(sent?.turn_id).toBe(sent?.native_id);
    expect(thought).toMatchObject({ kind: "thought", role: "agent", usage: null, model: "stub/ok" });
    expect(thought && textOf(thought)).toBe("I think about it.");
    expect(answer).toMatchObject({
      kind: "message",
      role: "agent",
      status: "completed",
      turn_id: sent?.native_id,
      usage: { input_tokens: 100, output_tokens: 20, cached_tokens: 40, cost_usd: 0.0001 },
      // The prompt's tokens include cached ones.
      context: { tokens: 120, size: null },
    });
  });

  test("has the session's usage as the sum over its items", () => {
    const { cost, tokens } = SESSION as unknown as {
      cost: number;
      tokens: { input: number; output: number; reasoning: number; cache: { read: number } };
    };
    const sum = ITEMS.reduce((total, { usage }) => addUsage(total, usage ?? NO_USAGE), NO_USAGE);
    expect(sum).toEqual({
      input_tokens: tokens.input + tokens.cache.read,
      output_tokens: tokens.output + tokens.reasoning,
      cached_tokens: tokens.cache.read,
      cost_usd: expect.closeTo(cost, 10),
    });
  });

  test("shows a person's files by name, without what opencode added to the message", () => {
    const sent = ITEMS.find(({ content }) => content.length > 1);
    expect(sent?.content).toEqual([
      { type: "text", text: "Do it." },
      { type: "file", name: "note.txt", media_type: "text/plain", attachment_id: null },
      { type: "file", name: "dot.png", media_type: "image/png", attachment_id: null },
    ]);
  });

  test("shows the summary that replaces a long conversation as notes", () => {
    const notes = ITEMS.filter(({ kind }) => kind === "note");
    expect(notes).toMatchObject([
      { role: null, content: [{ text: expect.stringContaining("a summary") }] },
      { role: "agent", status: "completed", usage: { input_tokens: 100 } },
    ]);
  });
});

describe("a message of the model that reached its limit", () => {
  test("ends with an item that says so", () => {
    const answered = LISTING.filter(({ info }) => info.finish === "stop");
    const [items = []] = answered.map(({ info, parts }) =>
      messageItems({ info: { ...info, finish: "length" }, parts }, TOP),
    );
    expect(items.at(-1)).toMatchObject({ status: "failed", error: { code: "max_tokens" } });
  });
});

describe("a tool call", () => {
  test("of the shell has its command, its output, its exit code and its time", () => {
    const [first] = tools("bash");
    expect(first).toMatchObject({
      kind: "tool",
      status: "completed",
      error: null,
      tool: {
        kind: "execute",
        title: "echo one; echo two >&2",
        input: { command: "echo one; echo two >&2" },
        output: "one\ntwo\n",
        truncated: false,
        exit_code: 0,
        changes: [],
      },
    });
  });

  test("that reads an image names it, and one that fails says why", () => {
    const [file, image, absent] = tools("read");
    expect(file).toMatchObject({ status: "completed", tool: { kind: "read", title: "README.md" } });
    expect(image?.content).toEqual([
      { type: "file", name: "dot.png", media_type: "image/png", attachment_id: null },
    ]);
    expect(absent).toMatchObject({
      status: "failed",
      error: { code: "tool_failed", message: "File not found: /workspace/absent.txt" },
      tool: { output: "" },
    });
  });

  test("that edits shows each changed file with its patch, below the repository's root", () => {
    expect(tools("write")[0]?.tool?.changes).toEqual([{ path: "new.txt", operation: "add", patch: null }]);
    const [change] = tools("edit")[0]?.tool?.changes ?? [];
    expect(change).toMatchObject({ path: "README.md", operation: "update" });
    expect(change?.patch).toMatch(/^--- README\.md.*\n\+\+\+ README\.md.*\n@@ .*\n hello\n-world\n\+all\n/);
    const patched = tools("apply_patch").map((item) =>
      item.tool?.changes.map(({ path, operation }) => [path, operation]),
    );
    expect(patched).toEqual([
      [
        ["p.txt", "add"],
        ["README.md", "update"],
      ],
      [
        ["p.txt", "delete"],
        ["READ.md", "move"],
      ],
    ]);
  });

  test("that writes the list of tasks is a plan", () => {
    const plans = ITEMS.filter(({ kind }) => kind === "plan");
    expect(plans).toMatchObject([{ status: "completed", tool: null }]);
    expect(plans[0]?.plan).toEqual([
      { text: "first", status: "completed" },
      { text: "second", status: "running" },
      { text: "third", status: "pending" },
      { text: "fourth", status: "cancelled" },
    ]);
  });

  test("that starts a subagent is the parent of the subagent's items, without its instructions", () => {
    const [task] = tools("task");
    expect(task).toMatchObject({ status: "completed", tool: { kind: "think", title: "Look around" } });
    const place = { parentId: task?.native_id ?? "", turnId: task?.turn_id ?? "" };
    const items = SUBAGENT.flatMap((message) => messageItems(message, place));
    expect(items.map((item) => [item.kind, item.tool?.name ?? textOf(item)])).toEqual([
      ["tool", "bash"],
      ["message", "sub is done"],
    ]);
    expect(items.every((item) => item.parent_id === task?.native_id && item.turn_id === task?.turn_id)).toBe(
      true,
    );
  });

  test("whose output opencode has shortened says so", () => {
    const message = changed(toolMessage("bash"), { metadata: { truncated: true } });
    expect(messageItems(message, TOP)[0]?.tool?.truncated).toBe(true);
  });

  test("that runs has its output so far, without a first line that may have lost its beginning", () => {
    expect(running("one\n")).toMatchObject({
      status: "running",
      completed_at: null,
      tool: { output: "one\n" },
    });
    expect(running("...\n\ncret-part\nwhole\n")?.tool?.output).toBe("whole\n");
  });
});

describe("a turn that does not end well", () => {
  test("because its model refuses has an item of its own for the failure", () => {
    const failed = ITEMS.filter(({ status, kind }) => status === "failed" && kind === "message");
    expect(failed).toMatchObject([
      {
        role: "agent",
        content: [],
        error: {
          code: "model_refused",
          message: expect.stringContaining("The request was refused by the stub"),
        },
      },
    ]);
  });

  test("because a person ended it keeps its text, which is interrupted", () => {
    expect(turnWith("This is a long text").at(-1)).toMatchObject({
      kind: "message",
      status: "interrupted",
      error: null,
    });
  });

  test("because a person ended it interrupts the running tool", () => {
    const begun = tools("bash").find(({ tool }) => tool?.output.startsWith("begun"));
    // A signal ended it.
    expect(begun?.tool).not.toHaveProperty("exit_code");
    expect(begun).toMatchObject({ status: "interrupted", error: null });
    expect(tools("question").at(-1)).toMatchObject({ status: "interrupted" });
  });

  test("because a person ended it between two attempts is interrupted too", () => {
    expect(turnWith("partial text").at(-1)).toMatchObject({ status: "interrupted", error: null });
  });
});

test("a call of a tool that does not exist has failed, under the name that the model gave", () => {
  const message = LISTING.find(({ parts }) => parts.some(({ tool }) => tool === "bash"));
  if (message === undefined) throw new Error("no message");
  const input = { tool: "make_coffee", error: "Model tried to call unavailable tool 'make_coffee'." };
  const parts = message.parts.map((part) =>
    part.tool === "bash" && part.state !== undefined
      ? { ...part, tool: "invalid", state: { ...part.state, status: "completed" as const, input } }
      : part,
  );
  expect(messageItems({ ...message, parts }, TOP)).toContainEqual(
    expect.objectContaining({
      status: "failed",
      error: { code: "tool_failed", message: input.error },
      tool: expect.objectContaining({ name: "make_coffee" }) as unknown,
    }),
  );
});

describe("a message in mid-turn", () => {
  test("has a running tool, or a text that is not known yet", () => {
    expect(messageItems(snapshot("listingWhileAsked"), TOP)).toMatchObject([
      { kind: "tool", status: "running", completed_at: null, usage: null },
    ]);
    expect(messageItems(snapshot("listingWhileText"), TOP)).toEqual([]);
  });

  test("completes a text only when a part follows it, because an abort may still come", () => {
    const message = LISTING.find(({ parts }) => parts.some(({ type }) => type === "reasoning"));
    const { info, parts } = message ?? { info: SUBAGENT[0]?.info, parts: [] };
    if (info === undefined) throw new Error("no message");
    const { completed: _, ...time } = info.time;
    const { finish: __, ...open } = { ...info, time };
    const upTo = (count: number) =>
      messageItems({ info: open, parts: parts.slice(0, count) }, TOP).map(({ kind, status }) => [
        kind,
        status,
      ]);
    expect(parts.map(({ type }) => type)).toEqual(["step-start", "reasoning", "text", "step-finish"]);
    expect(upTo(2)).toEqual([["thought", "running"]]);
    expect(upTo(3)).toEqual([
      ["thought", "completed"],
      ["message", "running"],
    ]);
    expect(upTo(4).at(-1)).toEqual(["message", "completed"]);
  });
});

const place = { parentId: null, turnId: "msg_1" };

/** What a permission to edit with this metadata shows. */
const ask = (metadata: Record<string, unknown>) =>
  requestItem({ ...asked("permission"), permission: "edit", metadata }, place, {
    askedMs: 5,
    settled: null,
    root: "/workspace",
  }).request?.changes;

describe("a request", () => {
  test("shows its questions with their options", () => {
    expect(requestItem(asked("question"), place, { askedMs: 5, settled: null })).toMatchObject({
      kind: "request",
      status: "pending",
      turn_id: "msg_1",
      created_at: 5,
      completed_at: null,
      request: {
        kind: "question",
        questions: [
          {
            title: "Colour",
            text: "Which colour?",
            options: [
              { label: "Blue", description: "blue" },
              { label: "Red", description: "red" },
            ],
            multiple: false,
          },
        ],
      },
    });
  });

  test("for a permission shows what is asked for, and its answer once it is settled", () => {
    const settled = { status: "completed", answer: "reject", atMs: 7 } as const;
    const item = requestItem(asked("permission"), place, { askedMs: 5, settled });
    expect(item).toMatchObject({
      status: "completed",
      completed_at: 7,
      content: [{ type: "text", text: "reject" }],
      request: { kind: "permission", title: "webfetch", patterns: ["http://127.0.0.1:9/x"] },
    });
    Schema.decodeUnknownSync(NativeItem)({ ...item, rev: 1 });
  });

  test("for a command shows the whole of it, and what an answer `always` allows", () => {
    const request = { ...asked("permission"), permission: "bash", patterns: ["rm a"], always: ["rm *"] };
    const command = "rm a && echo b > README.md";
    expect(requestItem(request, place, { askedMs: 5, settled: null, command }).request).toEqual({
      kind: "permission",
      title: "bash",
      patterns: ["rm a"],
      command,
      always: ["rm *"],
      questions: [],
    });
  });

  test("for a change of files shows it, with paths below the repository's root", () => {
    const header = "Index: /workspace/a.txt\n=====\n";
    const diff = `${header}--- /workspace/a.txt\n+++ /workspace/a.txt\n@@ -1,1 +1,1 @@\n-one\n+two\n`;
    const patch = "--- a.txt\n+++ a.txt\n@@ -1,1 +1,1 @@\n-one\n+two\n";
    expect(ask({ filepath: "/workspace/a.txt", diff })).toEqual([
      { path: "a.txt", operation: "update", patch },
    ]);
    const files = [{ filePath: "/workspace/b.txt", relativePath: "b.txt", type: "add", patch: diff }];
    expect(ask({ filepath: "b.txt", diff, files })).toEqual([{ path: "b.txt", operation: "add", patch }]);
    expect(ask({})).toBeUndefined();
  });
});

test("records of another form are left out, and long texts are cut", () => {
  expect(readMessage({ info: { id: 1 }, parts: [] })).toBeNull();
  const { info, parts } = LISTING[0] ?? toolMessage("bash");
  const read = readMessage({
    info,
    parts: [{ type: 1 }, { ...parts[0], text: "x".repeat(TEXT_KEPT_MAX + 1) }],
  });
  expect(read?.parts.map(({ text }) => text?.length)).toEqual([TEXT_KEPT_MAX]);
});

function toolMessage(name: string): Recorded {
  const message = LISTING.find(({ parts }) => parts.some(({ tool }) => tool === name));
  if (message === undefined) throw new Error(`no call of ${name}`);
  return { ...message, parts: message.parts.filter(({ tool }) => tool === name) };
}

/** The message with another state of its only tool call. */
function changed({ info, parts }: Recorded, state: object): Recorded {
  const all = parts.map((part) => ({ ...part, state: { ...part.state, ...state } }));
  const read = readMessage({ info, parts: JSON.parse(JSON.stringify(all)) as unknown[] });
  if (read === null) throw new Error("not a message");
  return read;
}

function running(output: string): ItemDraft | undefined {
  const state = { status: "running", output: undefined, metadata: { output } };
  return messageItems(changed(toolMessage("bash"), state), TOP)[0];
}

function asked(kind: "question" | "permission"): PendingRequest {
  return Schema.decodeUnknownSync(PendingRequest)(openRequests(kind)[0]);
}

test("a long text is cut, with the number of characters that were dropped, by the listing and piece by piece", () => {
  const record = { id: "prt_1", sessionID: "ses_1", messageID: "msg_1", type: "text", text: "" };
  const whole = readPart({ ...record, text: "x".repeat(TEXT_KEPT_MAX + 3) });
  expect([whole?.text?.length, whole?.dropped]).toEqual([TEXT_KEPT_MAX, 3]);
  let part = readPart({ ...record, text: "x".repeat(TEXT_KEPT_MAX - 1) });
  expect(part?.dropped).toBeUndefined();
  // No half of a character is kept, and no text follows a cut.
  for (const more of ["😀", "y"]) part = part && longer(part, more);
  expect([part?.text?.length, part?.dropped]).toEqual([TEXT_KEPT_MAX - 1, 3]);
});
