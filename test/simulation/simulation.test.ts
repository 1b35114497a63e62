/** Few runs, each time from new seeds. The deep tests have those from fixed seeds, and thousands. */
import { randomInt } from "node:crypto";
import { describe, expect, it } from "vitest";
import { BATCH_LIMIT_MS, explained, runsFrom } from "./world/batch.ts";
import { APPROVALS_FROM, PEOPLE_FROM, WARM_FROM, WORK_FROM } from "./config.ts";
import { simulate } from "./run.ts";
import { SHORT_STEPS as steps } from "./requests/steps.ts";

/** For each kind of runs. */
const RUNS = 4;

describe("a simulated service", () => {
  it("leaves the same trace from the same seed, byte for byte, and a different one from a different seed [I20]", () => {
    const seed = PEOPLE_FROM;
    const [first, second] = [simulate({ seed, steps }), simulate({ seed, steps })];
    expect(second.trace.join("\n")).toBe(first.trace.join("\n"));
    expect(second.digest).toBe(first.digest);
    expect(simulate({ seed: seed + 100, steps }).digest).not.toBe(first.digest);
  });

  it.each([
    { what: "without people", from: 0, below: PEOPLE_FROM },
    { what: "where people talk to agents", from: PEOPLE_FROM, below: APPROVALS_FROM },
    { what: "where people decide on agents' calls", from: APPROVALS_FROM, below: WARM_FROM },
    { what: "where sandboxes wait for sessions", from: WARM_FROM, below: WORK_FROM },
    { what: "where agents' work is saved", from: WORK_FROM, below: WORK_FROM + WARM_FROM },
  ])(
    `keeps every invariant in ${RUNS} runs from a fresh seed $what [I6] [I11] [I21] [K11] [E17] [E18]`,
    ({ from, below }) => {
      const totals = runsFrom(randomInt(from, below - RUNS), RUNS);
      expect(explained(totals)).toBe("");
      // Runs in which nothing happens would keep them, too.
      expect(totals.hits.get("passed admission.committed") ?? 0).toBeGreaterThan(0);
    },
    BATCH_LIMIT_MS,
  );
});
