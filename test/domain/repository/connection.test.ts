import { describe, expect, it } from "vitest";
import {
  CONNECTION_STEPS,
  failedStep,
  passedStep,
  unknown,
} from "../../../src/domain/repository/connection.ts";

describe("the steps of a connection", () => {
  it("begin with the host, and end with what needs all others", () => {
    expect(CONNECTION_STEPS[0]).toBe("host");
    expect(CONNECTION_STEPS.at(-1)).toBe("pull_requests");
    expect(new Set(CONNECTION_STEPS).size).toBe(CONNECTION_STEPS.length);
  });

  it("say what to do where they fail, and only there", () => {
    const advice = "Give write access.";
    expect(failedStep("push", "No push.", advice)).toEqual({
      step: "push",
      outcome: "failed",
      message: "No push.",
      advice,
    });
    expect(passedStep("host", "It answers.")).toMatchObject({ outcome: "passed", advice: null });
    expect(unknown("push", "The first push shows it.")).toMatchObject({ outcome: "unknown", advice: null });
  });
});
