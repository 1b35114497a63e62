import * as fc from "fast-check";
import { expect, it } from "vitest";
import { instant } from "../../src/http/steps/wire.ts";

it("writes every instant as ISO 8601 in UTC with milliseconds", () => {
  fc.assert(
    fc.property(fc.array(fc.date({ noInvalidDate: true })), (dates) => {
      expect(dates.map((date) => instant(date.getTime()))).toEqual(dates.map((date) => date.toISOString()));
    }),
  );
  expect(() => instant(Number.NaN)).toThrow(RangeError);
});
