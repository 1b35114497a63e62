/** Simulated runs over a real Postgres, which is this file's own: its server is killed on the way. */
import { randomInt } from "node:crypto";
import { afterAll, describe, expect, it } from "vitest";
import { PEOPLE_FROM } from "./config.ts";
import { Bridge } from "./postgres/bridge.ts";
import { simulate } from "./run.ts";
import { SHORT_STEPS } from "./requests/steps.ts";
import { Totals } from "./totals.ts";

const bridge = new Bridge(null);
afterAll(() => bridge.close());

const FIXED = { seed: 1, runs: 1 };
const FRESH_RUNS = 1;
/** Ends a hung run: both take ten seconds of one core. */
const LIMIT_MS = 300_000;

describe("a simulated service over Postgres", () => {
  it.each([FIXED, { seed: randomInt(PEOPLE_FROM), runs: FRESH_RUNS }])(
    "keeps every invariant from the seed $seed on (runs: $runs), despite broken connections",
    ({ seed, runs }) => {
      const totals = new Totals();
      for (let at = seed; at < seed + runs; at += 1)
        totals.add(simulate({ seed: at, steps: SHORT_STEPS }, bridge));
      expect(totals.failed.map((run) => [run.seed, run.violations, run.trace])).toEqual([]);
      expect(totals.hits.get("passed admission.committed") ?? 0).toBeGreaterThan(0);
    },
    LIMIT_MS,
  );
});
