/** Planted bugs with the seeds that find them: a sample in `npm test`, all of them in the deep tests. */
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { isDeep, onlyDeep, sampled } from "../support/vitest/rings.ts";
import { editsOf, planted } from "./planting.ts";
import { checkersOf, runKnown, SAMPLE } from "./plants-known.ts";
import type { PlantResult } from "./plants-main.ts";
import { PLANTS } from "./plants.ts";

const root = new URL("../../", import.meta.url);

/** Ends a hung program. On a busy machine the sample takes half a minute of one core, all bugs take two minutes. */
const LIMIT_MS = 900_000;

const ALL = PLANTS.map(({ name }) => name);

/** The checkers that saw any of these bugs. */
const seenBy = (results: ReadonlyMap<string, PlantResult>, names: readonly string[]): readonly string[] => {
  const own = [...results].filter(([name]) => names.includes(name));
  return [...new Set(own.flatMap(([, result]) => checkersOf(result)))].toSorted();
};

describe("bugs that are planted in the real code", () => {
  it("are each a separate mutation that changes one place", () => {
    expect(new Set(ALL).size).toBe(PLANTS.length);
    for (const plant of PLANTS)
      for (const edit of editsOf(plant)) {
        const source = readFileSync(new URL(edit.file, root), "utf8");
        expect(planted(source, edit), plant.name).not.toBe(source);
      }
  });

  describe("run with their known seeds", () => {
    const asked = sampled(ALL, SAMPLE);
    let results: ReadonlyMap<string, PlantResult>;
    beforeAll(async () => {
      results = await runKnown(isDeep ? "known" : "found", asked);
    }, LIMIT_MS);

    it(`are each found by the simulation (${asked.length} of ${ALL.length})`, () => {
      expect(asked.filter((name) => (results.get(name)?.violations.length ?? 0) === 0)).toEqual([]);
    });

    onlyDeep(() => {
      it("are each absent from the clean program, in which the same seed finds nothing", () => {
        expect([...results.values()].filter(({ clean }) => clean.length > 0)).toEqual([]);
      });

      it("have one in the sample of npm test for every checker that sees one", () => {
        expect(seenBy(results, SAMPLE)).toEqual(seenBy(results, ALL));
      });
    });
  });
});
