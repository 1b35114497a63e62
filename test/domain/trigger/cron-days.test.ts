import { expect, it } from "vitest";
import { hasEitherDay } from "../../../src/domain/trigger/cron-days.ts";

it.each([
  ["0 0 8 1-7 * MON", true],
  ["0 0 8 1-7 * *", false],
  ["0 0 8 */2 * MON", false],
  ["0 0 8 1-7 *", false],
])("day and weekday of %j are alternatives: %s", (cron, either) => {
  expect(hasEitherDay(cron.split(" "))).toBe(either);
});
