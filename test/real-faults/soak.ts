/**
 * `npm run soak [-- --minutes 10]`: the real service with real sandboxes under load, and what it holds meanwhile: heap after a
 * collection, memory, file descriptors, processes below it, mounts. Prints each measure's slope a minute, by least squares over
 * the samples after the warm-up, and whether all of them are flat; the last line is one JSON object. Ends with 1 where one is
 * not, or where anything was amiss in the end.
 */
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { descendants, sampleProcesses } from "../../src/sandbox/machine/processes.ts";
import { FaultyService } from "./installation.ts";
import { seedOfRun } from "./rounds.ts";
import { isRising, lineThrough, type Line, type Sample } from "./slope.ts";
import { Trial } from "./trial.ts";

const MINUTE_MS = 60_000;
const INTERVAL_MS = 5_000;
/** Caches fill, connections open, code is compiled: this part of the run says nothing of leaks. */
const WARM_UP_SHARE = 1 / 3;

/**
 * What counts as flat: a rise a minute of no more than this, or one that scatter explains (slope.ts). Sandboxes come and go,
 * and with them processes by the dozen.
 */
const FLAT = { heapMiB: 0.5, rssMiB: 3, descriptors: 1, processes: 1, mounts: 0.1 } as const;
type Measure = keyof typeof FLAT;
const MEASURES = Object.keys(FLAT) as Measure[];

const MIB = 1024 * 1024;

const measure = async ({ life }: FaultyService): Promise<Readonly<Record<Measure, number>>> => {
  const { heapUsed, rss } = await life.memory();
  return {
    heapMiB: heapUsed / MIB,
    rssMiB: rss / MIB,
    descriptors: readdirSync(`/proc/${life.pid}/fd`).length,
    processes: descendants(sampleProcesses(), life.pid).length,
    mounts: readFileSync(`/proc/${life.pid}/mountinfo`, "utf8").split("\n").length - 1,
  };
};

const say = (text: string) => process.stdout.write(`${text}\n`);
const rounded = (value: number) => Math.round(value * 100) / 100;

const { values } = parseArgs({ options: { minutes: { type: "string", default: "10" } } });
const minutes = Number(values.minutes);
if (!(minutes > 0)) throw new Error(`--minutes is ${values.minutes}; expected a number above 0`);
const seed = seedOfRun();
say(`${minutes} minutes at load, REAL_FAULTS_SEED=${seed}`);

const service = await FaultyService.make({}, { program: "measured" });
try {
  await service.start();
  await service.furnish();
  const trial = new Trial({ service, seed });
  await trial.begin();
  const begun = performance.now();
  const samples: Record<Measure, Sample[]> = {
    heapMiB: [],
    rssMiB: [],
    descriptors: [],
    processes: [],
    mounts: [],
  };
  for (let passed = 0; passed < minutes; passed = (performance.now() - begun) / MINUTE_MS) {
    await delay(INTERVAL_MS);
    const sample = await measure(service);
    for (const name of MEASURES) samples[name].push({ minutes: passed, value: sample[name] });
    say(MEASURES.map((name) => `${name} ${rounded(sample[name])}`).join(", "));
  }
  const counted = (name: Measure) => samples[name].filter((one) => one.minutes >= minutes * WARM_UP_SHARE);
  const lines = Object.fromEntries(MEASURES.map((name) => [name, lineThrough(counted(name))])) as Record<
    Measure,
    Line
  >;
  const slopes = Object.fromEntries(MEASURES.map((name) => [name, rounded(lines[name].slope)]));
  const last = Object.fromEntries(MEASURES.map((name) => [name, rounded(samples[name].at(-1)?.value ?? 0)]));
  for (const name of MEASURES)
    say(`${name}: ${slopes[name]} ± ${rounded(lines[name].error)} a minute, flat up to ${FLAT[name]}`);
  await trial.check();
  for (const fault of trial.violations) say(fault);
  const flat = !MEASURES.some((name) => isRising(lines[name], FLAT[name]));
  const { answered } = trial.load;
  process.exitCode = flat && trial.violations.length === 0 ? 0 : 1;
  await trial.load.end();
  say(JSON.stringify({ minutes, seed, answered, slopes, last, flat, violations: trial.violations.length }));
} finally {
  await service.close();
}
