/**
 * Holds the engine to the public tests of croner (github.com/Hexagon/croner, test/) wherever its rule is api.md 4
 * "Cron", and to the service's own rule wherever the two differ, with the reason. The cases are facts: which pattern
 * is refused, and which instant is due after which. Cases that count from the present there count from
 * 2026-11-20T06:30:15Z here, and local time is UTC. If a test there asks for instants before one, or whether one
 * matches, `nextInstant` must give the same ones.
 *
 * Tests there that are not about patterns are left out: starting, pausing, naming and stopping jobs, their callbacks,
 * contexts and errors; one-off dates in place of a pattern; and the options of a job (startAt, stopAt, interval,
 * maxRuns, dayOffset, mode, sloppyRanges, utcOffset), which move or thin out instants after the pattern was read. If
 * an option changes how the pattern itself is read (domAndDow, alternativeWeekdays), the case is among the
 * differences.
 */
import * as Result from "effect/Result";
import { describe, expect, test } from "vitest";
import { nextInstant, parseCron, upcomingInstants } from "../../../src/domain/trigger/cron.ts";
import type { CronSchedule } from "../../../src/domain/trigger/cron.ts";
import { DUE_OTHERWISE, REFUSED_HERE, patternsOf } from "./cron-differences.ts";
import { EARLIER_RUNS, LONG_RUNS, MATCHES, RUNS } from "./cron-patterns-runs.ts";

/** A row's cells; indented lines belong to the row above. */
const rows = (table: string): readonly (readonly string[])[] =>
  table
    .trim()
    .split(/\n(?! )/)
    .map((row) => row.split("|").map((cell) => cell.trim()));

const isFiveFields = (pattern: string): boolean => pattern.trim().split(/\s+/).length === 5;
const sixFields = (pattern: string): string => (isFiveFields(pattern) ? `0 ${pattern}` : pattern);
const schedule = (pattern: string): CronSchedule => Result.getOrThrow(parseCron(sixFields(pattern)));
const refusal = (pattern: string): string => {
  const result = parseCron(pattern);
  return Result.isFailure(result) ? result.failure : "accepted";
};
const iso = (atMs: number): string => new Date(atMs).toISOString().replace(".000Z", "Z");
const upcoming = (
  pattern: string,
  zone: string,
  range: { afterMs: number; count: number },
): readonly string[] => upcomingInstants(schedule(pattern), zone, range).map(iso);
/** The instant that `match` gets there: milliseconds do not count. */
const secondOf = (instant: string): number => Math.floor(Date.parse(instant) / 1000) * 1000;
const instantsOf = (cell: string): readonly string[] => cell.split(/\s+/).filter((instant) => instant !== "");

// Where the rules agree ---------------------------------------------------------------------------------------------

test.each(rows(RUNS))(
  "%j in %s after %s is due at the same instant as in croner",
  (pattern = "", zone = "", after = "", due = "") => {
    const instants = instantsOf(due);
    expect(instants.length).toBeGreaterThan(0);
    const range = { afterMs: Date.parse(after), count: instants.length };
    expect(upcoming(pattern, zone, range)).toEqual(instants);
  },
);

test.each(rows(LONG_RUNS))(
  "%j in %s after %s is due at the same instants as in croner, and as often",
  (pattern = "", zone = "", after = "", nth = "") => {
    const [count = "", last = ""] = nth.split(" ");
    const range = { afterMs: Date.parse(after), count: Number(count) };
    expect(upcoming(pattern, zone, range).at(-1)).toBe(last);
  },
);

test.each(rows(MATCHES))(
  "%j in %s matches the same instants as croner, and no others",
  (pattern = "", zone = "", yes = "", no = "") => {
    const isDue = (instant: string): boolean =>
      nextInstant(schedule(pattern), zone, secondOf(instant) - 1) === secondOf(instant);
    expect(instantsOf(yes).filter((instant) => !isDue(instant))).toEqual([]);
    expect(instantsOf(no).filter(isDue)).toEqual([]);
  },
);

test.each(rows(EARLIER_RUNS))(
  "%j in %s before %s was due at the same instant as in croner",
  (pattern = "", zone = "", before = "", due = "") => {
    const instants = instantsOf(due);
    const range = { afterMs: Date.parse(instants[0] ?? "") - 1, count: instants.length + 1 };
    const found = upcoming(pattern, zone, range);
    expect(found.slice(0, -1)).toEqual(instants);
    expect(Date.parse(found.at(-1) ?? "")).toBeGreaterThanOrEqual(Date.parse(before));
  },
);

