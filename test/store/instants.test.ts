import * as fc from "fast-check";
import { expect, it } from "vitest";
import { instantOf } from "../../src/store/postgres/connection/instants.ts";

/** As Postgres writes an instant in UTC: without zeros at the end of its fraction. */
const written = (at: Date, micros: number): string => {
  const [seconds = "", ms = ""] = at.toISOString().slice(0, -1).replace("T", " ").split(".");
  const fraction = `${ms}${String(micros).padStart(3, "0")}`.replace(/0+$/, "");
  return `${seconds}${fraction === "" ? "" : `.${fraction}`}+00`;
};

it("reads every instant that Postgres writes in UTC, and cuts microseconds", () => {
  const years = fc.date({ min: new Date("0200-01-01"), max: new Date("9999-12-31"), noInvalidDate: true });
  fc.assert(
    fc.property(years, fc.nat(999), (at, micros) => {
      expect(instantOf(written(at, micros))).toBe(at.getTime());
    }),
  );
});

it.each([
  ["2026-11-20 12:00:00+05:30", Date.UTC(2026, 10, 20, 6, 30)],
  ["2026-11-20 12:00:00.5-03", Date.UTC(2026, 10, 20, 15, 0, 0, 500)],
  ["2026-02-28 23:59:59.999999+00", Date.UTC(2026, 1, 28, 23, 59, 59, 999)],
  ["infinity", Number.NaN],
])("reads %s", (text, at) => {
  expect(instantOf(text)).toBe(at);
});
