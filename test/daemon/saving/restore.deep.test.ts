/** A conversation in a fresh sandbox: the real opencode takes over a history, or the agent gets a summary. */
import * as Effect from "effect/Effect";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { OpencodeApi } from "../../../daemon/adapters/opencode/api.ts";
import { opencodeAdapter } from "../../../daemon/adapters/opencode/opencode.ts";
import { restoreHistory } from "../../../daemon/adapters/opencode/restore.ts";
import type { History, PastItem } from "../../../src/domain/conversation/history.ts";
import type { Recap } from "../../../src/domain/sandbox/launch.ts";
import { freePort } from "../../support/machine/free-port.ts";
import { textOf, type Message } from "../support/held-model.ts";
import { pastItem } from "../support/past-items.ts";
import { RuntimeProxy } from "../support/runtime-proxy.ts";
import { hasOpencode, OPENCODE_SERVE, POLL, Steered } from "../support/steered.ts";

const PROMPT = { PLATFORM_INITIAL_PROMPT: "Fix the parser.", PLATFORM_BOOTSTRAP_AGENT_SESSION: "1" };

const asked = (text: string): PastItem => pastItem({ role: "user", text, model: null });
const said = (text: string, fields: Partial<PastItem> = {}): PastItem => pastItem({ text, ...fields });
const used = (command: string, output: string, fields: Partial<PastItem> = {}): PastItem =>
  pastItem({ kind: "tool", tool: { name: "bash", title: command, input: { command }, output }, ...fields });

const HISTORY: History = {
  summary: null,
  items: [
    asked("Fix the parser."),
    said("I look."),
    used("cat a.txt", "the first result"),
    said("It is fixed."),
    asked("And the docs?"),
    used("cat docs", "half a res", { status: "interrupted", completed_at: null }),
    said("I beg", { status: "interrupted", completed_at: null }),
  ],
};
const recapWith = (history: History): Recap => ({
  text: "Ada: Fix the parser.",
  agent: null,
  model: "held/two",
  history,
});

/** The messages that the model got, without the agent's instructions. */
const outline = (messages: readonly Message[] = []) =>
  messages
    .filter(({ role }) => role !== "system")
    .map((message) =>
      [message.role, textOf(message)].concat(
        (message.tool_calls ?? []).map(({ function: { name, arguments: input } }) => `${name} ${input}`),
      ),
    );

const titlesIn = async ({ daemon }: Steered) =>
  (JSON.parse((await daemon.ask("/session")).body) as { title: string }[]).map(({ title }) => title);

