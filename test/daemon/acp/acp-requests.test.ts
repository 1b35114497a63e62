/** What an agent of the Agent Client Protocol asks of people. */
import * as Effect from "effect/Effect";
import { describe, expect, test } from "vitest";
import { POLL } from "../support/steered.ts";
import { started, type Stage } from "../support/scripted-agent.ts";

const ask = async ({ client }: Stage, kinds: readonly string[], call: object = {}) => {
  const { outcome } = await client.request<{ outcome: { outcome: string; optionId?: string } }, object>(
    "session/request_permission",
    {
      sessionId: "session-1",
      toolCall: {
        toolCallId: "1",
        title: "rm -r",
        kind: "execute",
        locations: [{ path: "/workspace/a" }],
        ...call,
      },
      options: kinds.map((kind) => ({ optionId: `id-${kind}`, name: kind, kind })),
    },
  );
  return outcome;
};

const selected = (kind: string) => ({ outcome: "selected", optionId: `id-${kind}` });
const ALL = ["allow_once", "allow_always", "reject_once", "reject_always"];

describe("an agent's request", () => {
  const outcomes: unknown[] = [];
  const answered = async (kinds: readonly string[], answer: object) => {
    let asks = 0;
    const scripted = await started(async (stage) => {
      asks += 1;
      // The words of a rejection come as a further text.
      if (asks === 1) outcomes.push(await ask(stage, kinds));
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

  /** Asks for each call in a turn of its own, and lets a person always allow the first. @returns which calls asked people */
  const askedAfterAlways = async (calls: readonly object[]) => {
    const left = [...calls];
    const scripted = await started(async (stage) => {
      outcomes.push(await ask(stage, ["allow_once", "reject_once"], left.shift()));
      return {};
    });
    const asked: boolean[] = [];
    for (const index of calls.keys()) {
      // oxlint-disable no-await-in-loop -- one turn after the other
      // Its rules are not the process's.
      if (index === 1) {
        await scripted.end();
        await scripted.start();
      }
      await scripted.send(`m${index}`, "x");
      const now = () => scripted.feed.feed.turnNow;
      await expect.poll(() => scripted.ends.length > index || now().waiting_for !== null, POLL).toBe(true);
      const request = now().waiting_for;
      asked.push(request !== null);
      const choice = index === 0 ? "always" : "reject";
      if (request !== null)
        await Effect.runPromise(scripted.steering.answer(request, { choice, message: null }));
      await expect.poll(() => scripted.ends.length, POLL).toBe(index + 1);
    }
    return { asked, items: scripted.items.filter(({ kind }) => kind === "request") };
  };

  test.each([
    ["a command", { rawInput: { command: "echo a > f" } }, { rawInput: { command: "echo a > f; rm -r b" } }],
    [
      "a change of a file",
      { kind: "edit", title: "Write a", rawInput: { content: "1" } },
      { kind: "edit", title: "Write b", locations: [{ path: "/workspace/b" }] },
    ],
    [
      "a tool",
      { kind: "other", title: "send", locations: [] },
      { kind: "other", title: "delete", locations: [] },
    ],
  ])("for %s that is always allowed is not asked again, and the record says why", async (_, call, other) => {
    const { asked, items } = await askedAfterAlways([call, call, other]);
    expect(asked).toEqual([true, false, true]);
    expect(outcomes.slice(-3)).toEqual([
      selected("allow_once"),
      selected("allow_once"),
      selected("reject_once"),
    ]);
    expect(items.map(({ content }) => content)).toMatchObject([
      [{ text: "always" }],
      [{ text: expect.stringContaining("“Always allow” was answered to the same request before") as string }],
      [{ text: "reject" }],
    ]);
    expect(items[1]?.request?.always).toEqual(items[0]?.request?.always);
  });

  test("for a change of a file shows the change", async () => {
    const content = [{ type: "diff", path: "/workspace/a", oldText: "1\n", newText: "2\n" }];
    const { items } = await askedAfterAlways([{ kind: "edit", title: "Write a", content }]);
    const patch = expect.stringContaining("-1\n+2") as string;
    expect(items[0]?.request?.changes).toEqual([{ path: "a", operation: "update", patch }]);
  });

  const PLANNED = { kind: "switch_mode", title: "Ready to code?", rawInput: { plan: "1. Write a." } };
  const planned = async (
    answer: object,
    {
      allowsAll = false,
      onMode = () => undefined,
    }: { readonly allowsAll?: boolean; readonly onMode?: (params: unknown) => void } = {},
  ) => {
    const offers = {
      modes: { currentModeId: "default", availableModes: [{ id: "default" }, { id: "plan" }] },
    };
    const scripted = await started({
      offers,
      allowsAll,
      session: { agentName: "plan" },
      onCall: async (method, params) => {
        if (method === "session/set_mode") onMode(params);
        return {};
      },
      turn: async (stage) => {
        outcomes.push(await ask(stage, ["allow_always", "allow_once", "reject_once"], PLANNED));
        return {};
      },
    });
    await scripted.send("m1", "x");
    await expect.poll(() => scripted.feed.feed.turnNow.state, POLL).toBe("requires_action");
    const request = scripted.feed.feed.turnNow.waiting_for ?? "";
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each case has an answer
    const given = await Effect.runPromise(scripted.steering.answer(request, answer as never));
    const item = scripted.items.find(({ kind }) => kind === "request");
    if (!given) return { scripted, given, outcome: null, item };
    await expect.poll(() => scripted.ends.length, POLL).toBe(1);
    return { scripted, given, outcome: outcomes.at(-1), item };
  };

  test("to leave the mode that plans is a plan, and its approval is the option that a person chose", async () => {
    const { outcome, item } = await planned({ approve: true, mode: "id-allow_always" });
    expect(outcome).toEqual(selected("allow_always"));
    expect(item?.request).toEqual({
      kind: "plan",
      title: "",
      patterns: [],
      questions: [],
      plan: {
        text: "1. Write a.",
        modes: [
          { id: "id-allow_once", name: "allow_once" },
          { id: "id-allow_always", name: "allow_always" },
        ],
        in_turn: true,
      },
    });
    expect((await planned({ approve: true, mode: "id-reject_once" })).given).toBe(false);
    expect((await planned({ choice: "once", message: null })).given).toBe(false);
    expect((await planned({ declined: "message" })).outcome).toEqual(selected("reject_once"));
  });

  test("to leave the mode that plans is asked also where all else is allowed", async () => {
    const { outcome } = await planned({ approve: true, mode: "id-allow_once" }, { allowsAll: true });
    expect(outcome).toEqual(selected("allow_once"));
  });

  test.each([
    ["plan", "requires_action"],
    ["default", "idle"],
  ])("where all is allowed, in the mode %s, leaves the turn %s", async (agentName, state) => {
    const scripted = await started({
      offers: { modes: { currentModeId: "default", availableModes: [{ id: "default" }, { id: "plan" }] } },
      allowsAll: true,
      planMode: "plan",
      session: { agentName },
      turn: async (stage) => {
        outcomes.push(await ask(stage, ["allow_once", "reject_once"], { kind: "execute", title: "rm a" }));
        return {};
      },
    });
    await scripted.send("m1", "x");
    await expect
      .poll(() => scripted.ends.length + Number(scripted.feed.feed.turnNow.waiting_for !== null), POLL)
      .toBe(1);
    expect(scripted.feed.feed.turnNow.state).toBe(state);
  });

  test("needs no person any more once a plan is approved, where all is allowed", async () => {
    const scripted = await started({
      offers: { modes: { currentModeId: "default", availableModes: [{ id: "default" }, { id: "plan" }] } },
      allowsAll: true,
      planMode: "plan",
      session: { agentName: "plan" },
      turn: async (stage) => {
        await ask(stage, ["allow_once", "reject_once"], PLANNED);
        outcomes.push(await ask(stage, ["allow_once", "reject_once"], { kind: "execute", title: "rm a" }));
        return {};
      },
    });
    await scripted.send("m1", "x");
    await expect.poll(() => scripted.feed.feed.turnNow.state, POLL).toBe("requires_action");
    const request = scripted.feed.feed.turnNow.waiting_for ?? "";
    await Effect.runPromise(scripted.steering.answer(request, { approve: true, mode: "id-allow_once" }));
    await expect.poll(() => scripted.ends.length, POLL).toBe(1);
    expect(outcomes.at(-1)).toEqual(selected("allow_once"));
  });

  test.each([
    ["the file that it wrote last", "/plans/plan.md", "1. Write a."],
    ["a file that it did not tell", "/plans/other.md", "The plan is in the file /plans/other.md."],
  ])("to carry out a plan that is in %s is a plan, also where all else is allowed", async (_, path, text) => {
    const content = [
      { type: "diff", path: "/plans/plan.md", oldText: null, newText: "1. Write a." },
    ] as const;
    const scripted = await started({
      allowsAll: true,
      planTitle: "Requesting approval for: ",
      turn: async (stage) => {
        const call = { toolCallId: "w", title: "Write", kind: "edit", status: "completed" } as const;
        await stage.tell({ ...call, sessionUpdate: "tool_call", content: [...content] });
        const asking = { kind: "other", title: `Requesting approval for: ${path}`, rawInput: {} };
        outcomes.push(await ask(stage, ["allow_once", "reject_once"], asking));
        return {};
      },
    });
    await scripted.send("m1", "x");
    await expect.poll(() => scripted.feed.feed.turnNow.state, POLL).toBe("requires_action");
    const item = scripted.items.find(({ kind }) => kind === "request");
    expect(item?.request).toMatchObject({ kind: "plan", plan: { text, in_turn: true } });
    const request = scripted.feed.feed.turnNow.waiting_for ?? "";
    await Effect.runPromise(scripted.steering.answer(request, { approve: true, mode: "id-allow_once" }));
    await expect.poll(() => scripted.ends.length, POLL).toBe(1);
    expect(outcomes.at(-1)).toEqual(selected("allow_once"));
  });

  test("leaves the mode in which the agent goes on after an approved plan", async () => {
    const modes: unknown[] = [];
    const onMode = (params: unknown) => void modes.push(params);
    const { scripted } = await planned({ approve: true, mode: "id-allow_once" }, { onMode });
    await scripted.send("m2", "And now?");
    await expect.poll(() => scripted.feed.feed.turnNow.state, POLL).toBe("requires_action");
    expect(modes).toHaveLength(1);
  });

  test("is never permitted for longer than the person said", async () => {
    const { given } = await answered(["allow_always"], { choice: "once", message: null });
    expect(given).toBe(false);
    expect((await answered(ALL, { answers: [["Blue"]] })).given).toBe(false);
  });
});
