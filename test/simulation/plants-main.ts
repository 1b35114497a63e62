/**
 * Runs planted bugs, a program of its own since Node's own loader plants them. Prints one JSON line a bug.
 *
 *   node test/simulation/plants-main.ts known            each with its known seed, beside the clean program
 *   node test/simulation/plants-main.ts fresh SEED RUNS  looks for each from a seed on
 */
import { simulationWith } from "./planting.ts";
import { PLANTS } from "./plants.ts";
import { simulate } from "./run.ts";
import { SHORT_STEPS } from "./steps.ts";

export interface PlantResult {
  readonly name: string;
  /** The seed that found it. */
  readonly seed: number;
  readonly runs: number;
  /** What was found; none: the bug was not seen. */
  readonly violations: readonly string[];
  /** What the clean program's run of that seed broke. */
  readonly clean: readonly string[];
}

const [mode = "known", from = "1", runs = "2000"] = process.argv.slice(2);
const steps = SHORT_STEPS;

for (const plant of PLANTS) {
  const planted = await simulationWith(plant);
  const [first, most] = mode === "known" ? [plant.seed, 1] : [Number(from), Number(runs)];
  let at = first;
  let { violations } = planted({ seed: at, steps });
  for (; violations.length === 0 && at + 1 < first + most;) {
    at += 1;
    ({ violations } = planted({ seed: at, steps }));
  }
  const result: PlantResult = {
    name: plant.name,
    seed: at,
    runs: at - first + 1,
    violations,
    clean: simulate({ seed: at, steps }).violations,
  };
  process.stdout.write(`${JSON.stringify(result)}\n`);
}
