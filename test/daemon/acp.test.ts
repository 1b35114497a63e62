/** Cases of the Agent Client Protocol that opencode does not show, with an agent of the test's own. */
import type { SessionUpdate } from "@agentclientprotocol/sdk";
import * as Effect from "effect/Effect";
import { describe, expect, test, vi } from "vitest";
import { POLL } from "./support/steered.ts";
import { ScriptedAgent, WORKSPACE, type Script, type Stage } from "./support/scripted-agent.ts";

const chunk = (text: string, messageId?: string): SessionUpdate => ({
  sessionUpdate: "agent_message_chunk",
  content: { type: "text", text },
  ...(messageId !== undefined && { messageId }),
});

const started = async (script: Script | Script["turn"], limits = {}): Promise<ScriptedAgent> => {
  const scripted = new ScriptedAgent(typeof script === "function" ? { turn: script } : script, limits);
  await scripted.start();
  return scripted;
};

/** Sends a message and waits for its turn's end. */
const turnOf = async (scripted: ScriptedAgent, id: string): Promise<void> => {
  const before = scripted.ends.length;
  expect(await scripted.send(id, `text of ${id}`)).toEqual({ outcome: "accepted" });
  await expect.poll(() => scripted.ends.length, POLL).toBe(before + 1);
};

const agentItems = ({ items }: ScriptedAgent) => items.filter(({ role }) => role === "agent");

const plan = (first: "pending" | "completed"): SessionUpdate => ({
  sessionUpdate: "plan",
  entries: [
    { content: "First", priority: "high", status: first },
    { content: "Second", priority: "low", status: "in_progress" },
  ],
});

const ask = async ({ client }: Stage, kinds: readonly string[]) => {
  const { outcome } = await client.request<{ outcome: { outcome: string; optionId?: string } }, object>(
    "session/request_permission",
    {
      sessionId: "session-1",
      toolCall: { toolCallId: "1", title: "rm -r", kind: "execute", locations: [{ path: "/workspace/a" }] },
      options: kinds.map((kind) => ({ optionId: `id-${kind}`, name: kind, kind })),
    },
  );
  return outcome;
};

const selected = (kind: string) => ({ outcome: "selected", optionId: `id-${kind}` });
const ALL = ["allow_once", "allow_always", "reject_once", "reject_always"];

const SAY = async ({ tell }: Stage) => {
  await tell(chunk("Hello."));
  return {};
};

