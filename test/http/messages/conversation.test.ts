/** A session's conversation, as pages and as the output of one tool (api.md 3 "Conversation"). */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as Effect from "effect/Effect";
import { Conversations } from "../../../src/store/ports/sessions/conversations.ts";
import {
  deliver,
  eventually,
  expectStatus,
  fields,
  issuesOf,
  listOf,
  makeAccount,
  makeHookProject,
  makeProject,
  makeUserToken,
  reached,
  refusal,
  runSession,
  type Fields,
} from "../../support/service/requests.ts";
import type { TestService } from "../../support/service/service.ts";
import { asOperator, shareService } from "../../support/service/shared.ts";
import { nativeItem, nativeTool, tokens } from "../../support/world/conversations.ts";

let service: TestService;
let pid = "";
beforeAll(async () => {
  service = await shareService();
  pid = await makeHookProject(service);
});
afterAll(() => service.close());

const target = (sid: string, rest = "conversation", project = pid) =>
  `/v1/projects/${project}/sessions/${sid}/${rest}`;
const read = async (sid: string, query = "") =>
  fields(expectStatus(await service.request("GET", target(sid, `conversation${query}`)), 200));
const itemsOf = async (sid: string, query = "") => (await read(sid, query))["items"] as readonly Fields[];

describe("a session's conversation", () => {
  it("begins with the initial prompt, by its user, before any sandbox reports", async () => {
    service.daemon.become("cloning");
    const body = { initial_prompt: "Fix it." };
    const made = await service.request("POST", `/v1/projects/${pid}/sessions`, { body });
    service.daemon.become("ready");
    const sid = String(fields(expectStatus(made, 201))["id"]);
    const { user } = fields(await service.request("GET", "/v1/me")) as { user: { id: string; name: string } };
    const conversation = await read(sid);
    expect(conversation).toMatchObject({
      queue: expect.any(Array) as unknown,
      requests: [],
      next_cursor: null,
    });
    expect(conversation["items"]).toEqual([
      expect.objectContaining({
        id: sid,
        kind: "message",
        role: "user",
        author: { kind: "user", user_id: user.id, name: user.name, trigger_slug: null, fire_id: null },
        content: [{ type: "text", text: "Fix it." }],
        truncated: false,
      }),
    ]);
  });

  it("names the trigger and its fire as the author of a prompt", async () => {
    const sid = String(fields(expectStatus(await deliver(service, `${pid}/push`), 202))["session_id"]);
    const { fire_id: fireId } = await reached(service, pid, sid, "running");
    const [prompt] = await itemsOf(sid);
    expect(prompt).toMatchObject({ author: { kind: "trigger", trigger_slug: "push", fire_id: fireId } });
  });

  it("has what the agent did, newest first, in pages that do not overlap", async () => {
    const sid = await runSession(service, pid, { initial_prompt: "Begin" });
    const answers = [1, 2, 3, 4].map((rev) => nativeItem(`m${rev}`, rev, { usage: tokens(10, 0.5) }));
    Object.assign(answers[3] ?? {}, { context: { tokens: 20, size: 100 }, compacts: true });
    service.daemon.conversation.say(sid, ...answers.map((item) => ({ type: "item" as const, item })));
    const all = await eventually(async () => {
      const items = await itemsOf(sid);
      expect(items).toHaveLength(5);
      return items;
    });
    const texts = all.map(({ content }) => (content as readonly { text: string }[])[0]?.text);
    expect(texts).toEqual([
      "text of m4 at 4",
      "text of m3 at 3",
      "text of m2 at 2",
      "text of m1 at 1",
      "Begin",
    ]);
    expect(Object.keys(all[0] ?? {})).not.toContain("native_id");
    expect(all[0]).toMatchObject({ context: { tokens: 20, size: 100 }, compacts: true });
    expect(Object.keys(all[1] ?? {})).not.toContain("context");
    const paged: Fields[] = [];
    for (let query: string | null = "?limit=2"; query !== null;) {
      const page: Fields = await read(sid, query);
      paged.push(...(page["items"] as readonly Fields[]));
      const next = page["next_cursor"] as string | null;
      query = next === null ? null : `?limit=2&before=${next}`;
    }
    expect(paged).toEqual(all);
  });

  it("says on the session's row what the agent does, and what it cost", async () => {
    const sid = await runSession(service, pid, { initial_prompt: "Begin" });
    const path = `/v1/projects/${pid}/sessions/${sid}`;
    const idle = fields(await service.request("GET", path));
    expect(idle).toMatchObject({ turn: { state: "idle", waiting_for: null }, usage: { input_tokens: 0 } });
    service.daemon.conversation.say(
      sid,
      { type: "item", item: nativeItem("m", 1, { usage: tokens(10, 0.5) }) },
      { type: "turn", turn: { state: "running", waiting_for: null }, ended: 0, rev: 2 },
    );
    const row = await eventually(async () => {
      const session = fields(await service.request("GET", path));
      expect(session).toMatchObject({
        turn: { state: "running" },
        usage: { input_tokens: 10, cost_usd: 0.5 },
      });
      return session;
    });
    const list = listOf(await service.request("GET", `/v1/projects/${pid}/sessions`), "sessions");
    expect(list.find(({ id }) => id === sid)).toEqual(row);
    const conversation = await read(sid);
    expect([conversation["state"], conversation["usage"]]).toEqual([row["turn"], row["usage"]]);
  });

  it("adds what it used to its project's day, and to the metrics", async () => {
    const operator = asOperator(service);
    const own = await makeProject(operator);
    const usage = (query = "") => operator.request("GET", `/v1/projects/${own}/usage${query}`);
    const sid = await runSession(operator, own, { initial_prompt: "Begin" });
    expect(fields(expectStatus(await usage(), 200))).toMatchObject({ days: [], total: tokens(0, 0) });
    const item = nativeItem("m", 1, { model: "anthropic/large", usage: tokens(12, 0.25) });
    service.daemon.conversation.say(sid, { type: "item", item });
    const answer = await eventually(async () => {
      const found = fields(expectStatus(await usage(), 200));
      expect(found["days"]).toHaveLength(1);
      return found;
    });
    expect(answer).toEqual({
      from: expect.any(String),
      to: expect.any(String),
      days: [
        {
          day: expect.any(String),
          model: "anthropic/large",
          ...tokens(12, 0.25),
          counted: false,
          untold_calls: 0,
          estimated_tokens: 0,
        },
      ],
      total: tokens(12, 0.25),
    });
    expect(Date.parse(String(answer["to"])) - Date.parse(String(answer["from"]))).toBe(29 * 86_400_000);
    expect(fields(await usage("?from=2020-01-01&to=2020-12-31"))).toMatchObject({ days: [] });
    const { text } = expectStatus(await operator.request("GET", "/metrics"), 200);
    expect(text).toContain(`platform_agent_tokens_total{project="${own}",kind="input"} 12\n`);
    expect(text).toContain(`platform_agent_cost_usd_total{project="${own}"} 0.25\n`);
  });

  it.each([
    ["?from=2026-02-30", "from"],
    ["?to=0000-01-01", "to"],
    ["?from=2026-01-02&to=2026-01-01", "from"],
    ["?from=2025-01-01&to=2026-01-02", "from"],
  ])("of a project is refused for the days %s", async (query, name) => {
    const answer = await service.request("GET", `/v1/projects/${pid}/usage${query}`);
    expect(refusal(answer)).toEqual([400, "invalid_request"]);
    expect(issuesOf(answer).map(({ path }) => path)).toEqual([name]);
  });

  it("refuses a page that is none", async () => {
    const sid = await runSession(service, pid);
    for (const [query, name] of [
      ["?before=x", "before"],
      ["?before=0", "before"],
      ["?limit=0", "limit"],
      ["?limit=201", "limit"],
    ] as const) {
      const answer = await service.request("GET", target(sid, `conversation${query}`));
      expect(refusal(answer)).toEqual([400, "invalid_request"]);
      expect(issuesOf(answer).map(({ path }) => path)).toEqual([name]);
    }
  });

  it("is not found by the token of another project or account, nor once its session is deleted", async () => {
    const sid = await runSession(service, pid);
    const other = await makeProject(service);
    const { token } = await makeUserToken(service, { project_id: other });
    const asked = [
      service.request("GET", target(sid), { token }),
      service.request("GET", target(sid), { token: await makeAccount(service) }),
      service.request("GET", target(sid, "conversation", other)),
      service.request("GET", target(randomUUID())),
    ];
    for (const answer of await Promise.all(asked)) expect(refusal(answer)).toEqual([404, "not_found"]);
    expectStatus(await service.request("DELETE", `/v1/projects/${pid}/sessions/${sid}`), 204);
    expect(refusal(await service.request("GET", target(sid)))).toEqual([404, "not_found"]);
  });
});