describe.skipIf(!hasOpencode)("the real opencode in a fresh sandbox", () => {
  let steered: Steered;
  let proxy: RuntimeProxy;
  let port: number;
  beforeAll(async () => {
    steered = await Steered.start({
      environment: PROMPT,
      recap: recapWith(HISTORY),
      prepare: ({ state }) => (state.bootstrap = "done"),
    });
    proxy = new RuntimeProxy(steered.daemon.runtimePort);
    port = await proxy.start();
  });
  afterEach(() => {
    proxy.meddle = (body) => body;
  });
  afterAll(async () => {
    proxy?.stop();
    await steered?.stop();
  });

  test("has the whole conversation with its tool calls and results, and no item appears twice [D06]", async () => {
    expect(await steered.deliver("m1", "What did I ask first?")).toBe(1);
    await steered.ended(1);
    expect(steered.model.calls).toHaveLength(1);
    const [call] = steered.model.calls;
    expect(call?.model).toBe("two");
    expect(outline(call?.messages)).toEqual([
      ["user", "Fix the parser."],
      ["assistant", "I look.", 'bash {"command":"cat a.txt"}'],
      ["tool", "the first result"],
      ["assistant", "It is fixed."],
      ["user", "And the docs?"],
      ["assistant", "", 'bash {"command":"cat docs"}'],
      ["tool", "half a res"],
      ["assistant", "I beg"],
      ["user", expect.stringContaining("continues in a new sandbox")],
      ["user", "What did I ask first?"],
    ]);
    expect(await steered.deliver("m2", "And then?")).toBe(2);
    await steered.ended(2);
    const [note, ...others] = steered.items;
    expect(note).toMatchObject({ kind: "note", role: null, status: "completed" });
    expect(JSON.stringify(note?.content)).toContain("has the whole conversation so far");
    expect(others.map(({ role, message_id: id }) => [role, id])).toEqual([
      ["user", "m1"],
      ["agent", null],
      ["user", "m2"],
      ["agent", null],
    ]);
    expect(await titlesIn(steered)).toEqual([steered.daemon.sessionId]);
  });

  test("removes a history that it refuses, changes or does not take in time", async () => {
    const api = new OpencodeApi(`http://127.0.0.1:${port}`);
    const restore = (history: History, withinMs?: number) =>
      Effect.runPromise(
        restoreHistory(api, { title: "another", history, agent: "build", model: "held/one" }, withinMs),
      );
    const many = { ...HISTORY, items: Array.from({ length: 60 }, (_, n) => asked(`number ${n}`)) };
    proxy.meddle = (body) => (body.includes("number 59") ? null : body);
    expect(await restore(many)).toMatchObject({ outcome: "failed", why: "refused" });
    expect(proxy.replays).toBeGreaterThan(1);
    proxy.meddle = (body) => body.replaceAll("And the docs?", "And the dogs?");
    expect(await restore(HISTORY)).toMatchObject({
      outcome: "failed",
      why: "different",
      message: expect.stringContaining("another one as number 4") as string,
    });
    // opencode itself refuses this.
    proxy.meddle = (body) => body.replaceAll('"role":"assistant"', '"role":"stranger"');
    expect(await restore(HISTORY)).toMatchObject({ outcome: "failed", why: "refused" });
    proxy.meddle = () => "never";
    expect(await restore(HISTORY, 500)).toMatchObject({ outcome: "failed", why: "late" });
    expect(await titlesIn(steered)).toEqual([steered.daemon.sessionId]);
    proxy.meddle = (body) => body;
    expect(await restore(HISTORY)).toEqual({ outcome: "restored" });
    const before = proxy.replays;
    expect(await restore(HISTORY)).toEqual({ outcome: "restored" });
    expect(proxy.replays).toBe(before);
    expect((await titlesIn(steered)).toSorted()).toEqual([steered.daemon.sessionId, "another"].toSorted());
  });

  test("takes over 200 turns in time", async () => {
    const items = Array.from({ length: 200 }, (_, n) => [
      asked(`Question ${n}`),
      used(`echo ${n}`, "x".repeat(2000), {
        usage: { input_tokens: 9, output_tokens: 2, cached_tokens: 4, cost_usd: 0 },
      }),
      said(`Answer ${n}`),
    ]).flat();
    const { restore } = opencodeAdapter(steered.daemon.runtimePort);
    const session = { sessionId: "two hundred", agentName: "default", model: "held/one" };
    if (restore === null) throw new Error("opencode takes over a history");
    expect(await Effect.runPromise(restore(session, { summary: null, items }))).toEqual({
      outcome: "restored",
    });
  });
});

describe.skipIf(!hasOpencode)("an agent whose runtime refuses the history", () => {
  test("gets the summary, and people see why [D06]", async () => {
    const port = await freePort();
    const proxy = new RuntimeProxy(port);
    proxy.meddle = () => null;
    const steered = await Steered.start(
      {
        environment: PROMPT,
        runtimePort: await proxy.start(),
        recap: recapWith(HISTORY),
        prepare: ({ state }) => (state.bootstrap = "done"),
      },
      { ...OPENCODE_SERVE, command: () => OPENCODE_SERVE.command(port) },
    );
    try {
      expect(await steered.deliver("m1", "What did I ask first?")).toBe(1);
      await steered.ended(1);
      expect(outline(steered.model.calls[0]?.messages)).toEqual([
        ["user", "Ada: Fix the parser."],
        ["user", "What did I ask first?"],
      ]);
      await expect.poll(() => steered.items.length, POLL).toBe(3);
      const notes = steered.items.filter(({ kind }) => kind === "note");
      expect(notes).toHaveLength(1);
      expect(JSON.stringify(notes[0]?.content)).toMatch(
        /has a summary of the conversation so far, not the conversation itself, because its runtime did not take/,
      );
      expect(await titlesIn(steered)).toEqual([steered.daemon.sessionId]);
    } finally {
      await steered.stop();
      proxy.stop();
    }
  });
});
