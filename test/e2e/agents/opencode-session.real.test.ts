/** The real agent runtime through the relay: its conversation and events, attachments, a restart, and its terminal. */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { USAGE } from "../../../demo/scripted-model.ts";
import { type LiveSession, POLL, useLiveSession } from "../../support/service/sessions/live-session.ts";
import type { Json } from "../../support/service/process-service.ts";
import { sandboxesStartHere } from "../../support/requirements.ts";
import { deepTest } from "../../support/vitest/rings.ts";

interface Event {
  readonly type: string;
  readonly properties: Json;
}

const PROMPT = "run: echo asked at first";

let session: LiveSession;

/** An open event stream of the runtime: what came so far. */
const openEvents = async () => {
  const { url, headers } = session.address("runtime/event");
  const asked = request(url, { headers: { ...headers, accept: "text/event-stream" }, agent: false });
  asked.end();
  const [stream] = (await once(asked, "response")) as [IncomingMessage];
  let text = "";
  stream.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  stream.on("error", () => undefined);
  return {
    type: stream.headers["content-type"],
    isOpen: () => !stream.readableEnded && !stream.destroyed,
    all: (): readonly Event[] =>
      text
        .split("\n\n")
        .slice(0, -1)
        .flatMap((event) => event.split("\n").filter((line) => line.startsWith("data: ")))
        .map((line) => JSON.parse(line.slice("data: ".length)) as Event),
    leave: () => asked.destroy(),
  };
};

