import { expect, it } from "vitest";
import { runOutcome, type RunSession } from "../../../src/domain/session/run-outcome.ts";

const SESSION: RunSession = {
  status: "running",
  failureCode: null,
  stopReason: null,
  lastTurn: null,
  isAtWork: false,
};
const COMPLETED = { state: "completed", error: null } as const;
const FAILED = { state: "failed", error: { code: "no_model", message: "no key" } } as const;

it("says that a run goes on until its first turn has ended, and while the agent works", () => {
  expect(runOutcome(SESSION)).toEqual({ state: "running", code: null });
  expect(runOutcome({ ...SESSION, lastTurn: COMPLETED, isAtWork: true }).state).toBe("running");
  expect(runOutcome({ ...SESSION, lastTurn: COMPLETED })).toEqual({ state: "finished", code: null });
});

it("puts a failure of the session before one of its turn, and both before a stop", () => {
  const stopped = { ...SESSION, status: "stopped", stopReason: "idle" } as const;
  expect(runOutcome({ ...stopped, lastTurn: FAILED })).toEqual({ state: "failed", code: "no_model" });
  const lost = { ...SESSION, status: "failed", failureCode: "sandbox_lost", lastTurn: FAILED } as const;
  expect(runOutcome(lost)).toEqual({ state: "failed", code: "sandbox_lost" });
  expect(runOutcome({ ...stopped, lastTurn: COMPLETED }).state).toBe("finished");
  expect(runOutcome(stopped)).toEqual({ state: "stopped", code: "idle" });
});
