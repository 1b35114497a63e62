/**
 * A call of an agent's tool that a person decides on (api.md 5 "Approvals"). Nothing is called before a person approves it.
 *
 *  B1 The first decision counts. A later one changes nothing.
 *  B2 One approval begins one call: only `approved` leads to `calling`, and nothing leads back.
 *  B3 A call that began and whose end is not known is `unknown`. It is not begun again.
 *  B4 A call that no person decided in time is `expired`. It is not made.
 *  B5 The agent gets the result once: nothing is delivered before the end, and nothing twice.
 *
 * The machine has no commands. The stored state itself names the next step, and src/features/approvals/duty.ts performs it: an
 * `approved` call is made, and a settled one without its delivery is delivered.
 */
import { assign, setup } from "xstate";
import type { ApprovalState } from "./rules/approval.ts";
import { pureMachine, type Named, type Snapshot } from "../../machines/step.ts";

export interface ApprovalContext {
  /** The agent has the result, or knows that the call was not made. */
  readonly delivered: boolean;
}
export type ApprovalSnapshot = Snapshot<ApprovalState, ApprovalContext>;

export type ApprovalEventType =
  | "approval.given"
  | "denial.given"
  | "deadline.passed"
  /** The service is about to send the call. */
  | "call.begun"
  /** The rules do not allow the call any more. */
  | "call.refused"
  | "call.ended"
  /** The service was stopped during the call, or its connection broke. */
  | "call.lost"
  | "result.delivered";
export interface ApprovalStep {
  readonly type: ApprovalEventType;
}

const settledState = {
  on: { "result.delivered": { guard: "isUndelivered" as const, actions: "noteDelivery" as const } },
};

export const approvalMachine = setup({
  types: { context: {} as ApprovalContext, events: {} as ApprovalStep },
  guards: { isUndelivered: ({ context }) => !context.delivered },
  actions: { noteDelivery: assign({ delivered: true }) },
}).createMachine({
  id: "approval",
  context: { delivered: false },
  initial: "pending",
  states: {
    pending: {
      on: {
        "approval.given": { target: "approved" },
        "denial.given": { target: "denied" },
        "deadline.passed": { target: "expired" },
      },
    },
    approved: { on: { "call.begun": { target: "calling" }, "call.refused": { target: "refused" } } },
    calling: { on: { "call.ended": { target: "done" }, "call.lost": { target: "unknown" } } },
    done: settledState,
    denied: settledState,
    refused: settledState,
    expired: settledState,
    unknown: settledState,
  },
});

export const approval = pureMachine<ApprovalSnapshot, ApprovalStep, Named, Record<string, never>>(
  approvalMachine,
);
