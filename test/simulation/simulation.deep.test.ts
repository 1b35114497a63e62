import { randomInt } from "node:crypto";
import { describe, expect, it } from "vitest";
import { PLANTS } from "./plants.ts";
import { simulationWith } from "./planting.ts";
import { simulate } from "./run.ts";
import { Totals } from "./totals.ts";

/** Longer than those of `npm test`: more has come together by their end. */
const STEPS = 60;
const RUNS = 10_000;
/** Within so many runs each planted bug is found afresh. */
const HUNT_RUNS = 2_000;

const say = (line: string): void => void process.stdout.write(`${line}\n`);

describe("a service that is simulated for long", () => {
  it(`keeps every invariant in ${RUNS} runs`, () => {
    const totals = new Totals();
    const seed = randomInt(2 ** 31);
    for (let at = seed; at < seed + RUNS; at += 1) totals.add(simulate({ seed: at, steps: STEPS }));
    say(`seed ${seed}: ${JSON.stringify(totals.summary)}`);
    expect(totals.failed.map((run) => [run.seed, run.violations])).toEqual([]);
  });
});

describe("a bug that is planted in the service", () => {
  it.each(PLANTS)(`$name is found afresh within ${HUNT_RUNS} runs`, async (plant) => {
    const planted = await simulationWith(plant);
    const seed = randomInt(2 ** 31);
    let runs = 0;
    for (let isFound = false; !isFound && runs < HUNT_RUNS; runs += 1) {
      isFound = planted({ seed: seed + runs, steps: 25 }).violations.length > 0;
    }
    say(`${plant.name}: seed ${seed}, ${runs} runs`);
    expect(runs).toBeLessThan(HUNT_RUNS);
  });
});
