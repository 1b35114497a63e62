/**
 * Runs planted bugs, a program of its own since Node's own loader plants them. Prints one JSON line a bug.
 *
 *   node test/simulation/plants-main.ts known            each with its known seed, beside the clean program
 *   node test/simulation/plants-main.ts fresh SEED RUNS  looks for each from a seed on; names after it: only for those
 *   node test/simulation/plants-main.ts reseed SEED RUNS  the same for those whose known seed shows nothing (any more), and
 *                                                        writes down what it finds
 */
import { readFileSync, writeFileSync } from "node:fs";
import {
  APPROVALS_FROM,
  hasApprovals,
  hasPeople,
  hasWarm,
  hasWork,
  PEOPLE_FROM,
  WARM_FROM,
  WORK_FROM,
} from "./config.ts";
import { simulationWith } from "./plants/planting.ts";
import { PLANTS, type Plant } from "./plants.ts";
import { simulate } from "./run.ts";
import { SHORT_STEPS } from "./requests/steps.ts";

export interface PlantResult {
  readonly name: string;
  /** The seed that found it. */
  readonly seed: number;
  readonly runs: number;
  /** The violations that were found; empty: the bug was not seen. */
  readonly violations: readonly string[];
  /** What the clean program's run of that seed broke. */
  readonly clean: readonly string[];
}

const [mode = "known", from = "1", runs = "2000", ...names] = process.argv.slice(2);
const steps = SHORT_STEPS;

const FILES = [
  "plants.ts",
  "plants-of-approvals.ts",
  "plants-of-conversations.ts",
  "plants-of-invariants.ts",
  "plants-of-people.ts",
  "plants-of-placement.ts",
  "plants-of-requests.ts",
  "plants-of-warm.ts",
].map((name) => new URL(name, import.meta.url));

const writtenOf = (seed: number): string =>
  seed < PEOPLE_FROM ? String(seed) : String(seed).replace(/\B(?=(?:\d{3})+$)/g, "_");

/** The seed in the list of bugs becomes this one. */
const writeDown = ({ name }: Plant, seed: number): void => {
  for (const file of FILES) {
    const [before, after, ...more] = readFileSync(file, "utf8").split(`    name: "${name}",`);
    if (before === undefined || after === undefined || more.length > 0) continue;
    const text = after.replace(/ {4}seed: [\d_]+,/, `    seed: ${writtenOf(seed)},`);
    writeFileSync(file, `${before}    name: "${name}",${text}`);
  }
};

/** A bug that concerns people is looked for where there are some. */
const firstOf = ({ seed }: Plant): number => {
  if (hasWork(seed)) return Number(from) + WORK_FROM;
  if (hasWarm(seed)) return Number(from) + WARM_FROM;
  if (hasApprovals(seed)) return Number(from) + APPROVALS_FROM;
  return Number(from) + (hasPeople(seed) ? PEOPLE_FROM : 0);
};

for (const plant of PLANTS) {
  if (names.length > 0 && !names.includes(plant.name)) continue;
  const planted = await simulationWith(plant);
  if (mode === "reseed" && planted({ seed: plant.seed, steps }).violations.length > 0) continue;
  const [first, most] = mode === "known" ? [plant.seed, 1] : [firstOf(plant), Number(runs)];
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
  if (mode === "reseed" && result.violations.length > 0 && result.clean.length === 0) writeDown(plant, at);
  process.stdout.write(`${JSON.stringify(result)}\n`);
}
