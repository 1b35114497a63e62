import * as Effect from "effect/Effect";
import { expect } from "vitest";
import { volatileMemory } from "../../../src/actors/volatile.ts";
import { isSettled } from "../../../src/features/approvals/rules/approval.ts";
import {
  approval,
  approvalMachine,
  type ApprovalSnapshot,
  type ApprovalStep,
} from "../../../src/features/approvals/machine.ts";
import type { Named } from "../../../src/machines/step.ts";
import { describeModel, everyStep } from "../../machines/model.ts";

const isDecision = ({ type }: ApprovalStep): boolean => type === "approval.given" || type === "denial.given";

describeModel<ApprovalSnapshot, ApprovalStep, Named>(
  {
    machine: approval,
    definition: approvalMachine,
    events: [
      { type: "approval.given" },
      { type: "denial.given" },
      { type: "deadline.passed" },
      { type: "call.begun" },
      { type: "call.refused" },
      { type: "call.ended" },
      { type: "call.lost" },
      { type: "result.delivered" },
    ],
    memory: Effect.sync(() => ({ id: "approval-1", memory: volatileMemory(approval.start({})) })),
  },
  {
    "B1: the first decision counts": everyStep(({ event, past, accepted }) => {
      if (isDecision(event)) expect(accepted).toBe(past.length === 0);
    }),
    "B2: one approval begins one call, and none begins without it": (path) => {
      const begun = path.filter(({ event, accepted }) => accepted && event.type === "call.begun");
      expect(begun.length).toBeLessThanOrEqual(1);
      for (const { past } of begun) expect(past).toEqual([{ type: "approval.given" }]);
    },
    "B3: a call that began ends as done or unknown": everyStep(({ before, snapshot, accepted }) => {
      if (before.state === "calling" && accepted) expect(["done", "unknown"]).toContain(snapshot.state);
    }),
    "B4: a call that no person decided is not made": everyStep(({ before, accepted, event }) => {
      if (before.state === "expired" && accepted) expect(event.type).toBe("result.delivered");
    }),
    "B5: a result is delivered once, after the end": (path) => {
      const delivered = path.filter(({ event, accepted }) => accepted && event.type === "result.delivered");
      expect(delivered.length).toBeLessThanOrEqual(1);
      for (const { before } of delivered) expect(isSettled(before.state)).toBe(true);
    },
  },
);
