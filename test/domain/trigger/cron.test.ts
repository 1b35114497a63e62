import * as Result from "effect/Result";
import { expect, test } from "vitest";
import { nextInstant, parseCron, upcomingInstants } from "../../../src/domain/trigger/cron.ts";
import type { CronSchedule } from "../../../src/domain/trigger/cron.ts";
import { allChanges, compareWithOracle } from "./cron-sample.ts";

const schedule = (expression: string): CronSchedule => Result.getOrThrow(parseCron(expression));
const refusal = (expression: string): string => {
  const result = parseCron(expression);
  return Result.isFailure(result) ? result.failure : "accepted";
};
/** The next `count` instants, as ISO text without the milliseconds that are always zero. */
const upcoming = (expression: string, zone: string, after: string, count = 3): readonly string[] =>
  upcomingInstants(schedule(expression), zone, { afterMs: Date.parse(after), count }).map((atMs) =>
    new Date(atMs).toISOString().replace(".000Z", "Z"),
  );

test("reads six fields", () => {
  expect(schedule("5,1 */20 9-17/4 1,15 JAN-mar MON,fri")).toEqual({
    expression: "5,1 */20 9-17/4 1,15 JAN-mar MON,fri",
    seconds: [1, 5],
    minutes: [0, 20, 40],
    hours: [9, 13, 17],
    days: [1, 15],
    months: [1, 2, 3],
    weekdays: [1, 5],
    wildcardHour: false,
    eitherDay: true,
  });
});

test("reads each field by its own range, whatever the same text meant before", () => {
  const halves = schedule("*/2 */2 */2 */2 */2 */2");
  const fives = schedule("5-7 5-7 5-7 5-7 5-7 5-7");
  for (let step = 1; step < 1000; step += 1) schedule(`*/${step} * * * * *`);
  expect(schedule("*/2 */2 */2 */2 */2 */2")).toEqual(halves);
  expect(schedule("5-7 5-7 5-7 5-7 5-7 5-7")).toEqual(fives);
  expect([halves.days, halves.months, halves.weekdays]).toEqual([
    [1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31],
    [1, 3, 5, 7, 9, 11],
    [0, 2, 4, 6],
  ]);
  expect([fives.days, fives.weekdays]).toEqual([
    [5, 6, 7],
    [0, 5, 6],
  ]);
  expect(refusal("24 24 24 24 24 24")).toContain('hour field "24"');
});

test.each(["0 0 0 30 2 *", "0 0 0 31 4,6,9,11 *", "0 0 0 31 FEB */2", "0 0 0 30-31 2 *"])(
  "refuses %j, which can never match [C01]",
  (expression) => {
    expect(refusal(expression)).toContain("never matches");
  },
);

test.each([
  ["0 0 22-3 * * *", "22-3", "22-23,0-3"],
  ["0 0 0 25-1 * *", "25-1", "25-31,1"],
  ["0 0 0 1 NOV-FEB *", "NOV-FEB", "NOV-DEC,JAN-FEB"],
  ["0 0 0 * * FRI-MON", "FRI-MON", "FRI-SUN,MON"],
  ["0 0 0 * * sat-tue", "sat-tue", "sat-SUN,MON-tue"],
  ["0 0 0 * * 5-1", "5-1", "5-7,1"],
  ["0 0 0 * * 5-0", "5-0", "5-7"],
])("says how to write the range of %j over the end of its field", (expression, range, remedy) => {
  expect(refusal(expression)).toContain(`${range} ends before it begins: write ${remedy}.`);
  expect(refusal(expression.replace(range, remedy))).toBe("accepted");
});

test("says that a range over the end of its field with a step is two ranges", () => {
  expect(refusal("0 0 22-3/2 * * *")).toContain("22-3 ends before it begins: write two ranges.");
});

test("accepts an impossible day if a weekday suffices [C01]", () => {
  expect(upcoming("0 0 0 30 2 1", "UTC", "2027-01-01T00:00:00Z", 2)).toEqual([
    "2027-02-01T00:00:00Z",
    "2027-02-08T00:00:00Z",
  ]);
});

test("finds 29 February over a century without one [C02]", () => {
  expect(upcoming("0 0 0 29 2 *", "UTC", "2026-11-20T00:00:00Z", 1)).toEqual(["2028-02-29T00:00:00Z"]);
  expect(upcoming("0 0 0 29 2 *", "UTC", "2096-02-29T00:00:00Z", 1)).toEqual(["2104-02-29T00:00:00Z"]);
  expect(upcoming("0 0 0 29 2 */7", "UTC", "2096-02-29T00:00:00Z", 1)).toEqual(["2128-02-29T00:00:00Z"]);
});