describe("an agent's turn", () => {
  test("shows a plan that ticks off, thoughts and text without ids, and its usage once", async () => {
    let cost = 0;
    const scripted = await started(async ({ tell }) => {
      await tell({ sessionUpdate: "agent_thought_chunk", content: { type: "text", text: "Hm" } });
      await tell(plan("pending"));
      await tell(chunk("I be"));
      await tell(chunk("gin."));
      await tell(plan("completed"));
      cost += 0.25;
      await tell({
        sessionUpdate: "usage_update",
        used: 1,
        size: 2,
        cost: { amount: cost, currency: "USD" },
      });
      return { usage: { inputTokens: 10, outputTokens: 5, totalTokens: 17, cachedReadTokens: 2 } };
    });
    await turnOf(scripted, "m1");
    await turnOf(scripted, "m2");
    const items = agentItems(scripted).slice(0, 3);
    expect(items.toSorted((a, b) => (a.native_id < b.native_id ? -1 : 1))).toMatchObject([
      { kind: "thought", status: "completed", content: [{ text: "Hm" }], usage: null },
      {
        kind: "plan",
        plan: [
          { text: "First", status: "completed" },
          { text: "Second", status: "running" },
        ],
      },
      { kind: "message", status: "completed", content: [{ text: "I begin." }] },
    ]);
    const usages = agentItems(scripted).flatMap(({ usage }) => usage ?? []);
    const once = { input_tokens: 12, output_tokens: 5, cached_tokens: 2, cost_usd: 0.25 };
    expect(usages).toEqual([once, once]);
  });

  test("has its own tool calls, although their ids come again", async () => {
    const scripted = await started(async ({ tell }) => {
      const call = { toolCallId: "call_1", title: "read", kind: "read" } as const;
      await tell({ sessionUpdate: "tool_call", ...call, status: "pending" });
      await tell({
        sessionUpdate: "tool_call_update",
        toolCallId: "call_1",
        title: "Reading a.txt",
        status: "completed",
        rawOutput: { lines: 3 },
      });
      // It comes too late, and nothing ends it.
      await tell({ sessionUpdate: "tool_call_update", toolCallId: "call_1", status: "in_progress" });
      await tell({ sessionUpdate: "tool_call", toolCallId: "open", title: "sleep", kind: "execute" });
      return {};
    });
    await turnOf(scripted, "m1");
    await turnOf(scripted, "m2");
    const read = {
      kind: "tool",
      status: "completed",
      tool: { name: "read", kind: "read", title: "Reading a.txt", output: '{"lines":3}' },
    };
    const open = { kind: "tool", status: "completed", tool: { name: "sleep" } };
    expect(agentItems(scripted)).toMatchObject([read, open, read, open]);
  });

  test("shows diffs with paths below the workspace, and new files", async () => {
    const scripted = await started(async ({ tell }) => {
      await tell({
        sessionUpdate: "tool_call",
        toolCallId: "1",
        title: "Edit",
        kind: "edit",
        status: "completed",
        content: [
          { type: "diff", path: `${WORKSPACE}/a.txt`, oldText: "a\n", newText: "b\n" },
          { type: "diff", path: "/elsewhere/b.txt", oldText: null, newText: "new\n" },
        ],
      });
      await tell({
        sessionUpdate: "tool_call",
        toolCallId: "2",
        title: "Remove",
        kind: "delete",
        status: "completed",
        locations: [{ path: `${WORKSPACE}/c.txt` }],
      });
      return {};
    });
    await turnOf(scripted, "m1");
    expect(agentItems(scripted).map(({ tool }) => tool?.changes)).toEqual([
      [
        { path: "a.txt", operation: "update", patch: "--- a.txt\n+++ a.txt\n@@ -1,1 +1,1 @@\n-a\n+b\n" },
        {
          path: "/elsewhere/b.txt",
          operation: "add",
          patch: "--- /dev/null\n+++ /elsewhere/b.txt\n@@ -0,0 +1,1 @@\n+new\n",
        },
      ],
      [{ path: "c.txt", operation: "delete", patch: null }],
    ]);
  });

  test("fails in the agent's own words, and says why it was cut off", async () => {
    const answers: (() => Promise<object>)[] = [
      () => Promise.reject(new Error("Model not found: a/b")),
      () => Promise.resolve({ stopReason: "max_tokens" }),
      () => Promise.resolve({ stopReason: "refusal" }),
    ];
    const scripted = await started(async ({ tell }) => {
      if (answers.length < 3) await tell(chunk("I be"));
      return (await answers.shift()?.()) ?? {};
    });
    for (const id of ["m1", "m2", "m3"])
      // oxlint-disable-next-line no-await-in-loop -- one turn after the other
      await turnOf(scripted, id);
    const errors = [
      { code: "unknown_model", message: expect.stringContaining("Model not found: a/b") as string },
      { code: "max_tokens" },
      { code: "model_refused" },
    ];
    expect(scripted.ends).toMatchObject(errors.map((error) => ({ state: "failed", error })));
    expect(agentItems(scripted)).toMatchObject(
      errors.map((error) => ({ kind: "message", status: "failed", error })),
    );
  });

  test("is stopped if the agent tells nothing for long, but not while a tool runs or a person is asked", async () => {
    const scripted = await started(
      async ({ tell, cancelled, client }) => {
        if (scripted.calls.length === 2) {
          await tell({ sessionUpdate: "tool_call", toolCallId: "1", title: "sleep", kind: "execute" });
          await new Promise((resolve) => setTimeout(resolve, 1500));
          await client.request("session/request_permission", {
            sessionId: "session-1",
            toolCall: { toolCallId: "2", title: "rm" },
            options: [{ optionId: "yes", name: "Yes", kind: "allow_once" }],
          });
          return {};
        }
        await cancelled;
        return {};
      },
      { silentMs: 50 },
    );
    expect(await scripted.send("m1", "x")).toEqual({ outcome: "accepted" });
    await expect.poll(() => scripted.feed.feed.turnNow.state, POLL).toBe("requires_action");
    expect(scripted.ends).toEqual([]);
    const request = scripted.feed.feed.turnNow.waiting_for ?? "";
    await Effect.runPromise(scripted.steering.answer(request, { choice: "once", message: null }));
    await expect.poll(() => scripted.ends.length, POLL).toBe(1);
    expect(scripted.ends[0]).toMatchObject({ state: "completed" });
    await turnOf(scripted, "m2");
    expect(scripted.ends[1]).toMatchObject({ state: "failed", error: { code: "model_unavailable" } });
  });

  test("is stopped after the maximum number of model calls, also if the agent tells no ids", async () => {
    const scripted = await started(
      async ({ tell, cancelled }) => {
        const state = { isOver: false };
        void cancelled.then(() => (state.isOver = true));
        for (let count = 0; !state.isOver; count += 1) {
          const toolCallId = String(count);
          // oxlint-disable no-await-in-loop -- one call after the other
          await tell({ sessionUpdate: "tool_call", toolCallId, title: "read", kind: "read" });
          await tell({ sessionUpdate: "tool_call_update", toolCallId, status: "completed" });
          await new Promise(setImmediate);
        }
        return {};
      },
      { modelCalls: 5 },
    );
    await turnOf(scripted, "m1");
    expect(scripted.ends).toMatchObject([{ state: "failed", error: { code: "too_many_model_calls" } }]);
    expect(agentItems(scripted).length).toBeLessThan(50);
  });
});

