import { expect, test } from "vitest";
import { countedStarts, countStart, excessStarts, type Starts } from "./starts.ts";

const NONE: Starts = { services: 0, databases: 0, daemons: 0, sandboxes: 0, browsers: 0 };

test("counts what tests start, by kind", () => {
  const before = countedStarts();
  countStart("browsers");
  countStart("browsers");
  expect((countedStarts()?.browsers ?? 0) - (before?.browsers ?? 0)).toBeGreaterThanOrEqual(2);
});

test("names each kind of which a run started more than the committed number", () => {
  const allowed = { ...NONE, services: 3, databases: 2 };
  expect(excessStarts({ ...NONE, services: 3, databases: 1 }, allowed)).toEqual([]);
  expect(excessStarts({ ...NONE, services: 4, databases: 2 }, allowed)).toEqual([
    expect.stringContaining("The tests started 4 services; 3 are committed"),
  ]);
});
