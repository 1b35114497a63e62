import { describe, expect, it } from "vitest";
import {
  cronOf,
  pickedOf,
  scheduleHint,
  scheduleWords,
  scheduleWordsFor,
} from "../../../dashboard/automations/schedule.ts";

const WINTER = "2027-01-04T08:00:00.000Z";

describe("a schedule", () => {
  it.each([
    ["0 0 8 1-7 * MON", true],
    [" 0  0 8 1 1 1 ", true],
    ["0 0 8 1-7 * *", false],
    ["0 0 8 */2 * MON", false],
    ["0 0 8 * * MON", false],
  ])("of days and weekdays says that one of the two is enough: %s", (cron, says) => {
    expect(scheduleHint(cron)?.includes("one of the two is enough") ?? false).toBe(says);
  });

  it.each([
    ["0 0 9 * * 1", "Every Monday at 09:00"],
    ["0 30 2 * * *", "Every day at 02:30"],
    ["0 0 9 * * MON-FRI", "Every weekday at 09:00"],
    ["0 0 9 * * sun,3", "Every Wednesday and Sunday at 09:00"],
    ["0 0 9 * * 6-7", "Every Saturday and Sunday at 09:00"],
    ["0 5 0 31 * *", "Every month on day 31 at 00:05"],
    ["0 0 9 2 jan *", "Every year on 2 January at 09:00"],
    ["0 */15 * * * *", "Every 15 minutes"],
    ["0 0 * * * *", "Every hour"],
    ["0 5 * * * *", "Every hour at minute 5"],
  ])("has words: %s", (cron, words) => {
    expect(scheduleWords(cron)).toBe(words);
  });

  it.each([
    "1 0 9 * * *",
    "0 0 9,17 * * *",
    "0 0 9 1 * 1",
    "0 */7 * * * *",
    "0 0 9 * 1-3 *",
    "0 0 9 * *",
    "0 0 25 * * *",
    "",
  ])("has none, rather than wrong ones: %s", (cron) => {
    expect(scheduleWords(cron)).toBeNull();
  });

  it("is said on the reader's clock, on the day that the reader has", () => {
    const zones = { zone: "Europe/Berlin", own: "America/Los_Angeles", at: WINTER };
    expect(scheduleWordsFor("0 0 9 * * 1", zones)).toBe("Every Monday at 00:00");
    expect(scheduleWordsFor("0 30 8 * * 1-5", zones)).toBe(
      "Every Monday, Tuesday, Wednesday, Thursday and Sunday at 23:30",
    );
    expect(scheduleWordsFor("0 30 8 * * *", zones)).toBe("Every day at 23:30");
    expect(scheduleWordsFor("0 30 8 1 * *", zones)).toBeNull();
    expect(scheduleWordsFor("0 5 * * * *", { ...zones, own: "Asia/Kolkata" })).toBe(
      "Every hour at minute 35",
    );
    expect(scheduleWordsFor("0 0 9 * * 1", { ...zones, zone: "Nowhere/Else" })).toBeNull();
  });

  it.each(["0 0 9 * * *", "0 30 18 * * 1-5", "0 5 7 * * 0", "0 5 7 * * 1,3,5", "0 0 6 31 * *"])(
    "is picked as it is written: %s",
    (cron) => {
      const picked = pickedOf(cron);
      expect(picked === null ? null : cronOf(picked)).toBe(cron);
    },
  );

  it("that words cannot pick is a line", () => {
    for (const cron of ["0 0 9,17 * * *", "0 0 9 2 1 *", "0 0 * * * *", "x"])
      expect(pickedOf(cron)).toBeNull();
  });
});