test.each([
  ["", 0],
  ["   ", 0],
  ["*", 1],
  ["0 0 * * *", 5],
  ["0 0 0 * * * *", 7],
])("requires six fields: %j has %i [C03]", (expression, count) => {
  expect(refusal(expression)).toContain(
    `six fields (second minute hour day month weekday). This one has ${count}`,
  );
});

test.each(["@daily", "@every 5m", "@reboot"])("refuses %j [C04]", (expression) => {
  expect(refusal(expression)).toContain("six fields");
});

test.each([
  ["0 0 0 L * *", "day"],
  ["0 0 0 LW * *", "day"],
  ["0 0 0 15W * *", "day"],
  ["0 0 0 ? * *", "day"],
  ["0 0 0 * * ?", "weekday"],
  ["0 0 0 * * 1#2", "weekday"],
  ["0 0 0 * * 5L", "weekday"],
  ["H * * * * *", "second"],
  ["0 H(0-7) * * * *", "minute"],
])("refuses %j, which only some libraries accept, and names the %s field [C04]", (expression, field) => {
  expect(refusal(expression)).toContain(`The ${field} field`);
});

test("normalises blanks and a trailing newline [C05]", () => {
  expect(schedule("  0  0\t2 * *   *\r\n")).toEqual(schedule("0 0 2 * * *"));
});

test("accepts weekday 7 and names in any case [C06]", () => {
  expect(schedule("0 0 0 * * 7").weekdays).toEqual([0]);
  expect(schedule("0 0 0 * * 5-7").weekdays).toEqual([0, 5, 6]);
  expect(schedule("0 0 0 * * 0-7").weekdays).toEqual([0, 1, 2, 3, 4, 5, 6]);
  expect(schedule("0 0 0 * * MON-FRI").weekdays).toEqual(schedule("0 0 0 * * mon-Fri").weekdays);
});

test.each([
  ["MON-SUN", [0, 1, 2, 3, 4, 5, 6]],
  ["fri-sun", [0, 5, 6]],
  ["SAT-SUN", [0, 6]],
  ["5-SUN", [0, 5, 6]],
  ["MON-SUN/2", [0, 1, 3, 5]],
  ["TUE,FRI-SUN", [0, 2, 5, 6]],
  ["SUN-MON", [0, 1]],
  ["SUN-SUN", [0]],
  ["SUN-SAT", [0, 1, 2, 3, 4, 5, 6]],
])("a range of weekdays ends with its Sunday: %s is %j [C06]", (weekday, expected) => {
  expect(schedule(`0 0 0 * * ${weekday}`).weekdays).toEqual(expected);
});

test("either day or weekday suffices if both are restricted [C07]", () => {
  expect(upcoming("0 0 0 13 * 5", "UTC", "2026-11-12T00:00:00Z", 4)).toEqual([
    "2026-11-13T00:00:00Z",
    "2026-11-20T00:00:00Z",
    "2026-11-27T00:00:00Z",
    "2026-12-04T00:00:00Z",
  ]);
});

test("a field that begins with * is not restricted, so that both must match [C07]", () => {
  expect(upcoming("0 0 0 */2 * 1", "UTC", "2026-11-01T00:00:00Z", 3)).toEqual([
    "2026-11-09T00:00:00Z",
    "2026-11-23T00:00:00Z",
    "2026-12-07T00:00:00Z",
  ]);
  expect(upcoming("0 45 5 */15 * *", "UTC", "2027-02-16T12:00:00Z", 1)).toEqual(["2027-03-01T05:45:00Z"]);
});

test("a list is a union: a value that comes twice counts once", () => {
  expect(schedule("1,0-2,1 1-15/5,6 */12,0 1,1 JAN,1-2 0,7,SUN-TUE")).toMatchObject({
    seconds: [0, 1, 2],
    minutes: [1, 6, 11],
    hours: [0, 12],
    days: [1],
    months: [1, 2],
    weekdays: [0, 1, 2],
  });
  expect(schedule("* * * * * *,1")).toMatchObject({ weekdays: [0, 1, 2, 3, 4, 5, 6], eitherDay: false });
  expect(refusal("0 1,1,70 * * * *")).toContain('The minute field "1,1,70"');
});

