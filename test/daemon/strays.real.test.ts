/** Commands of the real opencode that leave a process behind. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { callOf } from "./support/held-model.ts";
import {
  hasOpencode,
  OPENCODE_ACP,
  OPENCODE_SERVE,
  POLL,
  Steered,
  type RealAgent,
} from "./support/steered.ts";
import { onlyDeep } from "../support/vitest/rings.ts";

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

const describeAgent = (name: string, agent: RealAgent) =>
  describe.skipIf(!hasOpencode)(name, () => {
    let steered: Steered;
    beforeAll(async () => {
      steered = await Steered.start({}, agent);
    });
    afterAll(() => steered.stop());

    test("goes on after the grace of a process that holds a command's output, and names it", async () => {
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
    });
  });

describeAgent("opencode", OPENCODE_SERVE);
onlyDeep(() => describeAgent("opencode acp", OPENCODE_ACP));
