/** An agent of the Agent Client Protocol in a fresh sandbox, with its own record of the conversation. */
import * as Effect from "effect/Effect";
import { describe, expect, test } from "vitest";
import { chunk, ScriptedAgent, turnOf, type Script, type Stage } from "../support/scripted-agent.ts";

const SAY = async ({ tell }: Stage) => {
  await tell(chunk("A new answer."));
  return {};
};

const RECORD = { id: "former-session", at: 1000 };

/** A fresh agent whose record was brought back. */
const recalled = async (script: Partial<Script>): Promise<ScriptedAgent> => {
  const scripted = new ScriptedAgent({
    keepsRecord: true,
    capabilities: { loadSession: true },
    turn: SAY,
    ...script,
  });
  scripted.adapter.record?.recall(RECORD);
  await scripted.start();
  return scripted;
};

const restoring = ({ adapter, session }: ScriptedAgent) =>
  Effect.runPromise(adapter.restore?.(session, { summary: null, items: [] }) ?? Effect.succeed(null));

describe("an agent whose record came back", () => {
  test("opens its session, and what it tells of it again is not told to people", async () => {
    const replays: ((text: string) => Promise<unknown>)[] = [];
    const asked: unknown[] = [];
    const scripted = await recalled({
      onCall: async (_method, params, client) => {
        asked.push(params);
        const replay = (text: string) =>
          client.notify("session/update", { sessionId: RECORD.id, update: chunk(text) });
        replays.push(replay);
        await replay("Told before the answer.");
        return {};
      },
    });
    await replays[0]?.("Told after the answer.");
    expect(asked).toMatchObject([{ sessionId: RECORD.id }]);
    expect(await restoring(scripted)).toEqual({ outcome: "restored", until: RECORD.at });
    expect(scripted.adapter.record?.present()).toBe(RECORD.id);
    await turnOf(scripted, "m1");
    expect(scripted.calls).toEqual(["session/load", "session/prompt"]);
    const shown = JSON.stringify(scripted.items);
    expect(shown).toContain("A new answer.");
    expect(shown).not.toContain("Told");
  });

  test("prefers to resume, and has its instructions already", async () => {
    let blocks = 0;
    const scripted = await recalled({
      capabilities: { loadSession: true, sessionCapabilities: { resume: {} } },
      session: {
        table: { provider: null, isOptional: true, isOwnFile: true, instructions: () => "Be brief." },
      },
      turn: ({ prompt }) => {
        blocks = prompt.length;
        return Promise.resolve({});
      },
    });
    await turnOf(scripted, "m1");
    expect([scripted.calls, blocks]).toEqual([["session/resume", "session/prompt"], 1]);
  });

  test.each([
    ["refuses it", { onCall: () => Promise.reject(new Error("no such session")) }],
    ["can open none again", { capabilities: {} }],
  ])("and that %s begins another session, and says so", async (_name, script) => {
    const scripted = await recalled(script);
    expect(scripted.calls.at(-1)).toBe("session/new");
    expect(await restoring(scripted)).toMatchObject({ outcome: "failed", why: "refused" });
    await turnOf(scripted, "m1");
    // The next process goes on with the new one.
    expect(scripted.adapter.record?.present()).not.toBe(RECORD.id);
    expect(JSON.stringify(scripted.items)).toContain("A new answer.");
  });
});

test("an agent whose record did not come says so, and has one after its first message", async () => {
  const scripted = new ScriptedAgent({ keepsRecord: true, turn: SAY });
  await scripted.start();
  expect(await restoring(scripted)).toMatchObject({ outcome: "failed", why: "missing" });
  expect(scripted.adapter.record?.present()).toBeNull();
  await turnOf(scripted, "m1");
  expect(scripted.adapter.record?.present()).toBe("session-1");
});

test("an agent whose files are not known keeps no record", () => {
  const { adapter } = new ScriptedAgent({ turn: SAY });
  expect([adapter.record, adapter.restore]).toEqual([null, null]);
});
