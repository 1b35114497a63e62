/** How an agent of the Agent Client Protocol hears the words with which a permission is rejected. */
import * as Effect from "effect/Effect";
import { describe, expect, test } from "vitest";
import type { RequestAnswer } from "../../../src/domain/conversation/steering.ts";
import {
  agentItems,
  chunk,
  type Script,
  type ScriptedAgent,
  type Stage,
  started,
} from "../support/scripted-agent.ts";
import { POLL } from "../support/steered.ts";

const NO: RequestAnswer = { choice: "reject", message: "Use pnpm." };
const NOBODY: RequestAnswer = { declined: "unattended" };
const HEARD = "The permission for “npm i” was rejected: Use pnpm.";

const ask = (client: Stage["client"], command = "npm i"): Promise<unknown> =>
  client.request("session/request_permission", {
    sessionId: "session-1",
    toolCall: { toolCallId: command, title: command, kind: "execute", rawInput: { command } },
    options: [{ optionId: "no", name: "No", kind: "reject_once" }],
  });

/** @param first what the agent does with the first text that it gets. It answers each later one. */
const talking = async (first: Script["turn"], more: Partial<Script> = {}) => {
  const heard: (readonly string[])[] = [];
  const scripted = await started({
    ...more,
    turn: async (stage) => {
      heard.push(stage.prompt.flatMap((block) => (block.type === "text" ? [block.text] : [])));
      if (heard.length === 1) return first(stage);
      await stage.tell(chunk("I see."));
      return {};
    },
  });
  return { scripted, heard };
};

const answer = async (scripted: ScriptedAgent, given: RequestAnswer): Promise<void> => {
  await expect.poll(() => scripted.feed.feed.turnNow.state, POLL).toBe("requires_action");
  const request = scripted.feed.feed.turnNow.waiting_for ?? "";
  expect(await Effect.runPromise(scripted.steering.answer(request, given))).toBe(true);
};

const over = (scripted: ScriptedAgent, count: number) =>
  expect.poll(() => scripted.ends.length, POLL).toBe(count);

/** Sends a message, rejects what the agent asks for, and waits for the end. */
const rejected = async (scripted: ScriptedAgent, given: RequestAnswer): Promise<void> => {
  await scripted.send("m1", "Begin.");
  await answer(scripted, given);
  await over(scripted, 1);
};

describe("an agent whose permission is rejected with words", () => {
  test.each([{ stopReason: "cancelled" }, {}])(
    "hears them when it ends its turn as %j, which goes on",
    async (end) => {
      const { scripted, heard } = await talking(async ({ client, tell }) => {
        await ask(client);
        await tell(chunk("As you like."));
        return end;
      });
      await rejected(scripted, NO);
      expect(heard).toEqual([["Begin."], [HEARD]]);
      expect(scripted.ends).toEqual([{ state: "completed", error: null }]);
      const turns = scripted.items.map(({ turn_id: turn }) => turn);
      expect(new Set(turns).size).toBe(1);
      expect(scripted.items.filter(({ role }) => role === "user")).toHaveLength(1);
      const said = agentItems(scripted).filter(({ kind }) => kind === "message");
      expect(said.map(({ content }) => content)).toMatchObject([
        [{ text: "As you like." }],
        [{ text: "I see." }],
      ]);
    },
  );

  test("hears all of them together", async () => {
    const { scripted, heard } = await talking(async ({ client }) => {
      await Promise.all([ask(client), ask(client, "npx a")]);
      return {};
    });
    await scripted.send("m1", "Begin.");
    await answer(scripted, NO);
    await answer(scripted, { choice: "reject", message: "Not that." });
    await over(scripted, 1);
    expect(heard[1]).toEqual([`${HEARD}\nThe permission for “npx a” was rejected: Not that.`]);
  });

  test("hears them before the next message if a person stops its turn", async () => {
    const { scripted, heard } = await talking(async ({ client, cancelled }) => {
      await ask(client);
      await cancelled;
      return { stopReason: "cancelled" };
    });
    await scripted.send("m1", "Begin.");
    await answer(scripted, NO);
    await Effect.runPromise(scripted.steering.interrupt("s"));
    await over(scripted, 1);
    await scripted.send("m2", "Go on.");
    await over(scripted, 2);
    await scripted.send("m3", "And on.");
    await over(scripted, 3);
    expect(heard).toEqual([["Begin."], [HEARD, "Go on."], ["And on."]]);
  });

  test("hears them before the next message if its turn fails", async () => {
    const { scripted, heard } = await talking(async ({ client }) => {
      await ask(client);
      throw new Error("no model");
    });
    await rejected(scripted, NO);
    await scripted.send("m2", "Go on.");
    await over(scripted, 2);
    expect(scripted.ends.map(({ state }) => state)).toEqual(["failed", "completed"]);
    expect(heard).toEqual([["Begin."], [HEARD, "Go on."]]);
  });

  test("hears them from its next process if the first one ends", async () => {
    const { scripted, heard } = await talking(async ({ client, cancelled }) => {
      await ask(client);
      await cancelled;
      return {};
    });
    await scripted.send("m1", "Begin.");
    await answer(scripted, NO);
    await scripted.end();
    await scripted.start();
    await scripted.send("m2", "Go on.");
    await over(scripted, 1);
    expect(heard).toEqual([["Begin."], [HEARD, "Go on."]]);
  });

  test("hears nothing more if the rejection has no words", async () => {
    const { scripted, heard } = await talking(async ({ client }) => {
      await ask(client);
      return {};
    });
    await rejected(scripted, { choice: "reject", message: null });
    expect(heard).toEqual([["Begin."]]);
  });
});

describe("an agent whose permission is rejected because no person answers", () => {
  test("hears it if the rejection ends its turn", async () => {
    const { scripted, heard } = await talking(async ({ client }) => {
      await ask(client);
      return { stopReason: "cancelled" };
    });
    await rejected(scripted, NOBODY);
    expect(heard[1]).toEqual([
      expect.stringMatching(
        /^The permission for “npm i” was rejected: No person can grant this permission\./,
      ),
    ]);
    expect(scripted.ends).toEqual([{ state: "completed", error: null }]);
  });

  test("hears no more of it, nor with a later message, if it goes on by itself", async () => {
    const { scripted, heard } = await talking(async ({ client, tell }) => {
      await ask(client);
      await tell(chunk("I do without it."));
      return {};
    });
    await rejected(scripted, NOBODY);
    await scripted.send("m2", "Go on.");
    await over(scripted, 2);
    expect(heard).toEqual([["Begin."], ["Go on."]]);
  });
});
