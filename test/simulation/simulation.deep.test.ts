import { execFile } from "node:child_process";
import { randomInt } from "node:crypto";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "vitest";
import { PEOPLE_FROM } from "./config.ts";
import type { PlantResult } from "./plants-main.ts";
import { PLANTS } from "./plants.ts";
import { Bridge } from "./postgres/bridge.ts";
import { simulate } from "./run.ts";
import { SHORT_STEPS } from "./requests/steps.ts";
import { summed, Totals, type Summary } from "./totals.ts";

/** PLATFORM_SIM_RUNS: for a shorter or a longer night. */
const RUNS = Number(process.env["PLATFORM_SIM_RUNS"] ?? 50_000);
/** The share of these in which people talk to agents. */
const WITH_PEOPLE = 0.4;
/** Over Postgres, where each takes far longer. */
const POSTGRES_RUNS = RUNS / 250;
/** Within so many runs each planted bug is found afresh. */
const HUNT_RUNS = 2_000;
/** Ends a hung run. By what 60 runs took, all of them take an hour of two cores. */
const LIMIT_MS = 4 * 3_600_000;
const CORES = availableParallelism();
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;
/** Runs leave much garbage behind. With more room for young objects (MB) they take 14 % less time. */
const NODE_OPTIONS = ["--max-semi-space-size=32"];

const say = (line: string): void => void process.stdout.write(`${line}\n`);

const told = (
  what: string,
  { runs, virtual_years: years, fault_points, least_hits, hits }: Summary,
): void => {
  say(
    `${what}: ${runs} runs, ${years} years of virtual time, ${fault_points} fault points, ${least_hits} hits at least`,
  );
  for (const [point, count] of Object.entries(hits).toSorted(([, m], [, n]) => n - m))
    say(`${String(count).padStart(9)}  ${point}`);
};

/** Runs a program of this directory. @returns its lines, also where it ends with 1: it found something then. */
const linesOf = async (program: string, args: readonly string[]): Promise<readonly string[]> => {
  const file = fileURLToPath(new URL(program, import.meta.url));
  const options = { encoding: "utf8", maxBuffer: MAX_OUTPUT_BYTES } as const;
  const { stdout, stderr } = await promisify(execFile)(
    process.execPath,
    [...NODE_OPTIONS, file, ...args],
    options,
  ).catch((error: unknown) => error as { readonly stdout: string; readonly stderr: string });
  expect(stderr).toBe("");
  return stdout.trim().split("\n");
};

/** A process makes so many runs, and their result is shown at once. So a night that is cut short has results, too. */
const PORTION = 500;

const portion = async (seed: number, runs: number): Promise<Summary> => {
  const lines = await linesOf("main.ts", ["--seed", String(seed), "--runs", String(runs)]);
  const summary = JSON.parse(lines.at(-1) ?? "") as Summary;
  say(summary.violations > 0 ? lines.join("\n") : `${runs} runs from seed ${seed}: 0 violations`);
  return summary;
};

/** The result of one core in its share of the runs; failing runs are shown. */
const share = async (seed: number, runs: number): Promise<Summary> => {
  const portions: Summary[] = [];
  for (let at = seed; at < seed + runs; at += PORTION)
    // oxlint-disable-next-line no-await-in-loop -- one after the other on its core
    portions.push(await portion(at, Math.min(PORTION, seed + runs - at)));
  return summed(portions);
};

describe("a long simulation of the service", () => {
  it.each([
    { where: "no people talk to agents", from: 0, to: PEOPLE_FROM, part: 1 - WITH_PEOPLE },
    { where: "people talk to agents", from: PEOPLE_FROM, to: 2 ** 31, part: WITH_PEOPLE },
  ])(
    `keeps every invariant in its part of ${RUNS} runs, where $where`,
    async ({ where, from, to, part }) => {
      const runs = Math.ceil((RUNS * part) / CORES);
      const seed = randomInt(from, Math.max(from + 1, to - CORES * runs));
      const shares = Array.from({ length: CORES }, (_, index) => share(seed + index * runs, runs));
      const summary = summed(await Promise.all(shares));
      told(`over the twin from seed ${seed}, where ${where}`, summary);
      expect(summary.failed_seeds).toEqual([]);
    },
    LIMIT_MS,
  );
});

describe("a long simulation of the service over Postgres", () => {
  const bridge = new Bridge(null);
  afterAll(() => bridge.close());

  it(`keeps every invariant in ${POSTGRES_RUNS} runs`, () => {
    const totals = new Totals();
    const seed = randomInt(PEOPLE_FROM - POSTGRES_RUNS);
    for (let at = seed; at < seed + POSTGRES_RUNS; at += 1)
      totals.add(simulate({ seed: at, steps: SHORT_STEPS }, bridge));
    told(`over Postgres from seed ${seed}`, totals.summary);
    expect(totals.failed.map((run) => [run.seed, run.violations])).toEqual([]);
  });
});

describe("bugs that are planted in the service", () => {
  it(
    `are each found again within ${HUNT_RUNS} runs`,
    async () => {
      const seed = randomInt(PEOPLE_FROM - HUNT_RUNS);
      // Each core takes its share of the bugs; how long one hides is not known, so neighbours go to different ones.
      const hunts = Array.from({ length: CORES }, (_, core) =>
        linesOf("plants-main.ts", [
          "fresh",
          String(seed),
          String(HUNT_RUNS),
          ...PLANTS.filter((_plant, index) => index % CORES === core).map(({ name }) => name),
        ]),
      );
      const results = (await Promise.all(hunts)).flat().map((line) => JSON.parse(line) as PlantResult);
      for (const { name, runs } of results) say(`${name}: from seed ${seed} on, ${runs} runs`);
      expect(results).toHaveLength(PLANTS.length);
      expect(results.filter(({ violations }) => violations.length === 0).map(({ name }) => name)).toEqual([]);
      expect(results.filter(({ clean }) => clean.length > 0)).toEqual([]);
    },
    LIMIT_MS,
  );
});
