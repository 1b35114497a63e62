/** What a table of the manifest changes for an agent that speaks the Agent Client Protocol. */
import * as Effect from "effect/Effect";
import { describe, expect, test } from "vitest";
import { POLL } from "../support/steered.ts";
import { chunk, started, turnOf, type Script, type ScriptedAgent } from "../support/scripted-agent.ts";

const MODES = {
  modes: {
    currentModeId: "auto",
    availableModes: [{ id: "auto" }, { id: "plan" }, { id: "reviewer" }],
  },
};

/** An agent that says how many blocks a prompt has, and its first one. */
const COUNTS: Script["turn"] = async ({ tell, prompt }) => {
  const [first] = prompt;
  await tell(chunk(`${prompt.length}: ${first?.type === "text" ? first.text : ""}`));
  return {};
};

/** The same, of an agent that has a command. */
const COMMANDED: Script["turn"] = async (stage) => {
  const availableCommands = [{ name: "greet", description: "Greets." }];
  await stage.tell({ sessionUpdate: "available_commands_update", availableCommands });
  return COUNTS(stage);
};

const table = (isOptional: boolean, instructions: string | null = null) => ({
  provider: null,
  isOptional,
  isOwnFile: true,
  instructions: () => instructions,
});

const saidBy = ({ items }: ScriptedAgent) =>
  items.flatMap(({ role, content }) => (role === "agent" ? content : [])).map((part) => JSON.stringify(part));

const deliver = (scripted: ScriptedAgent) =>
  Effect.runPromise(scripted.adapter.deliverPrompt({ ...scripted.session, text: "Begin." }));

describe("instructions", () => {
  test("come with the first message, and are not shown as a person's words", async () => {
    const scripted = await started({ turn: COUNTS, session: { table: table(true, "Be brief.") } });
    await turnOf(scripted, "m1");
    await turnOf(scripted, "m2");
    expect(saidBy(scripted).join()).toMatch(/2: Be brief\..*1: text of m2/);
    const own = scripted.items.filter(({ role }) => role === "user");
    expect(JSON.stringify(own)).not.toContain("Be brief.");
  });

  test("wait for the message after a command, which the agent reads only at the beginning", async () => {
    const scripted = await started({ turn: COMMANDED, session: { table: table(true, "Be brief.") } });
    const commands = async () => (await scripted.offers()).commands ?? [];
    await turnOf(scripted, "m1");
    await turnOf(scripted, "m2");
    expect(await commands()).toEqual([{ name: "greet", description: "Greets." }]);
    await scripted.end();
    await scripted.start();
    await scripted.send("m3", "/greet heron");
    await expect.poll(() => scripted.ends.length, POLL).toBe(3);
    await turnOf(scripted, "m4");
    expect(saidBy(scripted).join()).toMatch(/2: Be brief\..*1: text of m2.*1: \/greet heron.*2: Be brief\./);
  });

  test("come again if the next process forgot the session, and not if it remembers", async () => {
    const forgets = await started({ turn: COUNTS, session: { table: table(true, "Be brief.") } });
    const remembers = await started({
      turn: COUNTS,
      session: { table: table(true, "Be brief.") },
      capabilities: { loadSession: true },
    });
    for (const scripted of [forgets, remembers]) {
      await turnOf(scripted, "m1");
      await scripted.end();
      await scripted.start();
      await turnOf(scripted, "m2");
    }
    expect(saidBy(forgets).join()).toMatch(/2: .*2: /);
    expect(saidBy(remembers).join()).toMatch(/2: .*1: /);
  });

  test("are left to an agent that has a mode of the agent's own name", async () => {
    const session = { agentName: "reviewer", table: table(true, "Be brief.") };
    const scripted = await started({ turn: COUNTS, offers: MODES, session });
    await turnOf(scripted, "m1");
    expect(saidBy(scripted).join()).toContain("1: text of m1");
    expect(scripted.calls).toContain("session/set_mode");
  });

  test("of another file come to that agent too", async () => {
    const session = { agentName: "reviewer", table: { ...table(true, "Be brief."), isOwnFile: false } };
    const scripted = await started({ turn: COUNTS, offers: MODES, session });
    await turnOf(scripted, "m1");
    expect(saidBy(scripted).join()).toContain("2: Be brief.");
  });
});

