/**
 * The port to the record of calls to connectors. It is one of the store's ports, with the same adapters (journal.ts).
 *
 *  L1 A call has its row before it is performed: no row, no call.
 *  L2 An outcome other than `pending` is written once. A later one changes nothing.
 *  L3 The limits hold on any number of nodes, because the statement that writes the row counts.
 */
import * as Context from "effect/Context";
import type { SessionKind } from "../../../domain/connector/connector.ts";
import type { BadCursor } from "../errors.ts";
import type { Stored } from "../journal.ts";
import type { Page, PageRequest } from "../page.ts";

export const CALL_OUTCOMES = ["ok", "error", "denied", "pending", "unknown"] as const;
/**
 * `denied`: the call was not made. `pending`: it waits for a person, or is approved and not sent yet (approvals.ts).
 * `unknown`: it was made, and the service did not learn its result. This call is never repeated.
 */
export type CallOutcome = (typeof CALL_OUTCOMES)[number];

/** The message of a row that `abandon` ends. */
export const ABANDONED = "The service was stopped during the call. Its result is not known.";

export interface NewCall {
  readonly id: string;
  readonly projectId: string;
  readonly sessionId: string;
  readonly userId: string;
  readonly startedBy: SessionKind;
  readonly connector: string;
  readonly tool: string;
  readonly origin: string;
  /** Null if refused before the tool was known. */
  readonly pin: string | null;
  /** The pattern that decided, or `default`. Null if no rule was asked. */
  readonly rule: string | null;
  readonly argumentsDigest: string;
  readonly argumentsBytes: number;
  readonly argumentsPreview: string;
  readonly at: number;
}

export interface CallEnd {
  readonly outcome: Exclude<CallOutcome, "pending">;
  /** Why, if the outcome is not `ok`. */
  readonly message: string | null;
  readonly upstreamStatus: number | null;
  readonly resultBytes: number | null;
  readonly now: number;
}

export interface ExecutorCall extends NewCall {
  /** When an approved call was sent. Null means at the instant `at`, or not at all. */
  readonly begunAt: number | null;
  /** The person who approved or denied it. */
  readonly approver: string | null;
  readonly endedAt: number | null;
  /** Null if the call is being performed. */
  readonly outcome: CallOutcome | null;
  readonly message: string | null;
  readonly upstreamStatus: number | null;
  readonly resultBytes: number | null;
}

export interface CallLimits {
  /** Calls that a session may have under way. */
  readonly atOnce: number;
  /** Rows of a connector within `windowMs`. One that waits for a person counts once it is sent or settled. */
  readonly perConnector: number;
  readonly windowMs: number;
  /** A row without an outcome counts as under way for this long: a call cannot last longer. */
  readonly openMs: number;
}

export class ExecutorCalls extends Context.Service<
  ExecutorCalls,
  {
    /** L1, L3. Writes the row of a call that follows, unless a limit is reached. */
    readonly begin: (
      call: NewCall,
      limits: CallLimits,
    ) => Stored<"begun" | "session_busy" | "connector_busy">;
    /** Writes the row of a call that is refused. False: the connector has too many rows, and none was written. */
    readonly deny: (
      call: NewCall,
      why: { readonly message: string; readonly limits: CallLimits },
    ) => Stored<boolean>;
    /** L2. @returns whether this was the first outcome. */
    readonly end: (id: string, end: CallEnd) => Stored<boolean>;
    /** Newest first. */
    readonly list: (
      projectId: string,
      request: PageRequest & {
        readonly sessionId?: string | undefined;
        readonly connector?: string | undefined;
      },
    ) => Stored<Page<ExecutorCall>, BadCursor>;
    /** Ends rows whose call began before an instant and has no outcome: the service was stopped meanwhile. */
    readonly abandon: (before: number, now: number) => Stored<number>;
    /** One small step: removes rows from before an instant. @returns how many. 0: nothing is left to remove. */
    readonly prune: (before: number) => Stored<number>;
  }
>()("platform/store/ExecutorCalls") {}
