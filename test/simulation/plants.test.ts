/** Planted bugs: that each still fits the code, and in the deep tests that the seed known for it finds it. */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { beforeAll, describe, expect, it } from "vitest";
import { onlyDeep } from "../support/vitest/rings.ts";
import { editsOf, planted } from "./plants/planting.ts";
import type { PlantResult } from "./plants-main.ts";
import { PLANTS } from "./plants.ts";

const root = new URL("../../", import.meta.url);
const program = fileURLToPath(new URL("plants-main.ts", import.meta.url));

/** Ends a hung program. All bugs take four minutes of one core. */
const LIMIT_MS = 1_800_000;

describe("bugs that are planted in the real code", () => {
  it("are each a separate mutation that changes one place", () => {
    expect(new Set(PLANTS.map(({ name }) => name)).size).toBe(PLANTS.length);
    for (const plant of PLANTS)
      for (const edit of editsOf(plant)) {
        const source = readFileSync(new URL(edit.file, root), "utf8");
        expect(planted(source, edit), plant.name).not.toBe(source);
      }
  });

  onlyDeep(() => {
    describe("run with their known seeds", () => {
      let results: readonly PlantResult[];
      // One process runs all of them: a start of Node costs more than a run.
      beforeAll(async () => {
        const { stdout } = await promisify(execFile)(process.execPath, [program, "known"], {
          encoding: "utf8",
          maxBuffer: 16 * 1024 * 1024,
        });
        results = stdout
          .trim()
          .split("\n")
          .map((line) => JSON.parse(line) as PlantResult);
        expect(results).toHaveLength(PLANTS.length);
      }, LIMIT_MS);

      it("are each found by the simulation", () => {
        expect(results.filter(({ violations }) => violations.length === 0).map(({ name }) => name)).toEqual(
          [],
        );
      });

      it("are each absent from the clean program, in which the same seed finds nothing", () => {
        expect(results.filter(({ clean }) => clean.length > 0)).toEqual([]);
      });
    });
  });
});
