/** The daemon's report of the conversation: versions, growing text, slow readers, secrets, limits. */
import { describe, expect, test } from "vitest";
import {
  FEED_BYTES_MAX,
  OUTPUTS_BYTES_MAX,
  REPORT_EVERY_LENGTH,
  REPORT_EVERY_MS,
} from "../../../daemon/conversation/feed.ts";
import { Redactor } from "../../../src/domain/secret/redactor.ts";
import { OUTPUT_INLINE_MAX } from "../../../src/domain/conversation/conversation.ts";
import { growing, item, startFeed, tool } from "../support/feed.ts";

describe("versions", () => {
  test("have rising numbers, and one without a change has none", () => {
    const { feed, versions } = startFeed();
    feed.item(item("a"));
    feed.item(item("b"));
    feed.item(item("a"));
    expect(feed.rev).toBe(2);
    feed.item(item("a", { model: "c/d" }));
    expect(versions().map(({ native_id: id, rev }) => [id, rev])).toEqual([
      ["b", 2],
      ["a", 3],
    ]);
  });

  test("keep the item's place: the one that the agent gave it, or else the last", () => {
    const { feed, versions } = startFeed();
    feed.item(item("a"));
    feed.item({ ...growing("text", ""), order: 70 });
    feed.item(item("b"));
    feed.item(item("c", { order: 60 }));
    feed.item(item("said", { role: "user", order: 65 }));
    feed.item(item("text", { order: 80 }));
    feed.item(item("d"));
    expect(versions().map(({ native_id: id, order }) => [id, order])).toEqual([
      ["a", 1],
      ["b", 71],
      ["c", 60],
      ["said", 72],
      ["text", 70],
      ["d", 73],
    ]);
  });

  test("after a number are all that a reader gets, then the turn with that number", () => {
    const { feed, read } = startFeed();
    for (const id of ["a", "b", "c"]) feed.item(item(id));
    feed.turn({ state: "running", waiting_for: null });
    const { follower, takeAll } = read(1);
    takeAll();
    expect([...follower.items.keys()]).toEqual(["b", "c"]);
    expect([follower.rev, follower.turn]).toEqual([4, { state: "running", waiting_for: null }]);
    feed.turn({ state: "running", waiting_for: null });
    feed.turn({ state: "requires_action", waiting_for: "per_1" });
    expect(takeAll().turn).toEqual({ state: "requires_action", waiting_for: "per_1" });
    expect(follower.seen.turn).toBe(2);
  });

  test("start anew for a reader whose number is from another daemon's life", () => {
    const { feed, read } = startFeed();
    feed.item(item("a"));
    const reader = feed.attach(500, () => undefined);
    expect(reader.take(1000)).toContain('"native_id":"a"');
    expect(read(1).takeAll().items.size).toBe(0);
  });

  test("of a closed item keep its status, and take the rest", () => {
    const { feed, versions } = startFeed();
    feed.item(item("a", { status: "interrupted" }));
    feed.item(item("a", { status: "running", model: "c/d" }));
    expect(versions()).toMatchObject([{ status: "interrupted", completed_at: 2, model: "c/d" }]);
  });

  test("close when the runtime ends", () => {
    const { feed, pass, versions } = startFeed(["the-secret"]);
    feed.item(item("done"));
    feed.item(item("r", { kind: "request", status: "pending", content: [], completed_at: null }));
    feed.item(growing("text", "so far the-sec"));
    pass(10);
    feed.runtimeEnded();
    expect(versions().map(({ native_id: id, status, completed_at: at }) => [id, status, at])).toEqual([
      ["done", "completed", 2],
      ["r", "interrupted", 10],
      ["text", "interrupted", 10],
    ]);
    expect(versions()[2]?.content).toEqual([{ type: "text", text: "so far [redacted]" }]);
  });
});

