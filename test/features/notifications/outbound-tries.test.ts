import { expect, it } from "vitest";
import {
  healthAfter,
  retryAfterMs,
  tryVerdict,
  type TryOutcome,
} from "../../../src/features/notifications/rules/outbound-tries.ts";

const answered = (status: number | null, retryAfter: number | null = null): TryOutcome => ({
  status,
  error: null,
  answer: "",
  tookMs: 1,
  retryAfterMs: retryAfter,
});
const ended = (ends: "failed" | "cancelled"): TryOutcome => ({ ...answered(550), ends });
const after = (tries: number, outcome = answered(500), jitter = 0.5) => {
  const verdict = tryVerdict(outcome, { tries, now: 0, jitter });
  return verdict.is === "again" ? verdict.dueAt / 1000 : verdict.is;
};

it("tries again after longer and longer pauses, and gives up after the eighth try", () => {
  expect([1, 2, 3, 4, 5, 6, 7, 8].map((tries) => after(tries))).toEqual([
    5,
    300,
    1800,
    7200,
    18_000,
    36_000,
    36_000,
    "failed",
  ]);
  expect([after(2, answered(null), 0), after(2, answered(302), 1)]).toEqual([270, 330]);
});

it("respects a longer Retry-After within bounds, and ends at 2xx and 410", () => {
  expect([after(1, answered(503, 60_000)), after(1, answered(503, 1e12))]).toEqual([60, 36_000]);
  expect([after(1, answered(204)), after(1, answered(410))]).toEqual(["delivered", "failed"]);
});

it("gives up a delivery that no later try can bring, and cancels one that may not be sent", () => {
  expect([after(1, ended("failed")), after(1, ended("cancelled"))]).toEqual(["failed", "cancelled"]);
  const health = { failingSince: 1, warnedAt: null };
  expect(healthAfter(health, { is: "cancelled" }, 2)).toEqual({ ...health, disable: null });
});

it("reads seconds and dates", () => {
  expect([retryAfterMs("120", 0), retryAfterMs("Thu, 01 Jan 1970 00:01:00 GMT", 1000)]).toEqual([
    120_000, 59_000,
  ]);
  expect([retryAfterMs("soon", 0), retryAfterMs("-1", 0), retryAfterMs(undefined, 0)]).toEqual([
    null,
    null,
    null,
  ]);
});
