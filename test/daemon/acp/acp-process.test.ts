/** The processes of an agent of the Agent Client Protocol: how another one goes on, and how one that hears nothing is given up. */
import * as Effect from "effect/Effect";
import { describe, expect, test, vi } from "vitest";
import { GatewayCalls } from "../../../daemon/agent/gateway-calls.ts";
import { POLL } from "../support/steered.ts";
import { agentItems, chunk, ScriptedAgent, started, turnOf, type Stage } from "../support/scripted-agent.ts";

const SAY = async ({ tell }: Stage) => {
  await tell(chunk("Hello."));
  return {};
};

/** An agent that hears nothing. */
const deaf = (limits = {}, gateway = new GatewayCalls()) =>
  started(
    async ({ tell }) => {
      await tell(chunk("On and on."));
      return new Promise(() => undefined);
    },
    { stopMs: 0, ...limits },
    gateway,
  );
const lost = ({ adapter }: ScriptedAgent) => Effect.runPromise(adapter.lost);

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

  test("that does not stop its turn is given up, and the turn says so", async () => {
    const gateway = new GatewayCalls();
    const scripted = await deaf({}, gateway);
    await scripted.send("m1", "x");
    gateway.passed.passed({ input: 600, output: 100, reasoning: 0, cache: { read: 400, write: 0 } });
    await expect.poll(() => agentItems(scripted).length, POLL).toBe(1);
    await Effect.runPromise(scripted.steering.interrupt("s"));
    await lost(scripted);
    expect(scripted.ends).toMatchObject([
      { state: "interrupted", isOurs: true, error: { code: "agent_not_stopping" } },
    ]);
    // The gateway named the tokens of its call.
    const usage = { input_tokens: 1000, output_tokens: 100, cached_tokens: 400 };
    expect(agentItems(scripted)).toMatchObject([{ status: "interrupted", error: null, usage }]);
    // It takes no message, and another stop writes nothing into its closed input.
    expect(await scripted.send("m2", "x")).toEqual({ outcome: "busy" });
    await Effect.runPromise(scripted.steering.interrupt("s"));
    await scripted.end();
    await scripted.start();
    expect(await scripted.send("m2", "x")).toEqual({ outcome: "accepted" });
    expect(scripted.ends).toHaveLength(1);
  });

  test("that does not stop a turn that is too long ends it for that reason", async () => {
    const scripted = await deaf({ turnMs: 0 });
    await scripted.send("m1", "x");
    await lost(scripted);
    expect(scripted.ends).toMatchObject([
      { state: "failed", isOurs: true, error: { code: "turn_too_long" } },
    ]);
  });

  test("whose input has closed is given up when it should hear something", async () => {
    const scripted = await deaf({ stopMs: 3_600_000 });
    await scripted.send("m1", "x");
    await expect.poll(() => agentItems(scripted).length, POLL).toBe(1);
    scripted.closeInput();
    await Effect.runPromise(Effect.ignore(scripted.steering.interrupt("s")));
    await lost(scripted);
    expect(scripted.ends).toMatchObject([{ error: { code: "agent_not_stopping" } }]);
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