test("a note says why the daemon has ended a turn, each time", () => {
  const error = { code: "too_many_model_calls", message: "The turn was ended with the-secret." };
  const { feed, pass, versions } = startFeed(["the-secret"]);
  feed.item(item("a", { turn_id: "t1" }));
  feed.turnEnded(error);
  pass(10);
  feed.turnEnded(error);
  expect(versions()).toHaveLength(3);
  expect(versions()[1]).toMatchObject({
    kind: "note",
    status: "failed",
    turn_id: "t1",
    error: { ...error, message: "The turn was ended with [redacted]." },
  });
});

test("a text that was cut says so at its end, once it has ended, and ends with no part of a secret", () => {
  const { feed, versions } = startFeed(["the-secret"]);
  const text = "a long answer with the-sec";
  feed.item({ ...growing("text", text), dropped: 5 });
  expect(JSON.stringify(versions())).not.toContain("dropped");
  feed.item({ ...item("text", { content: [{ type: "text", text }] }), dropped: 12 });
  expect(versions()[0]?.content).toEqual([
    {
      type: "text",
      text: "a long answer with [redacted]\n\n[The text was too long. 12 more characters were dropped.]",
    },
  ]);
  expect(JSON.stringify(versions())).not.toContain('"dropped"');
});

describe("growing text", () => {
  test("comes as deltas, and as an item every two seconds", () => {
    const { feed, pass, read } = startFeed();
    feed.item(growing("a", "one"));
    const { follower, takeAll } = read();
    takeAll();
    feed.grown({ native_id: "a", offset: 3, text: " two" });
    feed.grown({ native_id: "a", offset: 7, text: " three" });
    expect(takeAll().textOf("a")).toBe("one two three");
    expect(follower.seen).toEqual({ item: 1, delta: 2, turn: 1, unfit: 0 });
    pass(REPORT_EVERY_MS);
    takeAll();
    expect(follower.seen).toMatchObject({ item: 2, delta: 2 });
    expect([follower.rev, follower.textOf("a")]).toEqual([2, "one two three"]);
    pass(REPORT_EVERY_MS);
    expect(feed.rev).toBe(2);
  });

  test("comes as an item whenever it has grown by 16 KiB, and when it closes", () => {
    const { feed, read } = startFeed();
    feed.item(growing("a", "x"));
    feed.grown({ native_id: "a", offset: 1, text: "x".repeat(REPORT_EVERY_LENGTH - 1) });
    expect(feed.rev).toBe(1);
    feed.grown({ native_id: "a", offset: REPORT_EVERY_LENGTH, text: "x" });
    expect(feed.rev).toBe(2);
    feed.item(item("a", { content: [{ type: "text", text: "x".repeat(9) }] }));
    expect(read().takeAll().textOf("a")).toBe("x".repeat(9));
  });

  test("that does not continue the known text is passed over", () => {
    const { feed, pass, read } = startFeed();
    feed.item(growing("a", "one"));
    feed.grown({ native_id: "a", offset: 5, text: "lost before" });
    feed.grown({ native_id: "unknown", offset: 0, text: "x" });
    pass(REPORT_EVERY_MS);
    expect(feed.rev).toBe(1);
    expect(read().takeAll().textOf("a")).toBe("one");
  });

  test("of a tool's output comes as an item every two seconds", () => {
    const { feed, pass } = startFeed();
    feed.item(tool("a", "", "running"));
    for (let lines = 1; lines < 100; lines += 1) feed.item(tool("a", "line\n".repeat(lines), "running"));
    expect(feed.rev).toBe(1);
    pass(REPORT_EVERY_MS);
    expect(feed.rev).toBe(2);
    feed.item(tool("a", "line\n"));
    expect(feed.rev).toBe(3);
  });

  test("is up to date for a new reader", () => {
    const { feed, read } = startFeed();
    feed.item(growing("a", "one"));
    feed.grown({ native_id: "a", offset: 3, text: " two" });
    expect(read().takeAll().textOf("a")).toBe("one two");
  });

  test("is dropped for a slow reader, who still gets every item", () => {
    const { feed, read } = startFeed();
    feed.item(growing("a", "x"));
    const slow = read();
    for (let length = 1; length < 200_000; length += 1000)
      feed.grown({ native_id: "a", offset: length, text: "x".repeat(1000) });
    for (let count = 0; count < 100; count += 1) feed.item(item(`b${count}`));
    feed.item(item("a", { content: [{ type: "text", text: "short" }] }));
    slow.takeAll();
    expect(slow.follower.items.size).toBe(101);
    expect(slow.follower.textOf("a")).toBe("short");
    expect(slow.follower.seen).toMatchObject({ item: 101, delta: 0 });
  });
});

