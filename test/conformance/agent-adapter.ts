/**
 * What every adapter of an agent runtime with a conversation does, with the real program: turns, messages, interrupts,
 * requests, tool calls, choices, and the runtime's own end.
 */
import { createHash, randomUUID } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { ATTACHMENT_MAX, type AttachmentHead } from "../../src/domain/attachment.ts";
import { callOf } from "../daemon/support/held-model.ts";
import { hasOpencode, POLL, Steered, type RealAgent } from "../daemon/support/steered.ts";
import type { deepTest, rounds } from "../support/vitest/rings.ts";

const PROMPT = { PLATFORM_INITIAL_PROMPT: "hold the prompt", PLATFORM_BOOTSTRAP_AGENT_SESSION: "1" };
/** One pixel. */
const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

const refused = (code: string, message: unknown) => [200, { outcome: "refused", error: { code, message } }];
const answered = (is: boolean) => [200, { answered: is }];

/** What runs in which ring. The test file has it from test/support/vitest/rings.ts. */
interface Rings {
  readonly deepTest: typeof deepTest;
  readonly rounds: typeof rounds;
}

/** Registers the suite for one runtime. */
export const agentAdapterConformance = (name: string, agent: RealAgent, rings: Rings): void => {
  describe.skipIf(!hasOpencode)(`an agent behind ${name}`, () => {
    describeTurns(agent, rings);
    describeBriefing(agent);
    describeFirstTurns(agent, rings);
  });
};

/** One start for all: each case continues after the turn that the one before has ended. */
const describeTurns = (agent: RealAgent, rings: Rings): void => {
  describe("in a session with a prompt", () => {
    let steered: Steered;
    beforeAll(async () => {
      steered = await Steered.start({ environment: PROMPT, turnLimits: { modelCalls: 6 } }, agent);
    });
    afterAll(() => steered.stop());
    const of = () => steered;
    messages(of);
    races(of, rings);
    choices(of);
    permissions(of);
    tools(of);
    attachments(of);
    limits(of);
    ends(of);
  });
};

type Of = () => Steered;

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

