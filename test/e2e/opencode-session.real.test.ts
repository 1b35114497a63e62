/** The real agent runtime through the relay: attachments, a restart, and its terminal. */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { type LiveSession, POLL, useLiveSession } from "../support/service/live-session.ts";
import type { Json } from "../support/service/process-service.ts";
import { sandboxesStartHere } from "../support/requirements.ts";
import { deepTest } from "../support/vitest/rings.ts";

const PROMPT = "run: echo asked at first";

let session: LiveSession;

describe.runIf(sandboxesStartHere)("a session of the real opencode", () => {
  const running = useLiveSession({ initial_prompt: PROMPT });
  beforeAll(() => {
    session = running();
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
