/**
 * The port to calls that wait for a person. It is one of the store's ports, with the same adapters (journal.ts). The
 * machine of src/features/approvals/machine.ts decides what each operation may change.
 *
 *  Q1 A call has its row, and its row in the record of calls, before anything else happens to it. Both change together.
 *  Q2 Of two operations that the machine allows in one state only, the second one finds the state after the first one.
 *     So of two approvals one counts, and of two nodes one begins the call.
 *  Q3 The same call of the same session joins the row whose result the session has not got.
 *  Q4 Arguments are kept until the call is settled.
 */
import * as Context from "effect/Context";
import type { ApprovalState } from "../rules/approval.ts";
import type { BadCursor } from "../../../store/ports/errors.ts";
import type { CallLimits, ExecutorCall, NewCall } from "../../../store/ports/connectors/executor-calls.ts";
import type { Stored } from "../../../store/ports/journal.ts";
import type { Page, PageRequest } from "../../../store/ports/page.ts";

/** How long a result is kept after its delivery, ms. */
export const RESULT_KEPT_MS = 24 * 60 * 60 * 1000;

export interface ApprovalRow {
  /** The id of the call. */
  readonly id: string;
  readonly projectId: string;
  readonly status: ApprovalState;
  /** Null once the call is settled (Q4). */
  readonly sealedArguments: Uint8Array | null;
  readonly sealedResult: Uint8Array | null;
  /** Why it is denied, refused or unknown. Null if no reason was given. */
  readonly message: string | null;
  readonly askedAt: number;
  readonly expiresAt: number;
  readonly decidedBy: string | null;
  readonly decidedAt: number | null;
  /** When it reached its status. */
  readonly movedAt: number;
  /** Until then a caller waits for the result. */
  readonly attendedUntil: number;
  readonly deliveredAt: number | null;
}

export interface Approval extends ApprovalRow {
  readonly call: ExecutorCall;
}

export interface NewApproval {
  readonly call: NewCall;
  readonly sealedArguments: Uint8Array;
  readonly expiresAt: number;
  readonly attendedUntil: number;
}

export interface ApprovalLimits extends CallLimits {
  /** Calls of a session that may wait for a person. */
  readonly open: number;
}

/** Something that happened to an approval, with what is written for it. */
export type ApprovalMove = { readonly now: number } & (
  | { readonly type: "approval.given"; readonly by: string }
  | { readonly type: "denial.given"; readonly by: string; readonly reason: string | null }
  | { readonly type: "deadline.passed" | "call.begun" | "result.delivered" }
  | { readonly type: "call.refused"; readonly message: string }
  | {
      readonly type: "call.ended";
      readonly outcome: "ok" | "error";
      readonly message: string | null;
      readonly upstreamStatus: number | null;
      readonly resultBytes: number | null;
      readonly sealedResult: Uint8Array;
    }
  | { readonly type: "call.lost"; readonly message: string; readonly upstreamStatus: number | null }
);

export class Approvals extends Context.Service<
  Approvals,
  {
    /** Writes the row of a call that waits (Q1), unless a limit is reached, or finds the row that it joins (Q3). */
    readonly ask: (
      approval: NewApproval,
      limits: ApprovalLimits,
    ) => Stored<{ readonly id: string; readonly isNew: boolean } | "session_full" | "connector_busy">;
    /** Null if the project has no such approval. */
    readonly find: (projectId: string, id: string) => Stored<Approval | null>;
    readonly get: (id: string) => Stored<Approval | null>;
    /** Newest first. */
    readonly list: (
      projectId: string,
      request: PageRequest & {
        readonly sessionId?: string | undefined;
        readonly status?: ApprovalState | undefined;
      },
    ) => Stored<Page<Approval>, BadCursor>;
    /** Q2. @returns the approval after the move, or null if its state does not allow this move. */
    readonly move: (id: string, move: ApprovalMove) => Stored<Approval | null>;
    /** Q2. Takes the move `call.begun`, unless the limits of calls say `busy`. `moved` means that its state does not allow it. */
    readonly begin: (
      id: string,
      request: { readonly limits: CallLimits; readonly now: number },
    ) => Stored<"begun" | "busy" | "moved">;
    /** Says until when a caller waits for the result. */
    readonly attend: (id: string, until: number) => Stored<void>;
    /**
     * Approvals for which something is to do, the longest waiting first: approved ones, calls that began before
     * `lostBefore`, pending ones beyond their time, and settled ones that were not delivered and that no caller waits for.
     */
    readonly due: (
      now: number,
      lostBefore: number,
      limit: number,
    ) => Stored<readonly Pick<ApprovalRow, "id" | "status">[]>;
    /** One small step: removes results that were delivered before an instant. @returns how many. 0: none is left. */
    readonly pruneResults: (before: number) => Stored<number>;
  }
>()("platform/approvals/Approvals") {}
