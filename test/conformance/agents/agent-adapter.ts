/**
 * The behaviour of every adapter of an agent runtime with a conversation, with the real program: turns, messages,
 * interrupts, requests, tool calls, choices, and the runtime's own end.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { attachments, choices, limits, permissions, tools, type Of } from "./agent-adapter-work.ts";
import { callOf } from "../../daemon/support/held-model.ts";
import { hasOpencode, POLL, Steered, type RealAgent } from "../../daemon/support/steered.ts";

const PROMPT = { PLATFORM_INITIAL_PROMPT: "hold the prompt", PLATFORM_BOOTSTRAP_AGENT_SESSION: "1" };

/** Registers the suite for one runtime. */
export const agentAdapterConformance = (name: string, agent: RealAgent): void => {
  describe.skipIf(!hasOpencode)(`an agent behind ${name}`, () => {
    describeTurns(agent);
    describeBriefing(agent);
    describeFirstTurns(agent);
  });
};

/** One start for all: each case continues after the turn that the one before has ended. */
const describeTurns = (agent: RealAgent): void => {
  describe("in a session with a prompt", () => {
    let steered: Steered;
    beforeAll(async () => {
      steered = await Steered.start({ environment: PROMPT, turnLimits: { modelCalls: 6 } }, agent);
    });
    afterAll(() => steered.stop());
    const of = () => steered;
    messages(of);
    races(of);
    choices(of);
    permissions(of);
    tools(of);
    attachments(of);
    limits(of);
    ends(of);
  });
};

const messages = (of: Of): void => {
  test("takes no message before the prompt's turn has ended, and answers it then", async () => {
    const steered = of();
    await steered.asked("the prompt");
    expect(await steered.send("m2", "the second message")).toEqual([200, { outcome: "busy", turn: 1 }]);
    expect([steered.follower.ended, steered.follower.turn?.state]).toEqual([0, "running"]);
    expect((await steered.daemon.health()).turn.active).toBe(true);
    steered.model.release();
    await steered.ended(1);
    await steered.endedAs({ state: "completed", error: null });
    expect(await steered.send("m2", "the second message")).toEqual([200, { outcome: "accepted", turn: 2 }]);
    await steered.ended(2);
    expect(steered.model.asked("the second message")).toBe(1);
    const answers = steered.answersTo("m2");
    expect(answers.map(({ kind, status }) => [kind, status])).toEqual([["message", "completed"]]);
    expect(JSON.stringify(answers[0]?.content)).toContain("You said the second message");
    const own = steered.items.filter(({ message_id: id }) => id === steered.daemon.sessionId);
    expect(own).toMatchObject([{ role: "user", content: [{ type: "text", text: "hold the prompt" }] }]);
  });

  test("gets a message once, however often it is handed over", async () => {
    const steered = of();
    const accepted = [200, { outcome: "accepted", turn: 3 }];
    const twice = await Promise.all([
      steered.send("m3", "hold the third"),
      steered.send("m3", "hold the third"),
    ]);
    expect(twice).toEqual([accepted, accepted]);
    expect(await steered.send("m3", "hold the third")).toEqual(accepted);
    await steered.asked("the third");
    steered.model.release();
    await steered.ended(3);
    expect(await steered.send("m3", "hold the third")).toEqual(accepted);
    await steered.deliver("m4", "the fourth");
    await steered.ended(4);
    expect(steered.model.asked("the third")).toBe(1);
    expect(steered.items.filter(({ message_id: id }) => id === "m3")).toHaveLength(1);
  });

  test("is interrupted in exactly the turn that is named, and keeps what it wrote", async () => {
    const steered = of();
    expect(await steered.deliver("m5", "hold the fifth")).toBe(5);
    await expect.poll(() => JSON.stringify(steered.answersTo("m5")), POLL).toContain("I begin.");
    expect(await steered.call("interrupt", { turn: 4 })).toEqual([200, { interrupted: false }]);
    expect(await steered.call("interrupt", { turn: 6 })).toEqual([200, { interrupted: false }]);
    expect(await steered.send("m6", "the sixth")).toEqual([200, { outcome: "busy", turn: 5 }]);
    expect(await steered.call("interrupt", { turn: 5 })).toEqual([200, { interrupted: true }]);
    await steered.ended(5);
    await steered.endedAs({ state: "interrupted", error: null });
    expect(steered.answersTo("m5")).toMatchObject([
      { status: "interrupted", content: [{ text: expect.stringMatching(/^I begin\.\s*$/) }] },
    ]);
    expect(await steered.deliver("m6", "hold the sixth")).toBe(6);
    expect(await steered.call("interrupt", { turn: 5 })).toEqual([200, { interrupted: false }]);
    await steered.asked("the sixth");
    steered.model.release();
    await steered.ended(6);
    expect(steered.answersTo("m6")).toMatchObject([{ status: "completed" }]);
  });

  test("is aborted by the daemon's own call, which says whether there was a turn", async () => {
    const steered = of();
    expect(await steered.daemon.control("abort")).toEqual([200, { aborted: false }]);
    const turn = await steered.deliver("ab1", "hold the aborted");
    await steered.asked("the aborted");
    expect(await steered.daemon.control("abort")).toEqual([200, { aborted: true }]);
    await steered.ended(turn);
    await steered.endedAs({ state: "interrupted", error: null });
  });
};