test("the deltas that wait for a slow reader are limited", () => {
  const { feed, read } = startFeed();
  const ids = Array.from({ length: 10 }, (_, number) => `item ${number}`);
  for (const id of ids) feed.item(growing(id, "x"));
  const { follower, takeAll } = read();
  takeAll();
  for (const id of ids) feed.grown({ native_id: id, offset: 1, text: "x".repeat(10_000) });
  takeAll();
  expect(follower.seen.delta).toBe(3);
});

describe("secrets", () => {
  test("are no part of the runtime's title, which is cut where it is long", () => {
    const { feed } = startFeed(["the-secret"]);
    feed.titled("Use the-secret to sign");
    expect(feed.turnNow.title).toBe("Use [redacted] to sign");
    feed.titled("x".repeat(2000));
    expect(feed.turnNow.title).toHaveLength(1000);
    const { rev } = feed;
    feed.titled("x".repeat(2000));
    expect(feed.rev).toBe(rev);
  });

  const SECRET = "sk-abcdef-abc";
  const TEXT = `a ${SECRET}${SECRET} sk-abc, b sk-abcdef-abcdef-abc c😀`;
  const CLEAN = new Redactor([SECRET, "sk-abc"]).redact(TEXT);

  test("are masked wherever a text is split, and nothing that was given out changes [D07]", () => {
    for (let first = 0; first <= TEXT.length; first += 1) {
      for (let second = first; second <= Math.min(first + 14, TEXT.length); second += 1) {
        const { feed, read } = startFeed([SECRET, "sk-abc"]);
        feed.item(growing("a", TEXT.slice(0, first)));
        const { follower, takeAll } = read();
        const seen = [takeAll().textOf("a")];
        feed.grown({ native_id: "a", offset: first, text: TEXT.slice(first, second) });
        seen.push(takeAll().textOf("a"));
        feed.grown({ native_id: "a", offset: second, text: TEXT.slice(second) });
        seen.push(takeAll().textOf("a"), CLEAN);
        for (const text of seen) expect(CLEAN.startsWith(text)).toBe(true);
        feed.item(item("a", { content: [{ type: "text", text: TEXT }] }));
        expect(takeAll().textOf("a")).toBe(CLEAN);
        expect(follower.seen.unfit).toBe(0);
      }
    }
  });

  test("hold back no more than what may be their beginning", () => {
    const { feed, read } = startFeed([SECRET]);
    feed.item(growing("a", "text sk-a"));
    const { takeAll } = read();
    expect(takeAll().textOf("a")).toBe("text ");
    feed.grown({ native_id: "a", offset: 9, text: "side" });
    expect(takeAll().textOf("a")).toBe("text sk-aside");
  });

  test("are masked in every text of an item [D07]", () => {
    const { feed, versions } = startFeed([SECRET]);
    const change = { path: SECRET, operation: "update", patch: `-${SECRET}` } as const;
    feed.item(
      item("a", {
        content: [
          { type: "file", name: SECRET, media_type: "text/plain", attachment_id: null },
          { type: "text", text: SECRET },
        ],
        tool: {
          name: SECRET,
          kind: "other",
          title: SECRET,
          input: { [SECRET]: [SECRET, { deep: `x${SECRET}` }] },
          output: SECRET,
          truncated: false,
          changes: [change],
        },
        plan: [{ text: SECRET, status: "pending" }],
        request: {
          kind: "question",
          title: SECRET,
          patterns: [SECRET],
          command: `curl ${SECRET} ${"x".repeat(20_000)}`,
          always: [SECRET],
          questions: [
            {
              title: SECRET,
              text: SECRET,
              options: [{ label: SECRET, description: SECRET }],
              multiple: false,
            },
          ],
        },
        error: { code: "x", message: SECRET },
      }),
    );
    const text = JSON.stringify(versions());
    expect(text).not.toContain(SECRET);
    expect(text.split("[redacted]")).toHaveLength(21);
    expect(versions()[0]?.request?.command).toMatch(
      /^curl .*x\n… \d+ more characters of the command are not shown\.$/s,
    );
  });

  test("are masked as a number, and in the output of a tool that still writes it", () => {
    const { feed, versions } = startFeed(["1234567890", SECRET]);
    feed.item(tool("a", `begin ${SECRET.slice(0, 8)}`, "running"));
    expect(versions()[0]?.tool?.output).toBe("begin [redacted]");
    const call = tool("b", "");
    feed.item({ ...call, tool: call.tool && { ...call.tool, input: { pin: 1_234_567_890, count: 3 } } });
    expect(versions()[1]?.tool?.input).toEqual({ pin: "[redacted]", count: 3 });
  });
});