describe.runIf(sandboxesStartHere)("a session of the real opencode", () => {
  const running = useLiveSession({ initial_prompt: PROMPT });
  beforeAll(() => {
    session = running();
  });

  it("shows the prompt, the tool and the answer once each in the conversation", async () => {
    const page = () => session.call("GET", "conversation");
    await expect.poll(async () => JSON.stringify(await page()), POLL).toContain("Done.");
    await expect.poll(async () => (await page())["state"], POLL).toMatchObject({ state: "idle" });
    const { items, queue } = (await page()) as unknown as { items: readonly Json[]; queue: readonly Json[] };
    expect(queue).toEqual([]);
    expect(items.toReversed().filter(({ kind }) => kind !== "thought")).toMatchObject([
      {
        id: session.path.split("/").at(-1),
        kind: "message",
        role: "user",
        author: { kind: "user", name: "admin" },
        status: "accepted",
        content: [{ type: "text", text: PROMPT }],
      },
      {
        kind: "tool",
        status: "completed",
        tool: { kind: "execute", output: expect.stringContaining("asked at first") as string },
      },
      { kind: "message", role: "agent", status: "completed" },
    ]);
  });

  it("gives the agent a person's messages, each once, and keeps its answers", async () => {
    const texts = ["run: echo asked later", "run: echo asked last"];
    const ids = texts.map(() => randomUUID());
    for (const [index, text] of texts.entries())
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await session.call("POST", "messages", { id: ids[index], text });
    // A repeated message is the same one.
    await session.call("POST", "messages", { id: ids[0], text: texts[0] });
    const items = async () =>
      (
        (await session.call("GET", "conversation")) as unknown as { items: readonly Json[] }
      ).items.toReversed();
    const answersTo = async (id: string | undefined) =>
      (await items()).filter((item) => item["turn_id"] === id && item["role"] === "agent");
    await expect
      .poll(async () => JSON.stringify(await answersTo(ids[1])), POLL)
      .toMatch(/asked last.*Done\./s);
    for (const [index, id] of ids.entries()) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      const kinds = (await answersTo(id)).filter(({ kind }) => kind !== "thought").map(({ kind }) => kind);
      expect([texts[index], kinds]).toEqual([texts[index], ["tool", "message"]]);
    }
    const said = (await items()).filter(({ kind, role }) => kind === "message" && role === "user");
    expect(said.map(({ id, status }) => [id, status])).toEqual([
      [session.path.split("/").at(-1), "accepted"],
      ...ids.map((id) => [id, "accepted"]),
    ]);
    const { models } = await session.call("GET", "models");
    expect(models).not.toEqual([]);
  });

  it("counts the call of the model whose tool a person stops", async () => {
    const id = randomUUID();
    const answers = async () => {
      const { items } = (await session.call("GET", "conversation")) as unknown as { items: readonly Json[] };
      return items.filter((item) => item["turn_id"] === id && item["role"] === "agent");
    };
    await session.call("POST", "messages", { id, text: "run: sleep 600" });
    await expect.poll(answers, POLL).toMatchObject([{ kind: "tool", status: "running" }]);
    await session.call("POST", "interrupt");
    const usage = {
      input_tokens: USAGE.prompt_tokens,
      output_tokens: USAGE.completion_tokens,
      cached_tokens: USAGE.prompt_tokens_details.cached_tokens,
    };
    await expect.poll(answers, POLL).toMatchObject([{ kind: "tool", status: "interrupted", usage }]);
  });

  it("streams the events of a session and its prompt while they happen, and stays open", async () => {
    const events = await openEvents();
    expect(events.type).toContain("text/event-stream");
    const types = () => events.all().map(({ type }) => type);
    await expect.poll(types, POLL).toContain("server.connected");
    const { id } = await session.call("POST", "runtime/session", { title: "told by a test" });
    await expect.poll(types, POLL).toContain("session.created");
    const parts = [{ type: "text", text: "run: echo said by the shell" }];
    const answer = await session.call("POST", `runtime/session/${String(id)}/message`, { parts });
    expect(JSON.stringify(answer)).toContain("said by the shell");
    const ofSession = () =>
      events
        .all()
        .filter(({ properties }) => JSON.stringify(properties).includes(String(id)))
        .map(({ type }) => type);
    await expect.poll(ofSession, POLL).toContain("session.idle");
    expect(ofSession()).toEqual(
      expect.arrayContaining(["session.created", "message.updated", "message.part.updated"]),
    );
    // The tool's run is told before its turn is over: nothing was kept back.
    const tool = events.all().findIndex((event) => JSON.stringify(event).includes('"tool":"bash"'));
    const idle = events.all().findIndex(({ type }) => type === "session.idle");
    expect(tool).toBeGreaterThan(0);
    expect(tool).toBeLessThan(idle);
    const messages = (await session.call("GET", `runtime/session/${String(id)}/message`)) as unknown;
    expect((messages as readonly Json[]).map(({ info }) => (info as Json)["role"])).toContain("assistant");
    expect(events.isOpen()).toBe(true);
    events.leave();
  });

  it("lets the agent read an attached file in its sandbox, and not change it", async () => {
    const { url, headers } = session.address("attachments?name=../clue.txt");
    // oxlint-disable-next-line no-restricted-globals -- a body that is no JSON
    const kept = await fetch(url, { method: "POST", headers, body: "the clue is cobalt\n" });
    expect(kept.status).toBe(201);
    const { id: file, name } = (await kept.json()) as Json;
    const path = `/run/platform/agent/attachments/${String(file)}/${String(name)}`;
    const id = randomUUID();
    const text = `run: cat ${path}; rm ${path} || echo it stays`;
    await session.call("POST", "messages", { id, text, attachments: [file] });
    const output = async () => {
      const { items } = (await session.call("GET", "conversation")) as unknown as { items: readonly Json[] };
      const item = items.find((one) => one["turn_id"] === id && one["kind"] === "tool");
      return item?.["status"] === "completed" ? (item["tool"] as Json)["output"] : null;
    };
    await expect.poll(output, POLL).toMatch(/the clue is cobalt\n(?:.*\n)?it stays/);
  });

  it("has its conversation again after a restart, and the conversation says so [D06]", async () => {
    await session.call("POST", "stop");
    const id = randomUUID();
    await session.call("POST", "messages", { id, text: "run: echo asked after the restart" });
    const items = async () =>
      (
        (await session.call("GET", "conversation")) as unknown as { items: readonly Json[] }
      ).items.toReversed();
    await expect.poll(async () => JSON.stringify(await items()), POLL).toMatch(/asked after.*Done\./s);
    const kept = await items();
    const notes = kept.filter(({ kind }) => kind === "note").map(({ content }) => JSON.stringify(content));
    expect(notes).toEqual([expect.stringContaining("has the whole conversation so far")]);
    const said = kept.filter(({ kind, role }) => kind === "message" && role === "user");
    expect(said.at(-1)).toMatchObject({ id, status: "accepted" });
    expect(said.map(({ author }) => (author as Json | null)?.["kind"])).toEqual(said.map(() => "user"));
    // No message of the former sandbox has become an item a second time.
    const texts = said.map(({ content }) => JSON.stringify(content));
    expect(new Set(texts).size).toBe(texts.length);
    const [own] = (await session.call("GET", "runtime/session")) as unknown as readonly Json[];
    const heard = (await session.call(
      "GET",
      `runtime/session/${String(own?.["id"])}/message`,
    )) as unknown as readonly { readonly info: Json; readonly parts: readonly Json[] }[];
    expect(heard[0]).toMatchObject({ info: { role: "user" }, parts: [{ type: "text", text: PROMPT }] });
    expect(heard[1]).toMatchObject({
      info: { role: "assistant" },
      parts: [
        {
          type: "tool",
          state: { status: "completed", output: expect.stringContaining("asked at first") as string },
        },
      ],
    });
  });

  deepTest("has a terminal that answers its input, at the given size, until it is closed", async () => {
    const { id } = await session.call("POST", "runtime/pty", {
      command: "/bin/sh",
      title: "typed in by a test",
    });
    const target = `runtime/pty/${String(id)}`;
    await session.call("PUT", target, { size: { rows: 31, cols: 97 } });
    const { url, headers } = session.address(`${target}/connect`);
    const terminal = new WebSocket(url.href.replace(/^http/, "ws"), { headers });
    let shown = "";
    terminal.on("message", (data: Buffer) => (shown += String(data)));
    await once(terminal, "open");
    terminal.send("stty size; echo $((6 * 7)) is the answer; pwd\n");
    await expect.poll(() => shown, POLL).toContain("42 is the answer");
    await expect.poll(() => shown, POLL).toContain("/workspace");
    expect(shown).toContain("31 97");
    const closed = once(terminal, "close");
    terminal.send("exit\n");
    await closed;
  });
});