const races = (of: Of): void => {
  test("gets each of several messages once that are sent while a turn ends [D02]", async () => {
    const steered = of();
    const last = 20;
    const first = steered.follower.ended + 1;
    await steered.deliver("n0", "hold number 0.");
    for (let count = 1; count <= last; count += 1) {
      // oxlint-disable no-await-in-loop -- each follows the one before
      await steered.asked(`number ${count - 1}.`);
      const delivered = steered.deliver(`n${count}`, `hold number ${count}.`);
      for (let turns = 0; turns < count; turns += 1) await new Promise(setImmediate);
      steered.model.release();
      expect(await delivered).toBe(first + count);
    }
    await steered.asked(`number ${last}.`);
    steered.model.release();
    await steered.ended(first + last);
    for (let count = 0; count <= last; count += 1) {
      expect(steered.model.asked(`number ${count}.`), `number ${count}`).toBe(1);
      expect(steered.answersTo(`n${count}`), `number ${count}`).toMatchObject([{ status: "completed" }]);
    }
  });
};

const killRuntime = async (steered: Steered): Promise<void> => {
  const { runtime } = await steered.daemon.health();
  if (runtime.pid === null) throw new Error("the runtime does not run");
  process.kill(runtime.pid, "SIGKILL");
};

const ends = (of: Of): void => {
  test("goes on with the next message after its runtime was killed in the middle of an answer and of a tool [D04]", async () => {
    const steered = of();
    const first = await steered.deliver("k1", "hold the last words");
    await expect.poll(() => JSON.stringify(steered.answersTo("k1")), POLL).toContain("I begin.");
    await killRuntime(steered);
    await steered.ended(first);
    // The daemon reports a turn's end at once, and closes its items when the next runtime has listed them.
    await expect
      .poll(() => steered.answersTo("k1"), POLL)
      .toMatchObject([{ status: "interrupted", content: [{ text: expect.stringMatching(/^I begin\./) }] }]);
    const second = await steered.deliver(
      "k2",
      callOf("webfetch", { url: steered.model.hanging, format: "text" }),
    );
    expect(second).toBe(first + 1);
    await expect.poll(() => steered.answersTo("k2")[0]?.status, POLL).toBe("running");
    await killRuntime(steered);
    await steered.ended(second);
    await expect
      .poll(() => steered.answersTo("k2"), POLL)
      .toMatchObject([{ kind: "tool", status: "interrupted" }]);
    await steered.endedAs({ state: "interrupted", error: { code: "runtime_ended" } });
    const third = await steered.deliver("k3", "after the ends");
    // On a busy machine, a restarting runtime can look as if it worked: that would be a turn of its own.
    expect(third).toBeGreaterThan(second);
    await steered.ended(third);
    await expect.poll(() => steered.answersTo("k3"), POLL).toMatchObject([{ status: "completed" }]);
    // It still knows what was said.
    expect(steered.model.calls.at(-1)?.before).toContain("the second message");
    expect(steered.follower.ended).toBe(third);
    expect(steered.follower.seen.unfit).toBe(0);
  });
};

