/** Turns of the Agent Client Protocol that opencode does not show, with an agent of the test's own. */
import type { SessionUpdate } from "@agentclientprotocol/sdk";
import * as Effect from "effect/Effect";
import { describe, expect, test } from "vitest";
import { GatewayCalls } from "../../../daemon/agent/gateway-calls.ts";
import { PassedCalls } from "../../../daemon/agent/passed-calls.ts";
import { TEXT_KEPT_MAX } from "../../../src/domain/conversation/conversation.ts";
import { POLL } from "../support/steered.ts";
import { agentItems, chunk, started, turnOf, WORKSPACE, type Script } from "../support/scripted-agent.ts";

const plan = (first: "pending" | "completed"): SessionUpdate => ({
  sessionUpdate: "plan",
  entries: [
    { content: "First", priority: "high", status: first },
    { content: "Second", priority: "low", status: "in_progress" },
  ],
});

/** A call of a sub-agent, beyond the protocol. */
const ofCall = (parentToolUseId: string) => ({ claudeCode: { parentToolUseId } });
const begun = (toolCallId: string) =>
  ({ sessionUpdate: "tool_call", toolCallId, title: toolCallId }) as const;

/** A piece of a command's output, beyond the protocol. */
const piece = (data: string) => ({ terminal_output_delta: { terminal_id: "1", data } });

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
    const contexts = agentItems(scripted).flatMap(({ context }) => context ?? []);
    expect(contexts).toEqual([
      { tokens: 1, size: 2 },
      { tokens: 1, size: 2 },
    ]);
  });

  test("keeps a text of 1,048,576 characters and says how many it dropped", async () => {
    const scripted = await started(async ({ tell }) => {
      await tell(chunk("x".repeat(TEXT_KEPT_MAX - 1)));
      await tell(chunk("yy"));
      await tell(chunk("z"));
      return {};
    });
    await turnOf(scripted, "m1");
    const [said] = agentItems(scripted);
    const text = said?.content[0]?.type === "text" ? said.content[0].text : "";
    expect(text.slice(TEXT_KEPT_MAX - 2)).toBe(
      "xy\n\n[The text was too long. 2 more characters were dropped.]",
    );
  });

  test("tells the agent's own title, one that comes between turns too", async () => {
    let { tell }: Pick<Parameters<Script["turn"]>[0], "tell"> = { tell: async () => undefined };
    const scripted = await started(async (stage) => {
      ({ tell } = stage);
      await tell({ sessionUpdate: "session_info_update", title: "Greet the world" });
      return {};
    });
    await turnOf(scripted, "m1");
    const title = () => scripted.feed.feed.turnNow.title;
    expect(title()).toBe("Greet the world");
    await tell({ sessionUpdate: "session_info_update", title: null });
    await tell({ sessionUpdate: "session_info_update", title: "Greet everybody" });
    await expect.poll(title).toBe("Greet everybody");
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

  test("shows what a sub-agent does below its call, as far as the agent tells it", async () => {
    const scripted = await started(async ({ tell, client }) => {
      await tell(begun("task"));
      await tell(chunk("My own."));
      await tell({ ...chunk("The child's."), _meta: ofCall("task") });
      // It works beside the agent.
      await tell(chunk(" Whole."));
      await tell({ ...begun("inner"), _meta: ofCall("task") });
      const toolCall = { toolCallId: "inner", title: "inner", kind: "execute" };
      const options = [{ optionId: "yes", name: "Yes", kind: "allow_once" }];
      await client.request("session/request_permission", { sessionId: "session-1", toolCall, options });
      await tell({ ...begun("lost"), _meta: ofCall("unknown") });
      return {};
    });
    await scripted.send("m1", "x");
    await expect.poll(() => scripted.feed.feed.turnNow.state, POLL).toBe("requires_action");
    const request = scripted.feed.feed.turnNow.waiting_for ?? "";
    await Effect.runPromise(scripted.steering.answer(request, { choice: "once", message: null }));
    await expect.poll(() => scripted.ends.length, POLL).toBe(1);
    const items = agentItems(scripted).toSorted((one, other) => (one.native_id < other.native_id ? -1 : 1));
    const task = items[0]?.native_id;
    expect(items[1]?.content).toEqual([{ type: "text", text: "My own. Whole." }]);
    expect(items.map(({ kind, parent_id: parent }) => [kind, parent])).toEqual([
      ["tool", null],
      ["message", null],
      ["message", task],
      ["tool", task],
      ["request", task],
      ["tool", null],
    ]);
  });

  test("shows a command's output and exit code that an agent tells beyond the protocol", async () => {
    const scripted = await started(async ({ tell }) => {
      const call = { toolCallId: "1", title: "make", kind: "execute" } as const;
      await tell({ sessionUpdate: "tool_call", ...call, status: "in_progress" });
      await tell({ sessionUpdate: "tool_call_update", toolCallId: "1", _meta: piece("one\n") });
      await tell({ sessionUpdate: "tool_call_update", toolCallId: "1", _meta: piece("two\n") });
      const exit = { terminal_exit: { terminal_id: "1", exit_code: 2, signal: null } };
      await tell({ sessionUpdate: "tool_call_update", toolCallId: "1", status: "failed", _meta: exit });
      await tell({ sessionUpdate: "tool_call", ...call, toolCallId: "2", status: "in_progress" });
      const all = { terminal_output: { terminal_id: "2", data: "all" }, terminal_exit: null };
      await tell({ sessionUpdate: "tool_call_update", toolCallId: "2", status: "completed", _meta: all });
      await tell({ sessionUpdate: "tool_call", ...call, toolCallId: "3", status: "in_progress" });
      const rawOutput = { output: "", metadata: { exit: 3 } };
      await tell({ sessionUpdate: "tool_call_update", toolCallId: "3", status: "completed", rawOutput });
      return {};
    });
    await turnOf(scripted, "m1");
    expect(agentItems(scripted)).toMatchObject([
      { status: "failed", tool: { output: "one\ntwo\n", exit_code: 2 } },
      { status: "completed", tool: { output: "all" } },
      { status: "completed", tool: { exit_code: 3 } },
    ]);
    expect(agentItems(scripted)[1]?.tool).not.toHaveProperty("exit_code");
  });

  test("has the tokens that an agent tells in a place of its own", async () => {
    const quotas: object[] = [
      { token_count: { input_tokens: 7, output_tokens: 3 } },
      { token_count: { inputTokens: 7 } },
    ];
    const scripted = await started(async ({ tell }) => {
      await tell(chunk("Hi"));
      return { _meta: { quota: quotas.shift() } };
    });
    await turnOf(scripted, "m1");
    expect(agentItems(scripted).at(-1)?.usage).toMatchObject({ input_tokens: 7, output_tokens: 3 });
    // Another agent has other fields in that place.
    await turnOf(scripted, "m2");
    expect(agentItems(scripted).at(-1)?.usage).toBeNull();
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
      () => Promise.resolve({ stopReason: "paused" }),
      () => Promise.resolve({ stopReason: undefined }),
    ];
    const scripted = await started(async ({ tell }) => {
      if (answers.length < 5) await tell(chunk("I be"));
      return (await answers.shift()?.()) ?? {};
    });
    for (const id of ["m1", "m2", "m3", "m4", "m5"])
      // oxlint-disable-next-line no-await-in-loop -- one turn after the other
      await turnOf(scripted, id);
    const errors = [
      { code: "unknown_model", message: expect.stringContaining("Model not found: a/b") as string },
      { code: "max_tokens" },
      { code: "model_refused" },
      { code: "turn_failed", message: expect.stringContaining('the unknown reason "paused"') as string },
      { code: "turn_failed", message: expect.stringContaining("no reason") as string },
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

const untilCancelled: Script["turn"] = ({ cancelled }) => cancelled.then(() => ({}));
const refused = (status: number, times: number) => ({ status, times, words: "No key.", again: "in 20 s" });
const failedAs = (code: string, words: string) => ({
  state: "failed",
  error: { code, message: expect.stringContaining(words) as string },
});

describe("a turn whose model's calls are seen", () => {
  const seen = {
    begin: () => undefined,
    refused: null,
    isCalling: false,
    pieces: 0,
    passed: new PassedCalls(),
  };

  test("has the tokens that the gateway named, if its agent tells none", async () => {
    const gateway = new GatewayCalls();
    const call = { output: 100, reasoning: 0, cache: { read: 400, write: 0 } };
    gateway.passed.passed({ ...call, input: 9000 });
    const scripted = await started(
      async ({ tell }) => {
        gateway.passed.passed({ ...call, input: 600 });
        gateway.passed.passed({ ...call, input: 1600 });
        await tell(chunk("Hi"));
        return {};
      },
      {},
      gateway,
    );
    await turnOf(scripted, "m1");
    expect(agentItems(scripted).at(-1)?.usage).toEqual({
      input_tokens: 3000,
      output_tokens: 200,
      cached_tokens: 800,
      cost_usd: 0,
    });
  });

  test("has failed if its agent tells the provider's refusal as a text, with its words or without usage", async () => {
    const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };
    const gateway = { ...seen, refused: refused(402, 1) };
    const answers = [
      { text: "unexpected status 402", usage: null },
      { text: "unexpected status 402", usage },
      { text: "unexpected status 402: No key.", usage },
    ];
    const scripted = await started(
      async ({ tell }) => {
        const { text = "", ...answer } = answers.shift() ?? {};
        await tell(chunk(text));
        return answer;
      },
      {},
      gateway,
    );
    await turnOf(scripted, "m1");
    await turnOf(scripted, "m2");
    await turnOf(scripted, "m3");
    expect(scripted.ends).toMatchObject([
      failedAs("model_out_of_credit", "No key."),
      // The refused call was a lesser one, for a title.
      { state: "completed" },
      // A former call of the turn was answered.
      failedAs("model_out_of_credit", "No key."),
    ]);
  });

  test("ends at once when its key is refused again, although the agent goes on", async () => {
    const scripted = await started(untilCancelled, {}, { ...seen, refused: refused(401, 2) });
    await turnOf(scripted, "m1");
    expect(scripted.ends).toMatchObject([failedAs("model_unauthorized", "No key.")]);
  });

  test("is left to the agent after one refusal, or after one that may pass", async () => {
    const gateway = { ...seen, refused: refused(401, 1) };
    const scripted = await started(
      async () => {
        // Longer than between two looks.
        await new Promise((resolve) => setTimeout(resolve, 1500));
        throw new Error("words of the agent");
      },
      {},
      gateway,
    );
    await turnOf(scripted, "m1");
    gateway.refused = refused(429, 9);
    await turnOf(scripted, "m2");
    expect(scripted.ends).toMatchObject([
      failedAs("model_unauthorized", "words of the agent"),
      failedAs("model_rate_limited", "Try again in 20 s. It said: words of the agent"),
    ]);
  });

  test("is stopped if a call brings no byte for long, and not while bytes come", async () => {
    const gateway = { ...seen, isCalling: true };
    const coming = setInterval(() => (gateway.pieces += 1), 100);
    const scripted = await started(
      async ({ cancelled }) => {
        const silence = new Promise((resolve) => setTimeout(resolve, 2500));
        await (scripted.ends.length === 0 ? silence : cancelled);
        return {};
      },
      { modelSilenceMs: 1100 },
      gateway,
    );
    await turnOf(scripted, "m1");
    clearInterval(coming);
    await turnOf(scripted, "m2");
    expect(scripted.ends).toMatchObject([
      { state: "completed" },
      { state: "failed", error: { code: "model_unavailable" } },
    ]);
  });
});