test.each(
  patternsOf(`
  0,30 * * * * * | 0 0 1 * * * | 0 0 2 * * * | 0 0 13 * * * | 0 0 15 * * * | 0 0 1 * * | 0 0 12 15 * *
  0 0 12 31 1 * | 0 0 12 31 12 *
`),
)("reads %j, whose instants in croner are moved or reduced by an option", (pattern) => {
  expect(refusal(sixFields(pattern))).toBe("accepted");
});

test.each(["  0 0 * * *  ", "0  0   *    *     *", "0\t0\t*\t*\t*"])(
  "ignores blanks and tabs around and between the fields of %j",
  (pattern) => {
    expect(schedule(pattern)).toEqual(schedule("0 0 0 * * *"));
  },
);

test.each(
  patternsOf(`
  * * * * | @wekly | @reboot | @unknown | * * * 32 * * | * * * 0 * * | * * * * 7-13 * | * * * * 0-3 *
  * * * * * 8 | * * * * * -1 | * * 0,23,24 * * * | 60 * * * * | 0 24 * * * | 0 0 32 * * | 0 0 1 13 *
  0 0 * * 8 | 0-60 * * * * * | * 0-5,55,60 * * * * | 0 17-9 * * * | * 12-2 * * * * | * 50-40/5 * * * *
  * -9 * * * * | * 0- * * * * | * 0-0-0 * * * * | * 10-70/5 * * * * | * 10-20/0 * * * * | 0 */0 * * *
  * */0 * * * * | * */ * * * * | * /10 * * * * | * */5/5 * * * * | * */* * * * * | * 5/* * * * *
  * a/5 * * * * | * */a * * * * | * a * * * * | * *a * * * * | * *1 * * * * | 0 15W * * * *
  0 0 * * * 2W | 0 0 0 15W-20 * * | 0 12 10-15W * * | 0 +12 * * * | 0 12 1 * + | 0 0 0 * * * 2025
  0 0 0 1 1 * */2 | 0 0 0 1 1 * 0 | 0 0 0 1 1 * 10000
`),
)("refuses %j in either form", (pattern) => {
  expect(refusal(sixFields(pattern))).not.toBe("accepted");
});

// Where they differ -------------------------------------------------------------------------------------------------

test("five fields are refused: a schedule's second is written, never guessed [C03]", () => {
  const five = [RUNS, LONG_RUNS, MATCHES, EARLIER_RUNS]
    .flatMap((table) => rows(table).map(([pattern = ""]) => pattern))
    .filter(isFiveFields);
  expect(five.length).toBeGreaterThan(50);
  expect(five.filter((pattern) => !refusal(pattern).includes("This one has 5"))).toEqual([]);
});

describe.each(REFUSED_HERE)("croner accepts and this service refuses: $reason", ({ patterns, says }) => {
  test.each(patterns)("%j", (pattern) => {
    expect(refusal(sixFields(pattern))).toContain(says);
  });
});

test.each([
  ["* 5/5 * * * *", [5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55], "minutes"],
  ["* 1,2/5 * * * *", [1, 2, 7, 12, 17, 22, 27, 32, 37, 42, 47, 52, 57], "minutes"],
  ["* 0/10 * * * *", [0, 10, 20, 30, 40, 50], "minutes"],
  ["0/10 * * * * *", [0, 10, 20, 30, 40, 50], "seconds"],
  ["5/5 * * * * *", [5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55], "seconds"],
  ["15/5 * * * * *", [15, 20, 25, 30, 35, 40, 45, 50, 55], "seconds"],
  ["30/30 * * * * *", [30], "seconds"],
  ["* * 12/6 * * *", [12, 18], "hours"],
  ["* * * 5/2 * *", [5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31], "days"],
  ["* * * * 3/3 *", [3, 6, 9, 12], "months"],
  ["* * * * * 2/2", [2, 4, 6], "weekdays"],
] as const)(
  "%j is refused by croner unless it is sloppy; here n/step runs from n to the field's end, as its sloppy reading does",
  (pattern, values, field) => {
    expect(schedule(pattern)[field]).toEqual(values);
  },
);

test("*/61 is refused by croner; here a step over the field's end leaves its first value, as any step may", () => {
  expect(schedule("* */61 * * * *").minutes).toEqual([0]);
});

describe.each(Object.entries(DUE_OTHERWISE))("%s", (_reason, table) => {
  test.each(rows(table))(
    "%j in %s after %s is due in croner at %s, and here at %s",
    (pattern = "", zone = "", after = "", _croner = "", here = "") => {
      expect(upcoming(pattern, zone, { afterMs: Date.parse(after), count: 1 })).toEqual([here]);
    },
  );
});