describe("a mode", () => {
  test("of a table is chosen before the prompt", async () => {
    const session = { agentName: "plan", table: table(false) };
    const scripted = await started({ turn: COUNTS, offers: MODES, session });
    expect(await deliver(scripted)).toBe("accepted");
    await expect.poll(() => scripted.ends.length, POLL).toBe(1);
    expect(scripted.calls.slice(1)).toEqual(["session/set_mode", "session/prompt"]);
  });

  test("that the agent does not have is refused by name", async () => {
    const session = { agentName: "careful", table: table(false) };
    const scripted = await started({ turn: COUNTS, offers: MODES, session });
    expect(await deliver(scripted)).toEqual({ refused: expect.stringContaining('"careful"') as string });
  });

  test("is not needed by an agent whose table names none", async () => {
    const session = { agentName: "ours", table: table(true) };
    const scripted = await started({ turn: COUNTS, offers: MODES, session });
    expect(await deliver(scripted)).toBe("accepted");
    await expect.poll(() => scripted.ends.length, POLL).toBe(1);
    expect(scripted.calls.slice(1)).toEqual(["session/prompt"]);
  });
});

describe("a model", () => {
  const offers = {
    models: { currentModelId: "hidden", availableModels: [{ modelId: "opus", name: "Opus" }] },
  };

  test("that was set at the start need not be listed, and another one must", async () => {
    const hidden = await started({ turn: COUNTS, offers, session: { model: "hidden" } });
    await turnOf(hidden, "m1");
    const unknown = await started({ turn: COUNTS, offers, session: { model: "sonnet" } });
    expect(await unknown.send("m1", "x")).toMatchObject({
      outcome: "refused",
      error: { code: "unknown_model", message: expect.stringContaining("Choose one of: opus.") as string },
    });
  });
});

const option = (id: string, category: string, values: readonly string[]) => ({
  id,
  category,
  name: id,
  type: "select",
  currentValue: values[0],
  options: values.map((value) => ({ value, name: value })),
});

const notes = ({ items }: ScriptedAgent) => JSON.stringify(items.filter(({ kind }) => kind === "note"));

describe("an effort", () => {
  const models = option("model", "model", ["large", "small"]);
  const effortsNow = (current: string) => ({
    ...option("effort", "thought_level", ["medium", "high"]),
    currentValue: current,
  });
  /** An agent whose large model takes efforts. @returns it, and the efforts that it was told */
  const thinking = async (session: Script["session"] = {}) => {
    const chosen: unknown[] = [];
    const scripted = await started({
      turn: COUNTS,
      offers: { configOptions: [models, effortsNow("medium")] },
      session,
      onCall: (_, params) => {
        const { configId, value } = params as { configId: string; value: string };
        if (configId === "effort") chosen.push(value);
        const efforts = effortsNow(String(chosen.at(-1) ?? "medium"));
        return Promise.resolve({
          configOptions: configId === "model" && value === "small" ? [models] : [models, efforts],
        });
      },
    });
    return { scripted, chosen };
  };
  test("is chosen for a message and stays, after the model that has it", async () => {
    const { scripted, chosen } = await thinking();
    expect(await scripted.send("m1", "x", { model: "large", effort: "high" })).toEqual({
      outcome: "accepted",
    });
    await expect.poll(() => scripted.ends.length, POLL).toBe(1);
    await turnOf(scripted, "m2");
    expect(chosen).toEqual(["high"]);
    expect(await scripted.offers()).toMatchObject({
      models: [{ id: "large", efforts: ["medium", "high"] }, { id: "small" }],
      default_effort: "high",
    });
  });

  test("that the model does not take is refused with those that it takes", async () => {
    const { scripted } = await thinking();
    const error = {
      code: "unknown_effort",
      message: expect.stringContaining("one of: medium, high.") as string,
    };
    expect(await scripted.send("m1", "x", { effort: "max" })).toEqual({ outcome: "refused", error });
    const none = {
      code: "unknown_effort",
      message: expect.stringContaining("no choice of efforts") as string,
    };
    expect(await scripted.send("m2", "x", { model: "small", effort: "high" })).toEqual({
      outcome: "refused",
      error: none,
    });
  });

  test("of a table is chosen with the first message, and a note says if the model does not take it", async () => {
    const takes = await thinking({ effort: "high", table: table(true) });
    await turnOf(takes.scripted, "m1");
    expect(takes.chosen).toEqual(["high"]);
    const other = await thinking({ effort: "max", table: table(true) });
    await turnOf(other.scripted, "m1");
    await turnOf(other.scripted, "m2");
    expect(other.chosen).toEqual([]);
    expect(notes(other.scripted).match(/does not take the effort/g)).toHaveLength(1);
  });

  test("is left out by a later model that takes none", async () => {
    const { scripted, chosen } = await thinking();
    await scripted.send("m1", "x", { effort: "high" });
    await expect.poll(() => scripted.ends.length, POLL).toBe(1);
    expect(await scripted.send("m2", "x", { model: "small" })).toEqual({ outcome: "accepted" });
    expect(chosen).toEqual(["high"]);
  });
});

