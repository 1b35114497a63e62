/** Makes a failing run shorter: leaves steps out, many at a time and then one by one, as long as it still fails. */
import type { simulate, RunResult } from "./run.ts";
import type { Step } from "./requests/steps.ts";

export interface Shortened {
  readonly steps: readonly Step[];
  readonly result: RunResult;
  readonly tries: number;
}

/** Runs that are tried at the most. */
const TRIES_MAX = 120;

/** The kind of a violation: a shorter run with another kind is no explanation. */
const kindOf = ({ violations: [first = ""] }: RunResult): string => first.split(" ")[0] ?? "";

export const shorten = (run: typeof simulate, failing: RunResult, steps: readonly Step[]): Shortened => {
  const kind = kindOf(failing);
  let best: Shortened = { steps, result: failing, tries: 0 };
  let tries = 0;
  for (let size = Math.ceil(steps.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let from = 0; from < best.steps.length && tries < TRIES_MAX;) {
      const only = best.steps.toSpliced(from, size);
      tries += 1;
      const result = run({ seed: failing.seed, steps: steps.length, only });
      if (result.violations.length > 0 && kindOf(result) === kind) best = { steps: only, result, tries };
      else from += size;
    }
  }
  return { ...best, tries };
};

/** What a person reads of a run that failed. */
export const reportOf = ({ steps, result, tries }: Shortened, from: number): string =>
  [
    `seed ${result.seed}: ${result.violations.join("; ")}`,
    `${steps.length} of ${from} steps are enough (${tries} shorter runs tried):`,
    ...steps.map(({ do: kind, which, how, wait }) => `  ${kind} ${which} ${how}, then ${wait} ms`),
    "trace:",
    ...result.trace.map((line) => `  ${line}`),
  ].join("\n");
