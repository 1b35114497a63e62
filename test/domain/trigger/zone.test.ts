import { expect, test } from "vitest";
import { isZoneName, segmentAt, zoneNames } from "../../../src/domain/trigger/zone.ts";

test.each([
  "UTC",
  "Etc/UTC",
  "GMT",
  "EST5EDT",
  "EST",
  "MET",
  "Etc/GMT+5",
  "US/Eastern",
  "GB-Eire",
  "Asia/Kolkata",
  "Asia/Calcutta",
  "Europe/Kyiv",
  "Europe/Kiev",
  "America/Argentina/Buenos_Aires",
  "America/Buenos_Aires",
  "Antarctica/DumontDUrville",
  "Australia/Lord_Howe",
])("accepts the IANA name %s [C09]", (name) => {
  expect(isZoneName(name)).toBe(true);
});

test.each([
  "",
  "utc",
  "Utc",
  "europe/berlin",
  "EUROPE/BERLIN",
  "us/eastern",
  "est5edt",
  "Etc/gmt+5",
  "+05:30",
  "-08:00",
  "UTC+2",
  "GMT+2",
  "Z",
  "Mars/Olympus",
  "Europe/Berlin ",
  "Europe/Berlin\n",
  "posix/Europe/Berlin",
  "localtime",
  "Factory",
  "SystemV/EST5",
  "PST",
  "IST",
  "constructor",
  "../etc/passwd",
])("refuses %j [C09]", (name) => {
  expect(isZoneName(name)).toBe(false);
});

test("accepts every name that the runtime lists", () => {
  expect(Intl.supportedValuesOf("timeZone").filter((name) => !isZoneName(name))).toEqual([]);
});

test("accepts no name in another case [C09]", () => {
  const names = [...zoneNames].filter(isZoneName);
  expect(names.length).toBeGreaterThan(590);
  const others = names.flatMap((name) => [name.toLowerCase(), name.toUpperCase()]);
  expect(others.filter((other) => isZoneName(other) && !names.includes(other))).toEqual([]);
});

test("finds the millisecond of a change", () => {
  const change = Date.parse("2027-03-14T07:00:00Z");
  expect(segmentAt("America/New_York", change - 1)).toEqual({
    startMs: Date.UTC(2027, 0),
    endMs: change,
    offsetMs: -5 * 3_600_000,
  });
  expect(segmentAt("America/New_York", change).offsetMs).toBe(-4 * 3_600_000);
});

test("covers every instant without a gap or an overlap", () => {
  for (const zone of ["Africa/Casablanca", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu", "UTC"]) {
    let at = Date.UTC(2009, 0);
    while (at < Date.UTC(2040, 0)) {
      const segment = segmentAt(zone, at);
      expect(segment.startMs).toBe(at);
      expect(segment.endMs).toBeGreaterThan(at);
      at = segment.endMs;
    }
  }
});

test("has offsets to the second for old dates", () => {
  expect(segmentAt("Europe/Dublin", Date.UTC(1874, 11, 7)).offsetMs).toBe(-(25 * 60 + 21) * 1000);
});

test("an instant beyond the calendar, and an invalid zone name, are defects", () => {
  expect(() => segmentAt("UTC", Number.NaN)).toThrow(RangeError);
  expect(() => segmentAt("Mars/Olympus", 0)).toThrow(RangeError);
});