test("allows every request without a question if the table says so", async () => {
  const answers: unknown[] = [];
  const scripted = await started({
    allowsAll: true,
    turn: async ({ client }) => {
      const toolCall = { toolCallId: "t", title: "rm" };
      const options = [
        { optionId: "no", name: "No", kind: "reject_once" as const },
        { optionId: "yes", name: "Yes", kind: "allow_once" as const },
      ];
      answers.push(
        await client.request("session/request_permission", { sessionId: "session-1", toolCall, options }),
      );
      return {};
    },
  });
  await turnOf(scripted, "m1");
  expect(answers).toEqual([{ outcome: { outcome: "selected", optionId: "yes" } }]);
  expect(scripted.items.filter(({ kind }) => kind === "request")).toEqual([]);
});

describe("tools of the platform", () => {
  const tools = { name: "ours", url: "http://platform.internal/mcp", token: "secret" };
  const http = { mcpCapabilities: { http: true } };

  test("are told to an agent that takes servers by HTTP, and to no other", async () => {
    const takes = await started({ turn: COUNTS, tools, capabilities: http });
    const headers = [{ name: "Authorization", value: "Bearer secret" }];
    expect(takes.servers).toEqual([{ type: "http", name: "ours", url: tools.url, headers }]);
    const other = await started({ turn: COUNTS, tools });
    expect(other.servers).toEqual([]);
  });
});

describe("a model of the account's provider", () => {
  const MODELS = {
    models: { currentModelId: "one", availableModels: [{ modelId: "one" }, { modelId: "two" }] },
  };
  const session = { model: "acme/one", table: { ...table(true), provider: "acme" } };

  test("is chosen by its id alone, in which the runtime knows it", async () => {
    const chosen: unknown[] = [];
    const onCall = async (_: string, params: unknown) => {
      chosen.push((params as { modelId: string }).modelId);
      return {};
    };
    const scripted = await started({ turn: COUNTS, offers: MODELS, session, onCall });
    await turnOf(scripted, "m1");
    expect(await scripted.send("m2", "text of m2", { model: "acme/two" })).toEqual({ outcome: "accepted" });
    expect(chosen).toEqual(["one", "two"]);
    expect(await scripted.offers()).toMatchObject({ default_model: "two" });
  });

  test("is that of a former sandbox, too", async () => {
    const scripted = await started({ turn: COUNTS, offers: MODELS, session });
    const former = { ...scripted.session, model: "acme/two", text: "Before.", note: "Again." };
    await Effect.runPromise(scripted.adapter.tell(former));
    expect(await scripted.send("m1", "text of m1")).toEqual({ outcome: "accepted" });
    expect(await scripted.offers()).toMatchObject({ default_model: "two" });
  });

  test("of another provider is refused: the runtime is pointed to one", async () => {
    const scripted = await started({ turn: COUNTS, offers: MODELS, session });
    expect(await scripted.send("m1", "text", { model: "other/two" })).toMatchObject({
      outcome: "refused",
      error: { code: "unknown_model" },
    });
  });
});
