import { describe, expect, it } from "vitest";
import { DEFINITIONS, MACHINE_NAMES } from "../../src/machines/definition.ts";
import { possibleSteps } from "../../src/machines/possible.ts";
import { session } from "../../src/machines/session.ts";
import { trigger } from "../../src/machines/trigger.ts";
import { commandWords, eventWords, nextWords, stateWords } from "../../src/machines/words.ts";

const of = (name: string) => {
  const machine = MACHINE_NAMES.find((known) => known === name);
  if (machine === undefined) throw new Error(`no machine ${name}`);
  return machine;
};
const SENTENCE = /^[A-Z].*\.$/;

describe.each(DEFINITIONS.map((definition) => [definition.name, definition] as const))(
  "the words of the machine %s",
  (name, { states, arrows }) => {
    const machine = of(name);

    it("have a sentence for each state and each event", () => {
      for (const state of states) expect(stateWords(machine, state.name)).toMatch(SENTENCE);
      for (const { event } of arrows) expect(eventWords(machine, event)).toMatch(SENTENCE);
      expect(eventWords(machine, "created")).toMatch(SENTENCE);
    });

    it("say what each command does", () => {
      for (const command of arrows.flatMap(({ commands }) => commands))
        expect([command, commandWords(machine, command)]).toEqual([command, expect.stringMatching(/^[a-z]/)]);
    });

    it("say of each event in each state what would follow", () => {
      // A refusal of a restart changes nothing, so it is no step.
      const steps = arrows.filter(({ event }) => event !== "slot.refused");
      const silent = steps.filter((arrow) => !SENTENCE.test(nextWords(machine, arrow) ?? ""));
      expect(silent.map(({ from, event, to }) => `${from} ${event} ${to}`)).toEqual([]);
    });
  },
);

const events = (steps: ReturnType<typeof possibleSteps>) => steps.map(({ event, to }) => `${event} ${to}`);

describe("the steps that can follow", () => {
  it("are those of the machine's present state, moves first", () => {
    const { snapshot } = session.start({});
    expect(events(possibleSteps("session", snapshot))).toEqual([
      "branch.failed failed",
      "stop.requested stopped",
      "delete.requested stopped",
      "user.deactivated stopped",
      "branch.created provisioning",
    ]);
  });

  it("follow the machine's own conditions", () => {
    const running = { sandboxId: "s1", branched: true, deleted: false, ending: null };
    const ending = { ...running, ending: "idle" as const };
    expect(events(possibleSteps("session", { state: "running", context: running }))).toContain(
      "idle.elapsed running",
    );
    const steps = events(possibleSteps("session", { state: "running", context: ending }));
    expect(steps).toContain("sandbox.ended stopped");
    expect(steps).not.toContain("idle.elapsed running");
    expect(possibleSteps("session", { state: "stopped", context: { ...running, deleted: true } })).toEqual(
      [],
    );
  });

  it("name what they order", () => {
    const { snapshot } = trigger.start({});
    expect(possibleSteps("trigger", { ...snapshot, state: "armed" })).toEqual([
      { from: "armed", event: "timer.elapsed", to: "firing", commands: ["accountForDue"] },
    ]);
  });

  it("of final states are none", () => {
    expect(possibleSteps("sandbox", { state: "archived", context: { ending: null } })).toEqual([]);
  });
});
