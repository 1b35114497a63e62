import { describe, expect, it } from "vitest";
import { readiness } from "../../../src/http/operating/system.ts";

const WELL = {
  writes: true,
  notifies: true,
  isStarted: true,
  isSchedulerLate: false,
  lateDuties: [],
  failedDuties: [],
  freeBytes: null,
  isPaused: false,
} as const;

describe("readiness", () => {
  it("is given if writes, notifications, duties and disk are well", () => {
    expect(readiness(WELL)).toMatchObject({ status: "ready", late_duties: [] });
    expect(readiness({ ...WELL, freeBytes: 32 * 1024 ** 2 }).status).toBe("ready");
  });

  it("names duties that crash in a part, and does not end for them", () => {
    const failedDuties = ["orphans"] as const;
    expect(readiness({ ...WELL, failedDuties })).toMatchObject({
      status: "ready",
      checks: { duties: true },
      failed_duties: ["orphans"],
    });
  });

  it.each([
    ["database", { writes: false }],
    ["notifications", { notifies: false }],
    ["started", { isStarted: false }],
    ["scheduler", { isSchedulerLate: true }],
    ["duties", { lateDuties: ["recovery"] }],
    ["disk", { freeBytes: 32 * 1024 ** 2 - 1 }],
  ] as const)("is not given for %s alone, which is named", (name, seen) => {
    const { status, checks } = readiness({ ...WELL, ...seen });
    expect(status).toBe("not_ready");
    expect(Object.entries(checks).filter(([, isWell]) => !isWell)).toEqual([[name, false]]);
  });
});
