/**
 * `npm run sim -- --seed N --runs M`: simulated runs from one seed on. Prints each failing run, made shorter, then virtual
 * time and hits a fault point, and one JSON object as its last line. `--plant NAME` runs the code with that bug in it,
 * `--trace` prints what happened.
 */
import { parseArgs } from "node:util";
import { PLANTS } from "./plants.ts";
import { simulationWith } from "./planting.ts";
import { planOf, simulate } from "./run.ts";
import { reportOf, shorten } from "./shorten.ts";
import { SHORT_STEPS } from "./steps.ts";
import { Totals } from "./totals.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: "1" },
    runs: { type: "string", default: "1" },
    steps: { type: "string", default: String(SHORT_STEPS) },
    plant: { type: "string" },
    trace: { type: "boolean", default: false },
  },
});
const [seed, runs, steps] = [Number(values.seed), Number(values.runs), Number(values.steps)];
const say = (line: string): void => void process.stdout.write(`${line}\n`);

const plant = PLANTS.find(({ name }) => name === values.plant);
if (values.plant !== undefined && plant === undefined) throw new Error(`there is no bug ${values.plant}`);
const run = plant === undefined ? simulate : await simulationWith(plant);

const totals = new Totals();
for (let at = seed; at < seed + runs; at += 1) {
  const result = run({ seed: at, steps });
  totals.add(result);
  if (values.trace) say(result.trace.join("\n"));
  if (result.violations.length > 0) {
    say(reportOf(shorten(run, result, planOf({ seed: at, steps })), steps));
  }
}
say(`${totals.runs} runs, ${totals.virtualDays} days of virtual time, ${totals.failed.length} violations`);
for (const [point, count] of totals.faults) say(`${String(count).padStart(9)}  ${point}`);
say(JSON.stringify(totals.summary));
process.exitCode = totals.failed.length > 0 ? 1 : 0;