describe("an agent's request", () => {
  const outcomes: unknown[] = [];
  const answered = async (kinds: readonly string[], answer: object) => {
    const scripted = await started(async (stage) => {
      outcomes.push(await ask(stage, kinds));
      return {};
    });
    await scripted.send("m1", "x");
    await expect.poll(() => scripted.feed.feed.turnNow.state, POLL).toBe("requires_action");
    const request = scripted.feed.feed.turnNow.waiting_for ?? "";
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each case has an answer
    const given = await Effect.runPromise(scripted.steering.answer(request, answer as never));
    if (!given) return { given, outcome: null, item: null };
    await expect.poll(() => scripted.ends.length, POLL).toBe(1);
    const item = scripted.items.find(({ kind }) => kind === "request");
    return { given, outcome: outcomes.at(-1), item };
  };
  test.each([
    [ALL, { choice: "once", message: null }, selected("allow_once")],
    [ALL, { choice: "always", message: null }, selected("allow_always")],
    [["allow_once"], { choice: "always", message: null }, selected("allow_once")],
    [ALL, { choice: "reject", message: "why" }, selected("reject_once")],
    [["reject_always"], { choice: "reject", message: null }, selected("reject_always")],
    [["allow_once"], { choice: "reject", message: null }, { outcome: "cancelled" }],
    [ALL, { declined: "unattended" }, selected("reject_once")],
  ])("with the options %j gets for the answer %j the outcome %j", async (kinds, answer, outcome) => {
    const { item, ...rest } = await answered(kinds, answer);
    expect(rest).toEqual({ given: true, outcome });
    expect(item).toMatchObject({
      status: "completed",
      request: { kind: "permission", title: "execute", patterns: ["rm -r", "a"] },
    });
  });

  test("is never permitted for longer than the person said", async () => {
    const { given } = await answered(["allow_always"], { choice: "once", message: null });
    expect(given).toBe(false);
    expect((await answered(ALL, { answers: [["Blue"]] })).given).toBe(false);
  });
});