const races = (of: Of, rings: Rings): void => {
  test("gets each of several messages once that are sent while a turn ends [D02]", async () => {
    const steered = of();
    const last = rings.rounds(5, 20);
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

const choices = (of: Of): void => {
  test("keeps the model and the agent of the message before", async () => {
    const steered = of();
    await steered.ended(await steered.deliver("c1", "first choice", { agent: "second", model: "held/two" }));
    await steered.ended(await steered.deliver("c2", "same choice"));
    const calls = steered.model.calls.filter(({ text }) => text.includes("choice"));
    expect(calls.map(({ model }) => model)).toEqual(["two", "two"]);
    for (const { system } of calls) expect(system).toContain("You are the second.");
    expect(steered.answersTo("c2")).toMatchObject([{ model: "held/two" }]);
  });

  test("refuses an agent or a model that it does not have, and says which there are", async () => {
    const steered = of();
    const before = steered.follower.ended;
    expect(await steered.send("c3", "x", { agent: "nonesuch" })).toEqual(
      refused(
        "unknown_agent",
        'There is no agent "nonesuch" in this session. Choose one of: build, plan, second.',
      ),
    );
    expect(await steered.send("c4", "x", { model: "held/nonesuch" })).toEqual(
      refused("unknown_model", expect.stringContaining('There is no model "held/nonesuch"')),
    );
    await steered.ended(before + 2);
    await steered.ended(await steered.deliver("c5", "after the refusals"));
    expect(steered.answersTo("c5")).toMatchObject([{ status: "completed", model: "held/two" }]);
  });

  test("offers its models and agents, and the model that a message without one gets", async () => {
    const [status, offers] = await of().call("models");
    expect([status, offers]).toMatchObject([200, { default_model: "held/two" }]);
    expect(offers["models"]).toMatchObject([
      { id: "held/one", name: expect.stringContaining("One") as string },
      { id: "held/two", name: expect.stringContaining("Two") as string },
    ]);
    expect(offers["agents"]).toContainEqual({ name: "second", description: "The other one" });
    expect(JSON.stringify(offers["agents"])).not.toContain("explore");
  });
};

const COMMAND = callOf("bash", { command: "echo it is done", description: "Say done" });

/** Sends the message and waits until the agent asks. @returns the turn, and the request's id */
const ask = async (steered: Steered, id: string) => {
  const turn = await steered.deliver(id, COMMAND);
  await expect.poll(() => steered.follower.turn?.state, POLL).toBe("requires_action");
  const request = steered.follower.turn?.waiting_for ?? "";
  expect(steered.follower.items.get(request)).toMatchObject({
    kind: "request",
    status: "pending",
    request: { kind: "permission", title: "bash", patterns: ["echo it is done"] },
  });
  return { turn, request };
};

const answer = (steered: Steered, request: string, given: object) =>
  steered.call("answer", { request_id: request, answer: given });

const permissions = (of: Of): void => {
  test("does what a person permits once, and asks again the next time", async () => {
    const steered = of();
    const once = { choice: "once", message: null };
    for (const id of ["p1", "p2"]) {
      // oxlint-disable no-await-in-loop -- one turn after the other
      const { turn, request } = await ask(steered, id);
      expect(await steered.send("p", "x")).toEqual([200, { outcome: "busy", turn }]);
      expect(await answer(steered, request, once)).toEqual(answered(true));
      expect(await answer(steered, request, once)).toEqual(answered(false));
      await steered.ended(turn);
      expect(steered.model.calls.at(-1)?.result).toContain("it is done");
      expect(steered.follower.items.get(request)).toMatchObject({
        status: "completed",
        content: [{ text: "once" }],
      });
    }
  });

  test("does not do what a person rejects, or what nobody can permit", async () => {
    const steered = of();
    for (const [id, given] of [
      ["r1", { choice: "reject", message: null }],
      ["r2", { declined: "unattended" }],
      ["r3", { declined: "expired" }],
    ] as const) {
      // oxlint-disable no-await-in-loop -- one turn after the other
      const { turn, request } = await ask(steered, id);
      expect(await answer(steered, request, given)).toEqual(answered(true));
      await steered.ended(turn);
      expect(steered.follower.items.get(request)?.status).toBe("completed");
      const [tool] = steered.answersTo(id).filter(({ kind }) => kind === "tool");
      expect(tool).toMatchObject({ status: "failed", error: { code: "tool_failed" } });
      expect(JSON.stringify(tool?.tool?.output)).not.toContain("it is done");
    }
  });

  test("asks no longer after an interrupt", async () => {
    const steered = of();
    const { turn, request } = await ask(steered, "i1");
    expect(await steered.call("interrupt", { turn })).toEqual([200, { interrupted: true }]);
    await steered.ended(turn);
    await steered.endedAs({ state: "interrupted", error: null });
    expect(steered.follower.items.get(request)?.status).toBe("interrupted");
    expect(await answer(steered, request, { choice: "once", message: null })).toEqual(answered(false));
    expect(await answer(steered, "none", { choice: "once", message: null })).toEqual(answered(false));
    expect(await answer(steered, "none", { declined: "unattended" })).toEqual(answered(false));
  });

  test("asks no longer for what a person permits always", async () => {
    const steered = of();
    const { turn, request } = await ask(steered, "a1");
    await answer(steered, request, { choice: "always", message: null });
    await steered.ended(turn);
    const requests = steered.items.filter(({ kind }) => kind === "request").length;
    await steered.ended(await steered.deliver("a2", COMMAND));
    expect(steered.model.calls.at(-1)?.result).toContain("it is done");
    expect(steered.items.filter(({ kind }) => kind === "request")).toHaveLength(requests);
  });
};

const tools = (of: Of): void => {
  test("shows a command with its title, kind, input and output", async () => {
    const steered = of();
    await steered.ended(await steered.deliver("t1", COMMAND));
    expect(steered.answersTo("t1")).toMatchObject([
      {
        kind: "tool",
        status: "completed",
        tool: {
          name: "bash",
          kind: "execute",
          title: expect.any(String) as string,
          input: { command: "echo it is done" },
          output: "it is done\n",
          changes: [],
        },
      },
      { kind: "message", status: "completed" },
    ]);
  });

  test("shows a changed file with its diff, and a tool that failed with its error", async () => {
    const steered = of();
    const filePath = join(steered.daemon.layout.workspace, "notes.txt");
    await steered.ended(
      await steered.deliver("t2", callOf("write", { filePath, content: "first\nsecond\n" })),
    );
    expect(steered.answersTo("t2")[0]).toMatchObject({
      status: "completed",
      tool: { kind: "edit", changes: [{ path: "notes.txt" }] },
    });
    const edit = (oldString: string) => callOf("edit", { filePath, oldString, newString: "changed" });
    await steered.ended(await steered.deliver("t3", edit("first")));
    expect(readFileSync(filePath, "utf8")).toBe("changed\nsecond\n");
    expect(steered.answersTo("t3")[0]).toMatchObject({
      status: "completed",
      tool: {
        name: "edit",
        kind: "edit",
        changes: [{ path: "notes.txt", operation: "update", patch: expect.any(String) as string }],
      },
    });
    const patch = steered.answersTo("t3")[0]?.tool?.changes[0]?.patch ?? "";
    expect(patch).toMatch(/^--- notes\.txt\n\+\+\+ notes\.txt\n@@ -1,?\d* \+1,?\d* @@\n-first\n\+changed\n/);
    await steered.ended(await steered.deliver("t4", edit("nowhere")));
    expect(steered.answersTo("t4")[0]).toMatchObject({
      status: "failed",
      tool: { kind: "edit", changes: [] },
      error: { code: "tool_failed" },
    });
  });
};

const headOf = (name: string, media_type: string, content: Uint8Array): AttachmentHead => ({
  id: randomUUID(),
  name,
  media_type,
  bytes: content.length,
  sha256: createHash("sha256").update(content).digest("hex"),
});

const attachments = (of: Of): void => {
  test("gets attached files with their content where its model reads it, and with their paths", async () => {
    const steered = of();
    const contents = [
      ["error.log", "text/plain", Buffer.from("the first line of the log\n")],
      ["pixel.png", "image/png", PNG],
      ["src.zip", "application/zip", Buffer.from("PK\u0003\u0004\0\0\0", "latin1")],
    ] as const;
    const heads = contents.map(([name, type, content]) => headOf(name, type, content));
    const choice = { attachments: heads, model: "held/two" };
    const ids = heads.map(({ id }) => id);
    expect(await steered.send("f1", "Compare them.", choice)).toEqual([
      200,
      { outcome: "incomplete", attachments: ids },
    ]);
    for (const [at, [, , content]] of contents.entries())
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      expect(await steered.attach(ids[at] ?? "", content)).toEqual([200, { stored: true }]);
    const both = await Promise.all([
      steered.send("f1", "Compare them.", choice),
      steered.send("f1", "Compare them.", choice),
    ]);
    const turn = steered.follower.ended + 1;
    expect(both.map(([, body]) => body)).toEqual([
      { outcome: "accepted", turn: expect.any(Number) as number },
      { outcome: "accepted", turn: expect.any(Number) as number },
    ]);
    await steered.ended(turn);
    const call = steered.model.calls.at(-1);
    expect(call?.text).toContain("Compare them.");
    expect(call?.text.match(/the first line of the log/g)).toHaveLength(1);
    expect(call?.images).toEqual([`data:image/png;base64,${PNG.toString("base64")}`]);
    for (const { id, name, media_type: type, bytes } of heads) {
      const path = join(steered.daemon.layout.attachmentsDir, id, name);
      expect(call?.text).toContain(`- ${path} (${type}, ${bytes} bytes)`);
      // The agent is another user.
      expect(statSync(path).mode & 0o777).toBe(0o644);
    }
    const changed = await steered.daemon.git("status", "--porcelain", "--ignored");
    for (const { name } of heads) expect(changed).not.toContain(name);
    expect(steered.answersTo("f1")).toMatchObject([{ status: "completed" }]);
  });

  test("may get only a file, under a name that leads nowhere else", async () => {
    const steered = of();
    const file = Buffer.from("# Notes");
    const head = headOf("../../notes.md", "text/markdown", file);
    await steered.send("f2", "", { attachments: [head] });
    expect(await steered.attach(head.id, file)).toEqual([200, { stored: true }]);
    await steered.ended(await steered.deliver("f2", "", { attachments: [head] }));
    expect(steered.model.calls.at(-1)?.text.match(/# Notes/g)).toHaveLength(1);
    expect(existsSync(join(steered.daemon.layout.attachmentsDir, head.id, "notes.md"))).toBe(true);
  });

  test("gets the wanted files only, with their own bytes", async () => {
    const steered = of();
    const head = headOf("a.txt", "text/plain", Buffer.from("right"));
    expect(await steered.attach(head.id, Buffer.from("right"))).toMatchObject([404, { code: "not_found" }]);
    await steered.send("f3", "Look.", { attachments: [head] });
    expect(await steered.attach(head.id, Buffer.from("wrong"))).toMatchObject([
      400,
      { code: "invalid_request" },
    ]);
    for (const [id, bytes] of [
      [head.id, 6],
      [randomUUID(), ATTACHMENT_MAX + 1],
    ] as const)
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      expect(await steered.attach(id, Buffer.alloc(bytes))).toMatchObject([413, { code: "body_too_large" }]);
    expect(await steered.call("attachments/x")).toMatchObject([404, { code: "not_found" }]);
    expect(await steered.call(`attachments/${head.id}`)).toMatchObject([405, { code: "method_not_allowed" }]);
  });
};

const limits = (of: Of): void => {
  test("is stopped if its model answers without end", async () => {
    const steered = of();
    const turn = await steered.deliver("l1", "unfinished");
    await steered.ended(turn);
    await steered.endedAs({ state: "failed", error: { code: "too_many_model_calls" } });
    expect(steered.model.asked("unfinished")).toBeLessThan(15);
    await steered.ended(await steered.deliver("l2", "after the endless turn"));
    expect(steered.answersTo("l2")).toMatchObject([{ status: "completed" }]);
  });
};

const ends = (of: Of): void => {
  const killRuntime = async (steered: Steered): Promise<void> => {
    const { runtime } = await steered.daemon.health();
    if (runtime.pid === null) throw new Error("the runtime does not run");
    process.kill(runtime.pid, "SIGKILL");
  };

  test("goes on with the next message after its runtime was killed in the middle of an answer and of a tool [D04]", async () => {
    const steered = of();
    const first = await steered.deliver("k1", "hold the last words");
    await expect.poll(() => JSON.stringify(steered.answersTo("k1")), POLL).toContain("I begin.");
    await killRuntime(steered);
    await steered.ended(first);
    expect(steered.answersTo("k1")).toMatchObject([
      { status: "interrupted", content: [{ text: expect.stringMatching(/^I begin\./) }] },
    ]);
    const second = await steered.deliver(
      "k2",
      callOf("webfetch", { url: steered.model.hanging, format: "text" }),
    );
    expect(second).toBe(first + 1);
    await expect.poll(() => steered.answersTo("k2")[0]?.status, POLL).toBe("running");
    await killRuntime(steered);
    await steered.ended(second);
    expect(steered.answersTo("k2")).toMatchObject([{ kind: "tool", status: "interrupted" }]);
    await steered.endedAs({ state: "interrupted", error: { code: "runtime_ended" } });
    const third = await steered.deliver("k3", "after the ends");
    expect(third).toBe(second + 1);
    await steered.ended(third);
    expect(steered.answersTo("k3")).toMatchObject([{ status: "completed" }]);
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
      expect(heard).toContain(`refs/wip/${steered.daemon.sessionId}`);
      const last = steered.model.calls.at(-1);
      expect(`${last?.before}\n${last?.text}`.split(recap.text)).toHaveLength(2);
      const [note, ...others] = steered.items;
      expect(note).toMatchObject({ kind: "note", role: null, status: "completed", message_id: null });
      expect(JSON.stringify(note?.content)).toMatch(
        /has a summary of the conversation.*is saved on refs\/wip\//,
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

const describeFirstTurns = (agent: RealAgent, rings: Rings): void => {
  describe("in a turn that never begins", () => {
    let steered: Steered | null = null;
    afterEach(async () => {
      await steered?.stop();
      steered = null;
    });

    rings.deepTest("has ended when the prompt's agent does not exist", async () => {
      steered = await Steered.start({ environment: { ...PROMPT, PLATFORM_AGENT_NAME: "nonesuch" } }, agent);
      await steered.daemon.logged("initial prompt refused");
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

    rings.deepTest("is stopped once it begins, if it is interrupted before", async () => {
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
