/** The real opencode behind the daemon: its questions and permissions with their answers, and commands that leave a process behind. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { callOf } from "../support/held-model.ts";
import { hasOpencode, OPENCODE_ACP, POLL, Steered } from "../support/steered.ts";
import { deepTest, onlyDeep } from "../../support/vitest/rings.ts";

const LEFT = "goes on after the grace of a process that holds a command's output, and names it";
/** Runs a command that leaves a process behind, to the end of its turn. */
const run = async (steered: Steered, id: string, command: string): Promise<string> => {
  const turn = await steered.deliver(id, callOf("bash", { command, description: "x" }));
  await expect.poll(() => steered.follower.turn?.waiting_for ?? null, POLL).not.toBeNull();
  await steered.call("answer", {
    request_id: steered.follower.turn?.waiting_for,
    answer: { choice: "once", message: null },
  });
  await steered.ended(turn);
  const notes = steered.items.filter(({ kind }) => kind === "note");
  return notes.map(({ content }) => JSON.stringify(content)).join("\n");
};

/** A command whose processes outlive it. */
const leavesProcesses = async (steered: Steered): Promise<void> => {
  const [quiet, loud] = [`echo $$ > quiet; exec sleep 7101`, `exec sleep 7102`];
  const notes = await run(
    steered,
    "m1",
    `setsid sh -c '${quiet}' > /dev/null 2>&1 & setsid sh -c '${loud}' & echo done`,
  );
  expect(notes).toContain("the process sleep (");
  expect(steered.answersTo("m1").find(({ kind }) => kind === "tool")).toMatchObject({
    status: "completed",
    tool: { output: expect.stringContaining("done\n") as string },
  });
  await steered.endedAs({ state: "completed" });
  // The one whose output goes nowhere is still there.
  expect(await run(steered, "m2", "kill $(cat quiet) && echo ended > m2")).toBe(notes);
  expect(JSON.stringify(steered.answersTo("m2"))).not.toContain("No such process");
};

describe.skipIf(!hasOpencode)("opencode", () => {
  const QUESTION = callOf("question", {
    questions: [
      {
        question: "Which colour?",
        header: "Colour",
        options: [{ label: "Blue", description: "as the sky" }],
      },
      { question: "Which size?", header: "Size", options: [{ label: "Small", description: "a little" }] },
    ],
  });
  const COMMAND = callOf("bash", { command: "echo it is done", description: "Say done" });
  let steered: Steered;
  beforeAll(async () => {
    steered = await Steered.start();
  });
  afterAll(() => steered.stop());

  /** Sends the message and waits until the agent asks. @returns the turn, and the request's id */
  const ask = async (id: string, text: string) => {
    const turn = await steered.deliver(id, text);
    await expect.poll(() => steered.follower.turn?.state, POLL).toBe("requires_action");
    const request = steered.follower.turn?.waiting_for ?? "";
    expect(steered.follower.items.get(request)).toMatchObject({ kind: "request", status: "pending" });
    return { turn, request };
  };
  const answer = (request: string, given: object) =>
    steered.call("answer", { request_id: request, answer: given });
  const lastResult = () => steered.model.calls.at(-1)?.result;
  const statusesOf = (id: string) => steered.answersTo(id).map(({ kind, status }) => `${kind} ${status}`);

  test("gets a person's answer to its question once, and continues", async () => {
    const { turn, request } = await ask("q1", QUESTION);
    expect(steered.follower.items.get(request)?.request).toMatchObject({
      kind: "question",
      questions: [{ text: "Which colour?" }, { text: "Which size?" }],
    });
    expect(await steered.send("q2", "x")).toEqual([200, { outcome: "busy", turn }]);
    const given = { answers: [["Blue"], ["as you like"]] };
    expect(await answer(request, given)).toEqual([200, { answered: true }]);
    expect(await answer(request, given)).toEqual([200, { answered: false }]);
    await steered.ended(turn);
    expect(lastResult()).toMatch(/Blue.*as you like/s);
    expect(steered.follower.items.get(request)).toMatchObject({ kind: "request", status: "completed" });
  });

  deepTest("decides by itself where no person answers its question", async () => {
    for (const [declined, words] of [
      ["unattended", "No person can answer"],
      ["expired", "No person answered in time"],
    ] as const) {
      // oxlint-disable no-await-in-loop -- one turn after the other
      const { turn, request } = await ask(`d-${declined}`, QUESTION);
      expect(await answer(request, { declined })).toEqual([200, { answered: true }]);
      await steered.ended(turn);
      expect(lastResult()?.split(words)).toHaveLength(3);
    }
  });

  deepTest("hears why it must not, and continues; without words its turn ends", async () => {
    const why = await ask("r1", COMMAND);
    // The arguments of the call may become known after the request.
    await expect
      .poll(() => steered.follower.items.get(why.request)?.request?.command, POLL)
      .toBe("echo it is done");
    expect(steered.follower.items.get(why.request)?.request?.always).toEqual(["echo *"]);
    await answer(why.request, { choice: "reject", message: "Not on a Monday." });
    await steered.ended(why.turn);
    expect(lastResult()).toContain("Not on a Monday.");
    expect(statusesOf("r1")).toContain("message completed");
    const calls = steered.model.calls.length;
    const silent = await ask("r2", COMMAND);
    expect(await answer(silent.request, { choice: "reject", message: null })).toEqual([
      200,
      { answered: true },
    ]);
    await steered.ended(silent.turn);
    expect(steered.model.calls).toHaveLength(calls + 1);
    const unattended = await ask("r3", COMMAND);
    await answer(unattended.request, { declined: "unattended" });
    await steered.ended(unattended.turn);
    expect(lastResult()).toContain("No person can grant this permission");
  });

  test(LEFT, () => leavesProcesses(steered));
});

onlyDeep(() => {
  describe.skipIf(!hasOpencode)("opencode acp", () => {
    let steered: Steered;
    beforeAll(async () => {
      steered = await Steered.start({}, OPENCODE_ACP);
    });
    afterAll(() => steered.stop());

    test(LEFT, () => leavesProcesses(steered));
  });
});
