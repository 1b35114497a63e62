import { describe, expect, it } from "vitest";
import { entriesOf, type Part, type Refusal } from "../../../dashboard/automations/list.ts";
import type { Run } from "../../../dashboard/automations/words.ts";

const END = { runs: null, refusals: null };
const MORE = { cursor: "next" };
const run = (minute: string) =>
  ({ id: `run-${minute}`, received_at: `2026-11-29T10:${minute}:00.000Z` }) as Run;
const refusal = (minute: string) =>
  ({ id: `refusal-${minute}`, at: `2026-11-29T10:${minute}:00.000Z` }) as Refusal;
const part = (runs: string[], refusals: string[], next: Part["next"]): Part => ({
  runs: runs.map(run),
  refusals: refusals.map(refusal),
  next,
});
const ids = (...parts: Part[]) => entriesOf(parts).map(({ id }) => id);

describe("the list of runs and refused deliveries", () => {
  it("is by time, newest first", () => {
    expect(ids(part(["30", "10"], ["40", "20"], END))).toEqual([
      "refusal-40",
      "run-30",
      "refusal-20",
      "run-10",
    ]);
  });

  it("waits with what is older than the end of a list that has more", () => {
    const first = part(["50", "40"], ["45", "10"], { runs: MORE, refusals: null });
    expect(ids(first)).toEqual(["run-50", "refusal-45", "run-40"]);
    const second = part(["30", "20"], [], END);
    expect(ids(first, second)).toEqual(["run-50", "refusal-45", "run-40", "run-30", "run-20", "refusal-10"]);
  });

  it("waits with runs in the same way", () => {
    expect(ids(part(["50", "10"], ["40"], { runs: null, refusals: MORE }))).toEqual(["run-50", "refusal-40"]);
  });

  it("has a list to its end, though the other one has nothing", () => {
    expect(ids(part(["20"], [], { runs: MORE, refusals: null }))).toEqual(["run-20"]);
  });
});
