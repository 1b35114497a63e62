/** Runs from new seeds. They are a file of their own, so that they run beside those from the fixed seed. */
import { randomInt } from "node:crypto";
import { describe, expect, it } from "vitest";
import { BATCH_LIMIT_MS, explained, runsFrom } from "./batch.ts";

/** With the runs from the fixed seed these are 100. `npm run test:deep` has more. */
const RUNS = 50;

describe("a simulated service", () => {
  it.each([randomInt(2 ** 31)])(
    `keeps every invariant in ${RUNS} runs from the fresh seed %d`,
    (seed) => {
      expect(explained(runsFrom(seed, RUNS))).toBe("");
    },
    BATCH_LIMIT_MS,
  );
});
