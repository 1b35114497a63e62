import { spawnSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import type { PlantResult } from "./plants-main.ts";
import { simulate } from "./run.ts";
import { Totals } from "./totals.ts";

/** Longer than those of `npm test`: more has come together by their end. */
const STEPS = 60;
const RUNS = 4_000;
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

describe("bugs that are planted in the service", () => {
  it(`are each found afresh within ${HUNT_RUNS} runs`, () => {
    const seed = randomInt(2 ** 31);
    const program = fileURLToPath(new URL("plants-main.ts", import.meta.url));
    const { stdout, stderr } = spawnSync(
      process.execPath,
      [program, "fresh", String(seed), String(HUNT_RUNS)],
      { encoding: "utf8", maxBuffer: 64 * 1024 * 1024 },
    );
    expect(stderr).toBe("");
    const results = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as PlantResult);
    for (const { name, runs } of results) say(`${name}: from seed ${seed} on, ${runs} runs`);
    expect(results.filter(({ violations }) => violations.length === 0).map(({ name }) => name)).toEqual([]);
  });
});