describe("limits", () => {
  test("an item holds the beginning of a long output, and the whole is kept aside", () => {
    const { feed, versions } = startFeed();
    const output = "ä".repeat(OUTPUT_INLINE_MAX);
    feed.item(tool("a", output));
    const [kept] = versions();
    expect(kept?.tool).toMatchObject({ truncated: true });
    expect(Buffer.byteLength(kept?.tool?.output ?? "")).toBeLessThanOrEqual(OUTPUT_INLINE_MAX);
    expect(output.startsWith(kept?.tool?.output ?? "x")).toBe(true);
    expect(feed.output("a")).toBe(output);
    expect(feed.output("unknown")).toBeNull();
  });

  test("the outputs kept aside are the newest", () => {
    const { feed } = startFeed();
    const output = "x".repeat(OUTPUTS_BYTES_MAX / 8);
    for (let count = 0; count < 12; count += 1) feed.item(tool(`t${count}`, `${count} ${output}`));
    expect(feed.output("t11")).toHaveLength(output.length + 3);
    expect(feed.output("t0")).toHaveLength(OUTPUT_INLINE_MAX);
  });

  test("long arguments lose the ends of their texts, and long patches are left out", () => {
    const { feed, versions } = startFeed();
    const call = tool("a", "");
    const long = "x".repeat(100_000);
    const changes = ["a", "b"].map((path) => ({
      path,
      operation: "add" as const,
      patch: long.slice(0, 40_000),
    }));
    feed.item({ ...call, tool: call.tool && { ...call.tool, input: { path: "a", content: long }, changes } });
    expect(versions()[0]?.tool?.input).toEqual({ path: "a", content: "x".repeat(4096) });
    expect(versions()[0]?.tool?.changes.map(({ patch }) => patch?.length)).toEqual([40_000, undefined]);
  });

  test("the feed stays within its limit: the oldest outputs go first, then the oldest closed items [D08]", () => {
    const { feed, versions } = startFeed();
    const size = (): number => Buffer.byteLength(JSON.stringify(versions()));
    feed.item(growing("open", "text"));
    const output = "x".repeat(OUTPUT_INLINE_MAX);
    for (let count = 0; count < 600; count += 1) feed.item(tool(`t${count}`, output));
    expect(size()).toBeLessThanOrEqual(FEED_BYTES_MAX);
    expect(versions()).toHaveLength(601);
    expect(versions().find(({ native_id: id }) => id === "t0")?.tool).toMatchObject({
      output: "",
      truncated: true,
    });
    expect(versions().at(-1)?.tool?.output).toBe(output);
    const text = "x".repeat(200_000);
    for (let count = 0; count < 200; count += 1)
      feed.item(item(`m${count}`, { content: [{ type: "text", text }] }));
    expect(size()).toBeLessThanOrEqual(FEED_BYTES_MAX);
    const ids = versions().map(({ native_id: id }) => id);
    expect(ids).toContain("open");
    expect(ids).toContain("m199");
    expect(ids).not.toContain("t0");
  });
});