test.each([
  ["*/0 * * * * *", "second"],
  ["60 * * * * *", "second"],
  ["0 60 * * * *", "minute"],
  ["0 0 24 * * *", "hour"],
  ["0 0 0 0 * *", "day"],
  ["0 0 0 32 * *", "day"],
  ["0 0 0 1 13 *", "month"],
  ["0 0 0 1 0 *", "month"],
  ["0 0 0 * * 8", "weekday"],
  ["0 5-1 * * * *", "minute"],
  ["1e1 * * * * *", "second"],
  ["-1 * * * * *", "second"],
  ["+1 * * * * *", "second"],
  ["1.5 * * * * *", "second"],
  ["0x5 * * * * *", "second"],
  ["٣ * * * * *", "second"],
  ["５ * * * * *", "second"],
  ["1,,2 * * * * *", "second"],
  [",1 * * * * *", "second"],
  ["1- * * * * *", "second"],
  ["1/ * * * * *", "second"],
  ["1/2/3 * * * * *", "second"],
  ["1-2-3 * * * * *", "second"],
  ["jan * * * * *", "second"],
  ["0 0 0 * JANUARY *", "month"],
  ["0 0 0 * 1jan *", "month"],
  ["0 0 0 * mon *", "month"],
  ["0 0 0 * * MONDAY", "weekday"],
  ["0 0 0 * * fri-mon", "weekday"],
  ["0 0 0 * * 5-0", "weekday"],
  ["0 0 0 * * MON-SUN/0", "weekday"],
])("refuses %j and names the %s field [C08]", (expression, field) => {
  expect(refusal(expression)).toContain(`The ${field} field`);
});

test("refuses an expression of 1025 characters", () => {
  expect(refusal(`0 0 0 * * ${"1,".repeat(600)}1`)).toContain("1024 characters");
});

// New York goes from 02:00 to 03:00 on 2027-03-14 (07:00Z), and from 02:00 back to 01:00 on 2027-11-07 (06:00Z).

test("a fixed time inside a gap becomes the first instant after it [C11]", () => {
  expect(upcoming("0 30 2 * * *", "America/New_York", "2027-03-13T12:00:00Z")).toEqual([
    "2027-03-14T07:00:00Z",
    "2027-03-15T06:30:00Z",
    "2027-03-16T06:30:00Z",
  ]);
});

test("several fixed times inside a gap collapse to one fire [C11]", () => {
  expect(upcoming("0 */10 2,3 * * *", "America/New_York", "2027-03-14T06:30:00Z")).toEqual([
    "2027-03-14T07:00:00Z",
    "2027-03-14T07:10:00Z",
    "2027-03-14T07:20:00Z",
  ]);
});

test("a wildcard hour adds no fire inside a gap [C11]", () => {
  expect(upcoming("0 30 * * * *", "America/New_York", "2027-03-14T06:00:00Z")).toEqual([
    "2027-03-14T06:30:00Z",
    "2027-03-14T07:30:00Z",
    "2027-03-14T08:30:00Z",
  ]);
  expect(upcoming("0 30 */2 * * *", "America/New_York", "2027-03-14T05:00:00Z", 2)).toEqual([
    "2027-03-14T05:30:00Z",
    "2027-03-14T08:30:00Z",
  ]);
});

test("a fixed time inside an overlap runs on the first pass only [C12]", () => {
  expect(upcoming("0 30 1 * * *", "America/New_York", "2027-11-06T12:00:00Z", 2)).toEqual([
    "2027-11-07T05:30:00Z",
    "2027-11-08T06:30:00Z",
  ]);
  // Also when counting starts within or between the passes.
  expect(upcoming("0 30 1 * * *", "America/New_York", "2027-11-07T05:45:00Z", 1)).toEqual([
    "2027-11-08T06:30:00Z",
  ]);
  expect(upcoming("0 30 1 * * *", "America/New_York", "2027-11-07T06:10:00Z", 1)).toEqual([
    "2027-11-08T06:30:00Z",
  ]);
  expect(upcoming("0 0 2 * * *", "America/New_York", "2027-11-07T05:45:00Z", 1)).toEqual([
    "2027-11-07T07:00:00Z",
  ]);
});

test("a wildcard hour runs on both passes of an overlap [C12]", () => {
  expect(upcoming("0 30 * * * *", "America/New_York", "2027-11-07T05:00:00Z")).toEqual([
    "2027-11-07T05:30:00Z",
    "2027-11-07T06:30:00Z",
    "2027-11-07T07:30:00Z",
  ]);
});

