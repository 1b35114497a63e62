/** Runs from new seeds. They are a file of their own, so that they run beside those from the fixed seed. */
import { randomInt } from "node:crypto";
import { describe, expect, it } from "vitest";
import { BATCH_LIMIT_MS, explained, runsFrom } from "./batch.ts";
import { PEOPLE_FROM } from "./config.ts";

/** With the runs from fixed seeds these are 100. `npm run test:deep` has more, also with people from new seeds. */
const RUNS = 40;

describe("a simulated service", () => {
  it.each([randomInt(PEOPLE_FROM - RUNS)])(
    `keeps every invariant in ${RUNS} runs from the fresh seed %d`,
    (seed) => {
      expect(explained(runsFrom(seed, RUNS))).toBe("");
    },
    BATCH_LIMIT_MS,
  );
});
