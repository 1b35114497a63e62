/**
 * `npm run sim -- --seed N --runs M`: simulated runs from one seed on. Prints each failing run, made shorter, then virtual
 * time and hits a fault point, and one JSON object as its last line. `--plant NAME` runs the code with that bug in it,
 * `--trace` prints what happened. `--postgres` keeps the store in a real database: there the seed
 * gives the steps and the faults, and the database the order of answers.
 */
import { parseArgs } from "node:util";
import { PLANTS } from "./plants.ts";
import { simulationWith } from "./plants/planting.ts";
import { Bridge } from "./postgres/bridge.ts";
import { planOf, simulate } from "./run.ts";
import { reportOf, shorten } from "./shorten.ts";
import { SHORT_STEPS } from "./requests/steps.ts";
import { Totals } from "./totals.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: "1" },
    runs: { type: "string", default: "1" },
    steps: { type: "string", default: String(SHORT_STEPS) },
    plant: { type: "string" },
    postgres: { type: "boolean", default: false },
    trace: { type: "boolean", default: false },
  },
});
const [seed, runs, steps] = [Number(values.seed), Number(values.runs), Number(values.steps)];
const say = (line: string): void => void process.stdout.write(`${line}\n`);

const plant = PLANTS.find(({ name }) => name === values.plant);
if (values.plant !== undefined && plant === undefined) throw new Error(`there is no bug ${values.plant}`);
const run = plant === undefined ? simulate : await simulationWith(plant);

// DATABASE_URL names a server to use, which is not restarted; else one is started for this program.
const bridge = values.postgres ? new Bridge(process.env["DATABASE_URL"] ?? null) : null;
const totals = new Totals();
for (let at = seed; at < seed + runs; at += 1) {
  const result = run({ seed: at, steps }, bridge);
  totals.add(result);
  // A long run that is ended early has said how far it came.
  if (totals.runs % 500 === 0) say(`${totals.runs} runs so far, ${totals.failed.length} violations`);
  if (values.trace) say(result.trace.join("\n"));
  if (result.violations.length > 0) {
    // Over Postgres another run of a seed is another run: it is shown as it was.
    const plan = planOf({ seed: at, steps });
    say(reportOf(bridge === null ? shorten(run, result, plan) : { steps: plan, result, tries: 0 }, steps));
  }
}
await bridge?.close();
say(`${totals.runs} runs, ${totals.virtualDays} days of virtual time, ${totals.failed.length} violations`);
for (const [point, count] of totals.faults) say(`${String(count).padStart(9)}  ${point}`);
say(JSON.stringify(totals.summary));
process.exitCode = totals.failed.length > 0 ? 1 : 0;