test("handles shifts of half an hour [C11] [C12]", () => {
  // Lord Howe Island: 02:00 → 02:30 on 2027-10-03 (15:30Z the day before), back 02:00 → 01:30 on 2027-04-04 (15:00Z).
  expect(upcoming("0 15 2 * * *", "Australia/Lord_Howe", "2027-10-02T00:00:00Z", 2)).toEqual([
    "2027-10-02T15:30:00Z",
    "2027-10-03T15:15:00Z",
  ]);
  expect(upcoming("0 45 * * * *", "Australia/Lord_Howe", "2027-04-03T14:00:00Z", 2)).toEqual([
    "2027-04-03T14:45:00Z",
    "2027-04-03T15:15:00Z",
  ]);
});

test("handles a day that was skipped [C11]", () => {
  // Samoa went from 29 to 31 December 2011 at midnight (10:00Z on the 30th).
  expect(upcoming("0 0 9 30 12 *", "Pacific/Apia", "2011-12-01T00:00:00Z", 2)).toEqual([
    "2011-12-30T10:00:00Z",
    "2012-12-29T19:00:00Z",
  ]);
  expect(upcoming("0 0 * 30 12 *", "Pacific/Apia", "2011-12-01T00:00:00Z", 1)).toEqual([
    "2012-12-29T10:00:00Z",
  ]);
});

test("each matching second is a due instant of its own [C13]", () => {
  expect(upcoming("*/15 * * * * *", "UTC", "2026-11-20T23:59:40Z")).toEqual([
    "2026-11-20T23:59:45Z",
    "2026-11-21T00:00:00Z",
    "2026-11-21T00:00:15Z",
  ]);
});

test("the next instant is later than the given one, to the millisecond [C14]", () => {
  const minutely = schedule("0 * * * * *");
  const at = Date.UTC(2026, 10, 20, 6, 30);
  expect(nextInstant(minutely, "UTC", at - 1)).toBe(at);
  expect(nextInstant(minutely, "UTC", at - 0.5)).toBe(at);
  expect(nextInstant(minutely, "UTC", at)).toBe(at + 60_000);
  expect(nextInstant(minutely, "UTC", at + 1)).toBe(at + 60_000);
});

test.each([8.64e15, 8.64e15 + 1, Number.POSITIVE_INFINITY, Number.NaN, Date.UTC(9999, 11, 31)])(
  "finds no instant, and does not throw, after %d [C19]",
  (afterMs) => {
    expect(nextInstant(schedule("* * * * * *"), "America/New_York", afterMs)).toBeNull();
    expect(upcomingInstants(schedule("0 0 0 * * *"), "UTC", { afterMs, count: 5 })).toEqual([]);
  },
);

test("finds the last instants of the year 9999 and then no more [C19]", () => {
  const yearly = schedule("0 0 0 1 1 *");
  const rare = schedule("0 0 0 29 2 *");
  expect(nextInstant(yearly, "Asia/Tokyo", Date.UTC(9998, 5))).toBe(Date.UTC(9998, 11, 31, 15));
  expect(nextInstant(yearly, "Asia/Tokyo", Date.UTC(9999, 5))).toBeNull();
  expect(nextInstant(rare, "UTC", Date.UTC(9996, 5))).toBeNull();
});

test.each([0, -1, -8.64e15, Number.NEGATIVE_INFINITY])("counts from 1970 after %d [C19]", (afterMs) => {
  expect(nextInstant(schedule("0 0 0 * * *"), "UTC", afterMs)).toBe(afterMs === 0 ? 86_400_000 : 0);
});

test("agrees with brute force on 5,000 draws around every offset change of all zones from 2025 to 2029", () => {
  const seed = Number(process.env["CRON_SEED"] ?? Math.trunc(performance.timeOrigin + performance.now()));
  // No change is undone within a week: cron.deep.test.ts finds no more by looking every day.
  const changes = allChanges(7, { from: 2025, to: 2029 });
  const zones = new Set(changes.map(({ zone }) => zone));
  // Half-hour shifts, links, day-long shifts, and zones whose clocks change at their own hours.
  for (const zone of [
    "Australia/Lord_Howe",
    "Australia/LHI",
    "US/Eastern",
    "Pacific/Apia",
    "Africa/Casablanca",
  ]) {
    expect(zones).toContain(zone);
  }
  expect(changes.length).toBeGreaterThan(1400);
  const run = compareWithOracle({ pairs: 5_000, seed, changes });
  expect(run.differences.slice(0, 20), `seed ${seed}: set CRON_SEED to draw these pairs again`).toEqual([]);
  expect(run.compared).toBe(5_000);
  expect(run.empty).toBeLessThan(2_500);
});