const describeBriefing = (agent: RealAgent): void => {
  describe("in a session with a former sandbox", () => {
    let steered: Steered;
    afterEach(() => steered.stop());

    test("has a summary of the conversation with people's first message, and people see a note of it [D06]", async () => {
      const recap = { text: "Ada: Fix the parser.", agent: "second", model: "held/two" };
      steered = await Steered.start(
        {
          environment: PROMPT,
          recap,
          wip: "a11ce".repeat(8),
          prepare: ({ state }) => (state.bootstrap = "done"),
        },
        agent,
      );
      expect(await steered.deliver("m1", "What did I ask first?")).toBe(1);
      await steered.ended(1);
      expect(await steered.deliver("m2", "And then?")).toBe(2);
      await steered.ended(2);
      const [call] = steered.model.calls;
      const heard = `${call?.before}\n${call?.text}`;
      expect(call).toMatchObject({ model: "two", text: expect.stringContaining("What did I ask first?") });
      expect(heard).toContain(recap.text);
      expect(heard).toContain("is saved, but not in this workspace");
      const last = steered.model.calls.at(-1);
      expect(`${last?.before}\n${last?.text}`.split(recap.text)).toHaveLength(2);
      const [note, ...others] = steered.items;
      expect(note).toMatchObject({ kind: "note", role: null, status: "completed", message_id: null });
      expect(JSON.stringify(note?.content)).toMatch(
        /has a summary of the conversation.*restarted without its saved work/,
      );
      expect(others.map(({ kind, role, message_id: id }) => [kind, role, id])).toEqual([
        ["message", "user", "m1"],
        ["message", "agent", null],
        ["message", "user", "m2"],
        ["message", "agent", null],
      ]);
      expect(others[0]).toMatchObject({ content: [{ type: "text", text: "What did I ask first?" }] });
    });
  });
};

const describeFirstTurns = (agent: RealAgent): void => {
  describe("in a turn that never begins", () => {
    let steered: Steered | null = null;
    afterEach(async () => {
      await steered?.stop();
      steered = null;
    });

    test("has ended when the prompt's agent does not exist", async () => {
      steered = await Steered.start({ environment: { ...PROMPT, PLATFORM_AGENT_NAME: "nonesuch" } }, agent);
      await steered.daemon.logged("initial prompt refused");
      await steered.endedAs({ state: "failed", error: { code: "message_not_taken" } });
      expect(await steered.deliver("m2", "the second")).toBe(2);
      await steered.ended(2);
      expect(steered.answersTo("m2")).toMatchObject([{ status: "completed" }]);
    });

    test("has ended when the prompt's model does not exist, although that took no time", async () => {
      steered = await Steered.start(
        { environment: { ...PROMPT, PLATFORM_AGENT_MODEL: "held/nonesuch" } },
        agent,
      );
      await steered.ended(1);
      await steered.endedAs({ state: "failed", error: { code: "unknown_model" } });
      const [, body] = await steered.send("m2", "the second");
      expect(body).toMatchObject({
        outcome: "refused",
        error: { code: "unknown_model", message: expect.stringContaining("held/nonesuch") as string },
      });
      expect(await steered.deliver("m3", "the third", { model: "held/one" })).toBe(3);
      await steered.ended(3);
      expect(steered.answersTo("m3")).toMatchObject([{ status: "completed" }]);
    });

    test("is stopped once it begins, if it is interrupted before", async () => {
      const own = await Steered.start({ environment: PROMPT }, agent);
      steered = own;
      await expect.poll(() => own.follower.turn?.state, POLL).toBe("running");
      expect(await own.call("interrupt", { turn: 1 })).toEqual([200, { interrupted: true }]);
      await own.ended(1);
      await own.endedAs({ state: "interrupted", error: null });
      expect(await own.deliver("m2", "the second")).toBe(2);
      await own.ended(2);
    });
  });
};
