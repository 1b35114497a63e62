/** Runs from new seeds. They are a file of their own, so that they run beside those from the fixed seed. */
import { randomInt } from "node:crypto";
import { describe, expect, it } from "vitest";
import { BATCH_LIMIT_MS, explained, runsFrom } from "./batch.ts";
import { PEOPLE_FROM } from "./config.ts";

/** `npm run test:deep` has thousands. */
const RUNS = 8;
/** Runs in which people talk to agents. */
const RUNS_WITH_PEOPLE = 4;

describe("a simulated service", () => {
  it.each([
    { seed: randomInt(PEOPLE_FROM - RUNS), runs: RUNS },
    { seed: randomInt(PEOPLE_FROM, 2 ** 31), runs: RUNS_WITH_PEOPLE },
  ])(
    "keeps every invariant in $runs runs from the fresh seed $seed",
    ({ seed, runs }) => {
      expect(explained(runsFrom(seed, runs))).toBe("");
    },
    BATCH_LIMIT_MS,
  );
});
