/** A session's conversation as server-sent events, and whole (api.md 3 "Conversation"). */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as Effect from "effect/Effect";
import type { NativeItem } from "../../../src/domain/conversation/conversation.ts";
import { Conversations } from "../../../src/store/ports/sessions/conversations.ts";
import { readEvents, type EventReader, type SentEvent } from "../../support/service/event-stream.ts";
import {
  eventually,
  expectStatus,
  fields,
  makeProject,
  makeUserToken,
  refusal,
  runSession,
  type Fields,
} from "../../support/service/requests.ts";
import type { TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";
import { nativeItem, nativeTool } from "../../support/world/conversations.ts";

let service: TestService;
let pid = "";
beforeAll(async () => {
  service = await shareService();
  pid = await makeProject(service);
});
afterAll(() => service.close());

const target = (sid: string, rest = "conversation/events") => `/v1/projects/${pid}/sessions/${sid}/${rest}`;

interface Opening {
  readonly after?: number;
  readonly lastEventId?: string;
  readonly token?: string;
}
const open = (
  sid: string,
  { after, lastEventId, token = service.token }: Opening = {},
): Promise<EventReader> =>
  readEvents(`${service.url}${target(sid)}${after === undefined ? "" : `?after=${after}`}`, {
    token,
    ...(lastEventId === undefined ? {} : { lastEventId }),
  });

const begin = () => runSession(service, pid, { initial_prompt: "Begin" });
const say = (sid: string, ...items: readonly NativeItem[]): void =>
  service.daemon.conversation.say(sid, ...items.map((item) => ({ type: "item" as const, item })));

const dataOf = ({ data }: SentEvent): Fields => data as Fields;
const textOf = (event: SentEvent): string | undefined =>
  (dataOf(event)["content"] as readonly { text: string }[])[0]?.text;
const isItem =
  (text: string) =>
  (event: SentEvent): boolean =>
    event.event === "item" && textOf(event) === text;

describe("the events of a conversation", () => {
  it("state the reader's position at once, and no earlier version", async () => {
    const sid = await begin();
    const { seq } = fields(await service.request("GET", target(sid, "conversation")));
    const reader = await open(sid);
    expect([reader.status, reader.headers["content-type"]]).toEqual([200, "text/event-stream"]);
    expect(await reader.until(() => true)).toEqual({ id: String(seq), event: "open", data: {} });
    say(sid, nativeItem("m", 1));
    await reader.until(isItem("text of m at 1"));
    expect(reader.events[1]?.id).toBe(String(Number(seq) + 1));
    reader.close();
  });

  it("have the news of the project on request, without an id, after which a reader still resumes", async () => {
    const sid = await begin();
    const url = `${service.url}${target(sid)}`;
    const [reader, silent] = [
      await readEvents(`${url}?project=1`, { token: service.token }),
      await readEvents(url, { token: service.token }),
    ];
    const place = (await reader.until(() => true)).id ?? "";
    const other = await begin();
    const news = await reader.until(({ event }) => event === "project");
    expect([news.id, news.data]).toEqual([null, {}]);
    expect(reader.events.map(({ event }) => event)).not.toContain("elsewhere");
    await runSession(service, await makeProject(service));
    await reader.until(({ event }) => event === "elsewhere");
    say(sid, nativeItem("m", 1));
    await silent.until(isItem("text of m at 1"));
    expect(silent.events.map(({ event }) => event)).not.toContain("project");
    const resumed = await readEvents(`${url}?project=1`, { token: service.token, lastEventId: place });
    await resumed.until(isItem("text of m at 1"));
    expect(other).not.toBe(sid);
    for (const one of [reader, silent, resumed]) one.close();
    const refused = await service.request("GET", `${target(sid)}?project=2`);
    expect(expectStatus(refused, 400).text).toContain("must be 1");
  });

  it("have text as it grows, without an id", async () => {
    const sid = await begin();
    const reader = await open(sid);
    const growing = { status: "running" as const, completed_at: null };
    say(sid, nativeItem("m", 1, { ...growing, content: [{ type: "text", text: "Hello" }] }));
    const item = await reader.until(isItem("Hello"));
    const more = `, world ${"x".repeat(20_000)}`;
    const delta = { native_id: "m", offset: 5, text: more };
    service.daemon.conversation.say(sid, { type: "delta", delta });
    await eventually(() => expect(reader.events.filter(({ event }) => event === "delta")).toHaveLength(3));
    const deltas = reader.events.filter(({ event }) => event === "delta");
    expect(deltas.map(({ id }) => id)).toEqual([null, null, null]);
    let text = "Hello";
    for (const { item_id: id, offset, text: added } of deltas.map(dataOf)) {
      expect([id, offset]).toEqual([dataOf(item)["id"], text.length]);
      text += String(added);
    }
    expect(text).toBe(`Hello${more}`);
    reader.close();
  });

  it("begin with a reset after an unknown id", async () => {
    const sid = await begin();
    const { seq } = fields(await service.request("GET", target(sid, "conversation")));
    const readers = await Promise.all(
      ["x", "999999999", "1.5", "-1"].map((lastEventId) => open(sid, { lastEventId })),
    );
    for (const reader of readers) {
      await reader.until(({ event }) => event === "open");
      expect(reader.events.slice(0, 2).map(({ id, event }) => [event, id])).toEqual([
        ["reset", String(seq)],
        ["open", String(seq)],
      ]);
    }
    say(sid, nativeItem("m", 1));
    for (const reader of readers) {
      await reader.until(isItem("text of m at 1"));
      reader.close();
    }
  });

  it("shorten an item that is too long for one event, and say so", async () => {
    const sid = await begin();
    const reader = await open(sid);
    // JSON writes each of these characters with six bytes.
    const output = "\u0001".repeat(30_000);
    const tool = nativeTool("t", 1, output);
    const paths = Array.from({ length: 3000 }, (_, index) => `directory/of/file-${index}`);
    const changes = paths.map((path) => ({ path, operation: "add" as const, patch: "+x" }));
    say(sid, tool, {
      ...tool,
      native_id: "u",
      rev: 2,
      tool: tool.tool && { ...tool.tool, output: "", changes },
    });
    say(sid, nativeItem("m", 3, { content: [{ type: "text", text: "ü".repeat(60_000) }] }));
    say(sid, nativeItem("end", 4));
    await reader.until(isItem("text of end at 4"));
    const items = reader.events.filter(({ event }) => event === "item");
    expect(items.map((event) => dataOf(event)["truncated"])).toEqual([true, true, true, false]);
    for (const { data } of items) expect(Buffer.byteLength(JSON.stringify(data))).toBeLessThan(96 * 1024);
    expect(items.slice(0, 2).map((event) => (dataOf(event)["tool"] as Fields)["truncated"])).toEqual([
      true,
      false,
    ]);
    expect("ü".repeat(60_000)).toContain(textOf(items[2] ?? { id: null, event: "", data: {} }));
    const id = String(dataOf(items[0] ?? { id: null, event: "", data: {} })["id"]);
    expect(
      expectStatus(await service.request("GET", target(sid, `items/${id}/output`)), 200).text,
    ).toHaveLength(30_000);
    reader.close();
  });

  it("end when the reader's token has ended, and when the session is deleted [T03]", async () => {
    const sid = await begin();
    const { id, token } = await makeUserToken(service);
    const [short, long] = [await open(sid, { token }), await open(sid)];
    await Promise.all([short, long].map((reader) => reader.until(({ event }) => event === "open")));
    expectStatus(await service.request("DELETE", `/v1/tokens/${id}`), 204);
    await eventually(() => expect(short.ended()).toBe(true));
    expect(long.ended()).toBe(false);
    expectStatus(await service.request("DELETE", `/v1/projects/${pid}/sessions/${sid}`), 204);
    await eventually(() => expect(long.ended()).toBe(true));
    expect(refusal(await service.request("GET", target(sid)))).toEqual([404, "not_found"]);
  });

  it("refuse a place that is none", async () => {
    const sid = await begin();
    for (const after of ["x", "-1", "1.5", ""])
      expect(refusal(await service.request("GET", `${target(sid)}?after=${after}`))).toEqual([
        400,
        "invalid_request",
      ]);
  });
});

/** A conversation longer than one read of the store, with an output of which the item has only the beginning. */
const makeLong = async () => {
  const sid = await begin();
  const answers = Array.from({ length: 120 }, (_, index) => nativeItem(`m${index}`, index + 1));
  const tool = nativeTool("t", 121, "begin");
  say(sid, ...answers, { ...tool, tool: tool.tool && { ...tool.tool, truncated: true } });
  const found = await eventually(async () => {
    const page = fields(await service.request("GET", target(sid, "conversation?limit=1")));
    const [newest] = page["items"] as readonly Fields[];
    expect(newest).toMatchObject({ kind: "tool" });
    return newest ?? {};
  });
  const [itemId, sandboxId] = [String(found["id"]), String(found["sandbox_id"])];
  const text = "begin\n```\n````\nend";
  await service.inside(
    Effect.flatMap(Conversations, ({ keepOutput }) => keepOutput(sid, { itemId, sandboxId, text })),
  );
  return { sid, text };
};

describe("a whole conversation", () => {
  let made: ReturnType<typeof makeLong> | null = null;
  const long = () => (made ??= makeLong());

  it("is one JSON document, oldest item first, with whole outputs", async () => {
    const { sid, text } = await long();
    const answer = expectStatus(await service.request("GET", target(sid, "conversation.json")), 200);
    expect(answer.headers["content-type"]).toBe("application/json");
    const { items, ...rest } = fields(answer) as { items: readonly Fields[] };
    expect(rest).toMatchObject({
      session_id: sid,
      seq: expect.any(Number) as number,
      state: { state: "idle" },
    });
    const texts = items.map(({ content }) => (content as readonly { text: string }[])[0]?.text);
    const answers = Array.from({ length: 120 }, (_, index) => `text of m${index} at ${index + 1}`);
    expect(texts).toEqual(["Begin", ...answers, undefined]);
    expect(items.at(-1)).toMatchObject({ tool: { output: text, truncated: false } });
  });

  it("is a text for people, in which no text passes for a heading or leaves its block", async () => {
    const { sid } = await long();
    say(
      sid,
      nativeItem("forged", 200, { content: [{ type: "text", text: "Yes.\n## admin, now\n\nStop." }] }),
    );
    const markdown = await eventually(async () => {
      const answer = expectStatus(await service.request("GET", target(sid, "conversation.md")), 200);
      expect(answer.headers["content-type"]).toBe("text/markdown; charset=utf-8");
      expect(answer.text).toContain("Stop.");
      return answer.text;
    });
    expect(markdown).toMatch(
      /^# Conversation\n\nSession [0-9a-f-]{36}, .* UTC\n\n## admin, .* UTC\n\n> Begin\n\n## /,
    );
    expect(markdown).toContain(
      "**Tool** bash: List files (completed)\n\n`````text\nbegin\n```\n````\nend\n`````\n",
    );
    expect(markdown).toMatch(/\n> Yes\.\n> ## admin, now\n>\n> Stop\.\n$/);
    expect(markdown.match(/^## /gm)).toHaveLength(122);
  });
});
