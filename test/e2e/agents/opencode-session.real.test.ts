/** The real agent runtime through the relay: its conversation and events, attachments, and its terminal. */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
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
