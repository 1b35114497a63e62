/** Many runs of the simulation, one after the other, and what a person needs of a failure. */
import { planOf, simulate } from "../run.ts";
import { reportOf, shorten } from "../shorten.ts";
import { SHORT_STEPS } from "../requests/steps.ts";
import { Totals } from "../totals.ts";

const steps = SHORT_STEPS;

/** Ends a batch that hangs. A batch takes fifteen seconds of one core. */
export const BATCH_LIMIT_MS = 300_000;

/** The first run that failed, made shorter; empty text where every run kept every invariant. */
export const explained = ({ failed }: Totals): string => {
  const [first] = failed;
  if (first === undefined) return "";
  return reportOf(shorten(simulate, first, planOf({ seed: first.seed, steps })), steps);
};

/** Runs the seeds from `seed` on, and prints the count. */
export const runsFrom = (seed: number, runs: number): Totals => {
  const totals = new Totals();
  for (let at = seed; at < seed + runs; at += 1) totals.add(simulate({ seed: at, steps }));
  process.stdout.write(
    `simulation: seed ${seed}, ${totals.runs} runs, ${totals.virtualDays} days, ${totals.hits.size} fault points\n`,
  );
  return totals;
};
