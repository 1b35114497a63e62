/** `GET /platform/conversation`: who may read, what comes first, and how it stays open. */
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { afterEach, describe, expect, test, vi } from "vitest";
import { ConversationFeed } from "../../../daemon/conversation/feed.ts";
import { Redactor } from "../../../src/domain/secret/redactor.ts";
import { WAIT_MS } from "../../support/patience.ts";
import { OUTPUT_INLINE_MAX } from "../../../src/domain/conversation/conversation.ts";
import { item, tool } from "../support/feed.ts";
import { Follower } from "../support/follower.ts";
import { Served } from "../support/served.ts";

const POLL = { timeout: WAIT_MS, interval: 10 };
/** A limit of the daemon. */
const READERS_MAX = 32;

let served: Served | null = null;
afterEach(async () => {
  vi.useRealTimers();
  await served?.stop();
  served = null;
});

const start = async (hasConversation = true) => {
  const feed = new ConversationFeed({
    redactor: new Redactor([]),
    now: () => 0,
    after: () => () => undefined,
  });
  const running = await Served.start((_, response) => void response.end(), hasConversation ? feed : null);
  served = running;
  /** Follows from a number; `text` is everything that came. */
  const follow = async (query = "") => {
    const call = running.open(`/platform/conversation${query}`);
    call.on("error", () => undefined);
    call.end();
    const [response] = (await once(call, "response")) as [IncomingMessage];
    const reader = { response, call, text: "", follower: new Follower() };
    response.on("error", () => undefined);
    response.setEncoding("utf8").on("data", (chunk: string) => (reader.text += chunk));
    return reader;
  };
  return { running, feed, follow };
};

const idsIn = (text: string): readonly string[] =>
  [...text.matchAll(/"native_id":"(\w+)"/g)].map(([, id = ""]) => id);

describe("the conversation over HTTP", () => {
  test("requires a signed context, and a number [X07]", async () => {
    const { running } = await start();
    const forged = { "x-platform-user-context": "forged" };
    expect((await running.ask("/platform/conversation", { headers: forged })).response.statusCode).toBe(401);
    expect((await running.ask("/platform/conversation", { method: "PUT" })).response.statusCode).toBe(405);
    for (const query of ["?after=x", "?after=-1", "?after=", "?before=1", "?after=1&after=2"]) {
      // oxlint-disable-next-line no-await-in-loop -- one request after the other
      expect((await running.ask(`/platform/conversation${query}`)).response.statusCode, query).toBe(400);
    }
  });

  test("has the whole output of a tool beside the item's beginning of it", async () => {
    const { running, feed } = await start();
    const output = "o".repeat(OUTPUT_INLINE_MAX + 1);
    feed.item(tool("a tool/1", output));
    const { body } = await running.ask("/platform/output?item=a%20tool%2F1");
    expect(JSON.parse(body)).toEqual({ output });
    expect((await running.ask("/platform/output?item=other")).response.statusCode).toBe(404);
    const forged = { "x-platform-user-context": "forged" };
    const refused = await running.ask("/platform/output?item=a%20tool%2F1", { headers: forged });
    expect(refused.response.statusCode).toBe(401);
  });

  test("is refused for a runtime that has none", async () => {
    const { running } = await start(false);
    const { response, body } = await running.ask("/platform/conversation?after=0");
    expect([response.statusCode, JSON.parse(body)]).toMatchObject([409, { code: "not_supported" }]);
  });

  const STEERING = [
    ["messages", "POST"],
    ["interrupt", "POST"],
    ["answer", "POST"],
    ["models", "GET"],
  ] as const;

  test.each(STEERING)("is steered by %s, unless the runtime has none", async (name, method) => {
    const { running } = await start();
    const body = method === "POST" ? { body: "{}" } : {};
    const steered = await running.ask(`/platform/${name}`, { method, ...body });
    expect([steered.response.statusCode, JSON.parse(steered.body)]).toEqual([200, { name }]);
    const none = (await start(false)).running;
    const refused = await none.ask(`/platform/${name}`, { method, ...body });
    expect([refused.response.statusCode, JSON.parse(refused.body)]).toMatchObject([
      409,
      { code: "not_supported" },
    ]);
    const forged = { "x-platform-user-context": "forged" };
    const unsigned = await running.ask(`/platform/${name}`, { method, headers: forged, ...body });
    expect(unsigned.response.statusCode).toBe(401);
  });

  test("begins with what is newer than the given number, and goes on with what changes", async () => {
    const { feed, follow } = await start();
    for (const id of ["a", "b", "c"]) feed.item(item(id));
    const reader = await follow("?after=1");
    expect(reader.response.headers["content-type"]).toBe("application/x-ndjson");
    await expect.poll(() => reader.text, POLL).toContain('"type":"turn"');
    expect(idsIn(reader.text)).toEqual(["b", "c"]);
    feed.item(item("d"));
    feed.turn({ state: "running", waiting_for: null });
    await expect.poll(() => reader.text, POLL).toContain('"state":"running"');
    expect(idsIn(reader.text)).toEqual(["b", "c", "d"]);
    reader.follower.take(reader.text);
    expect([reader.follower.rev, reader.follower.turn?.state]).toEqual([5, "running"]);
    reader.call.destroy();
    await expect.poll(() => feed.readers, POLL).toBe(0);
  });

  test("sends a blank line every 15 seconds", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    const { follow } = await start();
    const reader = await follow();
    await vi.waitFor(() => expect(reader.text).toContain("turn"), POLL);
    vi.advanceTimersByTime(15_000);
    await vi.waitFor(() => expect(reader.text).toMatch(/\}\n\n$/), POLL);
  });

  test("gives a reader that takes nothing every item once it takes again, and blocks no other", async () => {
    const { feed, follow } = await start();
    const slow = await follow();
    await expect.poll(() => slow.text, POLL).toContain("turn");
    slow.response.pause();
    const other = await follow();
    const text = "x".repeat(200_000);
    for (let count = 0; count < 50; count += 1) {
      feed.item(item(`item${count}`, { content: [{ type: "text", text }] }));
      feed.item(item("last", { content: [{ type: "text", text: `${text}${count}` }] }));
      // oxlint-disable-next-line no-await-in-loop -- the other reader keeps up
      await expect
        .poll(() => other.text.endsWith("}\n") && other.text.includes(`${count}"}]`), POLL)
        .toBe(true);
    }
    slow.response.resume();
    await expect.poll(() => slow.text.includes('x49"}]'), POLL).toBe(true);
    for (const { follower, text: lines } of [slow, other]) {
      follower.take(lines);
      expect(follower.items.size).toBe(51);
      expect(follower.textOf("last")).toBe(`${text}49`);
    }
    expect(slow.follower.seen.item).toBeLessThan(other.follower.seen.item);
  });

  test("has a limited number of readers", async () => {
    const { running, follow, feed } = await start();
    const readers = await Promise.all(Array.from({ length: READERS_MAX }, () => follow()));
    const refused = await running.ask("/platform/conversation");
    expect([refused.response.statusCode, JSON.parse(refused.body)]).toMatchObject([
      503,
      { code: "too_many_streams" },
    ]);
    for (const { call } of readers) call.destroy();
    await expect.poll(() => feed.readers, POLL).toBe(0);
  });
});
