import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { editsOf, planted } from "./planting.ts";
import type { PlantResult } from "./plants-main.ts";
import { PLANTS } from "./plants.ts";

const program = fileURLToPath(new URL("plants-main.ts", import.meta.url));
const root = new URL("../../", import.meta.url);

/** Ends a hung program: all of them take half a minute of one core. */
const LIMIT_MS = 300_000;

/** One program runs all of them: a start of Node costs more than a run. */
const results = (): ReadonlyMap<string, PlantResult> => {
  const { stdout, stderr, status } = spawnSync(process.execPath, [program, "known"], {
    encoding: "utf8",
    maxBuffer: 16 * 1024 * 1024,
  });
  if (status !== 0) throw new Error(stderr);
  const lines = stdout.trim().split("\n");
  return new Map(
    lines.map((line) => {
      const result = JSON.parse(line) as PlantResult;
      return [result.name, result] as const;
    }),
  );
};

describe("bugs that are planted in the real code", () => {
  it("are each a separate mutation that changes one place", () => {
    expect(new Set(PLANTS.map(({ name }) => name)).size).toBe(PLANTS.length);
    for (const plant of PLANTS)
      for (const edit of editsOf(plant)) {
        const source = readFileSync(new URL(edit.file, root), "utf8");
        expect(planted(source, edit), plant.name).not.toBe(source);
      }
  });

  it(
    "are each found by the simulation with its known seed, and its clean run finds nothing",
    () => {
      const found = results();
      const unseen = PLANTS.filter(({ name }) => (found.get(name)?.violations.length ?? 0) === 0);
      expect(unseen.map(({ name }) => name)).toEqual([]);
      const unclean = [...found.values()].filter(({ clean }) => clean.length > 0);
      expect(unclean).toEqual([]);
    },
    LIMIT_MS,
  );
});
