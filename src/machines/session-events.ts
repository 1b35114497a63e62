/** What a session's machine knows, hears and orders (machines/session.ts, S1 to S9). */
import type { TurnRequest } from "../domain/conversation/row-texts.ts";
import type { Failure } from "../domain/session/failure.ts";
import type { SaveOrder, StopSave, Unsaved } from "../domain/save/order.ts";
import type { Saved } from "../domain/save/saved.ts";
import type { StopReason, WrittenSessionStatus } from "../domain/session/session.ts";
import type { Snapshot } from "./step.ts";

export interface SessionContext {
  /** The sandbox that may speak for this session. Null before the first one is requested. */
  readonly sandboxId: string | null;
  /** True once the session branch exists: a restart does not create it again. */
  readonly branched: boolean;
  /** True once the session is deleted: it never runs again. */
  readonly deleted: boolean;
  /** Why a running session is about to stop. Null if no stop is requested. */
  readonly ending: StopReason | null;
  /** The restart that follows the stop (session.ts S7). Earlier snapshots lack it. */
  readonly next: NextSandbox | null;
  /** How the sandbox of a running session that is to end saves its work (session.ts S9). Absent: `try`, or no end is requested. */
  readonly save?: SaveOrder | null;
  /** How many ends of its sandboxes were ordered, so that each has a number. Absent: none. */
  readonly ends?: number;
  /** The request for which its agent waited when it was last found idle. Absent or null: none. */
  readonly asked?: TurnRequest | null;
}
export interface NextSandbox {
  readonly sandboxId: string;
  readonly restoreSaved: boolean;
}
export type SessionSnapshot = Snapshot<WrittenSessionStatus, SessionContext>;

export type SessionEvent =
  | { readonly type: "branch.created"; readonly commit: string; readonly sandboxId: string }
  | { readonly type: "branch.failed"; readonly failure: Failure }
  | { readonly type: "sandbox.live"; readonly sandboxId: string }
  | { readonly type: "sandbox.failed"; readonly sandboxId: string; readonly failure: Failure }
  | { readonly type: "sandbox.lost"; readonly sandboxId: string; readonly failure: Failure }
  /** `saved` null: no save was made. */
  | { readonly type: "sandbox.ended"; readonly sandboxId: string; readonly saved: Saved | null }
  /** The sandbox stays (session.ts S9). `saved` null: its save was put off. `unsaved` null: it is not tried again. */
  | {
      readonly type: "sandbox.kept";
      readonly sandboxId: string;
      /** How it was to save. An order that came since counts more. */
      readonly order: SaveOrder;
      readonly saved: Saved | null;
      readonly unsaved: Unsaved | null;
    }
  /** The sandbox's daemon is of a version with which this one does not work. */
  | { readonly type: "daemon.outdated"; readonly sandboxId: string; readonly isLast?: boolean }
  | { readonly type: "stop.requested"; readonly save?: StopSave }
  | { readonly type: "delete.requested" }
  /**
   * `isLast`: it could not be saved for too long, and its sandbox goes with what is saved. `makesRoom`: it is not idle for the
   * whole time yet, and a person's request waits for its slot. `asked`: its agent waits for a person with this request.
   */
  | {
      readonly type: "idle.elapsed";
      readonly isLast?: boolean;
      readonly makesRoom?: true;
      readonly asked?: TurnRequest;
    }
  /** The person who started it was deactivated. */
  | { readonly type: "user.deactivated" }
  /** `restoreSaved`: the new sandbox brings saved work back. Absent: it does not. */
  | {
      readonly type: "restart.requested";
      readonly sandboxId: string;
      readonly restoreSaved?: boolean;
      /** It waited for a stop (session.ts S7). Absent: somebody asks now. */
      readonly afterStop?: true;
    }
  /** The account had no slot for a restart, so the restart was not saved. */
  | { readonly type: "slot.refused" };

/** `tearDownSandbox.as` is the final state of the sandbox's record (api.md 3 "Sandbox transitions"). */
export type SessionCommand =
  | { readonly type: "createBranch" }
  | { readonly type: "provisionSandbox"; readonly sandboxId: string }
  | {
      readonly type: "tearDownSandbox";
      readonly sandboxId: string;
      readonly as: "stopped" | "archived";
      /** Absent: `try`. */
      readonly save?: SaveOrder;
      /** The number of the order (sandbox.ts B6). Absent: an earlier version gave it. */
      readonly end?: number;
    }
  /** Has the sandbox of an idle session stay (session.ts S9). */
  | { readonly type: "recallEnd"; readonly sandboxId: string }
  /** Deletes the saves of a deleted session (S10). */
  | { readonly type: "removeSaves" }
  /** The save that ended the session has freed the slot already (store/ports/journal.ts D3). This command signals the queue. */
  | { readonly type: "signalFreeSlot" }
  /** Asks for the restart that waited for the stop (session.ts S7). */
  | ({ readonly type: "restartAfterStop" } & NextSandbox);