const outputOf = (sid: string, id: string) => service.request("GET", target(sid, `items/${id}/output`));

describe("the text of a message", () => {
  it("is whole, however much of it an event has", async () => {
    const sid = await runSession(service, pid);
    const text = `${"a long answer ü ".repeat(60_000)}end`;
    service.daemon.conversation.say(sid, {
      type: "item",
      item: nativeItem("m", 1, { content: [{ type: "text", text }] }),
    });
    const id = await eventually(async () => {
      const found = (await itemsOf(sid)).find(({ kind }) => kind === "message");
      if (found === undefined) throw new Error("the message is not kept yet");
      return String(found["id"]);
    });
    const textIn = (item: string) => service.request("GET", target(sid, `items/${item}/text`));
    const answer = expectStatus(await textIn(id), 200);
    expect([answer.text, answer.headers["content-type"]]).toEqual([text, "text/plain; charset=utf-8"]);
    expect(refusal(await textIn(randomUUID()))).toEqual([404, "not_found"]);
  });
});

describe("the output of a tool", () => {
  it("is the item's own while it is short, and the whole kept one otherwise", async () => {
    const sid = await runSession(service, pid);
    service.daemon.conversation.say(sid, { type: "item", item: nativeTool("t", 1, "begin ü") });
    const tool = await eventually(async () => {
      const found = (await itemsOf(sid)).find(({ kind }) => kind === "tool");
      if (found === undefined) throw new Error("the tool is not kept yet");
      return found;
    });
    const itemId = String(tool["id"]);
    const short = expectStatus(await outputOf(sid, itemId), 200);
    expect([short.text, short.headers["content-type"]]).toEqual(["begin ü", "text/plain; charset=utf-8"]);
    const text = `begin ${"ü".repeat(100_000)}`;
    const sandboxId = String(tool["sandbox_id"]);
    await service.inside(
      Effect.flatMap(Conversations, ({ keepOutput }) => keepOutput(sid, { itemId, sandboxId, text })),
    );
    expect(expectStatus(await outputOf(sid, itemId), 200).text).toBe(text);
  });

  it("is not found for a message, an unknown item, or an item of another session", async () => {
    const [sid, other] = [
      await runSession(service, pid, { initial_prompt: "x" }),
      await runSession(service, pid),
    ];
    await itemsOf(sid);
    for (const [session, item] of [
      [sid, sid],
      [sid, randomUUID()],
      [other, sid],
    ] as const)
      expect(refusal(await outputOf(session, item))).toEqual([404, "not_found"]);
    expect(refusal(await outputOf(sid, "x"))).toEqual([400, "invalid_request"]);
  });
});
