/** The real agent runtime through the relay: its conversation, and its events while a prompt is worked on. */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { beforeAll, describe, expect, it } from "vitest";
import { type LiveSession, POLL, useLiveSession } from "../support/service/live-session.ts";
import type { Json } from "../support/service/process-service.ts";
import { sandboxesStartHere } from "../support/requirements.ts";

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

describe.runIf(sandboxesStartHere)("the real opencode behind the relay", () => {
  const running = useLiveSession({ initial_prompt: PROMPT });
  beforeAll(() => {
    session = running();
  });

  it("shows the prompt, the tool and the answer once each in the conversation", async () => {
    const page = () => session.call("GET", "conversation");
    await expect.poll(async () => (await page())["state"], POLL).toMatchObject({ state: "idle" });
    await expect.poll(async () => JSON.stringify(await page()), POLL).toContain("Done.");
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
});