describe("an agent's process", () => {
  test("gets the session of the one before, whose history is not shown again", async () => {
    const scripted = await started({
      capabilities: { loadSession: true },
      turn: SAY,
      onCall: async (_method, _params, client) => {
        const sessionId = "session-1";
        await client.notify("session/update", { sessionId, update: chunk("An old answer.") });
        return {};
      },
    });
    await turnOf(scripted, "m1");
    await scripted.end();
    await expect(scripted.send("m2", "x")).rejects.toThrow("no open session");
    await scripted.start();
    await turnOf(scripted, "m2");
    expect(scripted.calls).toEqual(["session/new", "session/prompt", "session/load", "session/prompt"]);
    expect(JSON.stringify(scripted.items)).not.toContain("An old answer.");
    expect(scripted.items.filter(({ kind }) => kind === "note")).toEqual([]);
    expect(await scripted.send("m2", "x")).toEqual({ outcome: "accepted" });
    expect(scripted.calls).toHaveLength(4);
  });

  test("that cannot open it gets a new one, and people see that the agent has forgotten", async () => {
    const scripted = await started({
      capabilities: { sessionCapabilities: { resume: {} } },
      turn: SAY,
      onCall: () => Promise.reject(new Error("no such session")),
    });
    await turnOf(scripted, "m1");
    await scripted.end();
    await scripted.start();
    await turnOf(scripted, "m2");
    expect(scripted.calls.slice(2)).toEqual(["session/resume", "session/new", "session/prompt"]);
    expect(scripted.items.filter(({ kind }) => kind === "note")).toMatchObject([
      { content: [{ text: expect.stringContaining("does not know what was said before") as string }] },
    ]);
  });

  test("may print other lines, and is silent after its end", async () => {
    // The scripted agent's own package prints what it cannot read, too.
    const printed = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const scripted = new ScriptedAgent({ turn: ({ cancelled }) => cancelled.then(() => ({})) });
    await scripted.start('Warning: this is no JSON\n{"jsonrpc":"2.0","id":"a secret","result":{}}\n[]\n1\n');
    await scripted.send("m1", "x");
    await scripted.end();
    expect(scripted.ends).toEqual([]);
    const { adapter } = scripted;
    await expect(Effect.runPromise(adapter.probe)).rejects.toThrow("has not introduced itself");
    await expect(scripted.offers()).rejects.toThrow("no open session");
    // It would be in the log without redaction.
    expect(JSON.stringify(printed.mock.calls)).not.toContain("a secret");
    printed.mockRestore();
  });

  test("that may not open a session says why", async () => {
    const scripted = new ScriptedAgent({ turn: SAY, refusal: "Log in first." });
    await expect(scripted.start()).rejects.toThrow("the agent refused to open a session: Log in first.");
    await expect(scripted.send("m1", "x")).rejects.toThrow("no open session");
  });

  test("may name its models and modes as older agents do", async () => {
    const scripted = await started({
      turn: SAY,
      offers: {
        models: {
          currentModelId: "a/one",
          availableModels: [
            { modelId: "a/one", name: "One" },
            { modelId: "a/two", name: "Two" },
          ],
        },
        modes: {
          currentModeId: "ask",
          availableModes: [
            { id: "ask", name: "Ask" },
            { id: "code", name: "Code", description: "Writes" },
          ],
        },
      },
    });
    expect(await scripted.offers()).toEqual({
      models: [
        { id: "a/one", name: "One" },
        { id: "a/two", name: "Two" },
      ],
      agents: [
        { name: "ask", description: null },
        { name: "code", description: "Writes" },
      ],
      default_model: "a/one",
    });
    expect(await scripted.send("m0", "x", { agent: "none" })).toMatchObject({
      outcome: "refused",
      error: { code: "unknown_agent" },
    });
    await scripted.send("m1", "x", { agent: "code", model: "a/two" });
    await expect.poll(() => scripted.ends.length, POLL).toBe(1);
    expect(scripted.calls.slice(1)).toEqual(["session/set_mode", "session/set_model", "session/prompt"]);
    expect(agentItems(scripted)).toMatchObject([{ model: "a/two" }]);
    expect((await scripted.offers()).default_model).toBe("a/two");
  });
});
