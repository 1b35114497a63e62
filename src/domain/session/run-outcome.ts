/** What became of the session that a fire started: what a list of runs shows beside the fire's own status. */
import type { LastTurn } from "./last-turn.ts";
import type { SessionStatus, StopReason } from "./session.ts";

export const RUN_STATES = ["running", "finished", "failed", "stopped"] as const;
type RunState = (typeof RUN_STATES)[number];

export interface RunOutcome {
  /**
   * `running`: it boots, works or waits for a person. `finished`: its last turn was completed. `failed`: the session or
   * its last turn failed. `stopped`: it was ended, or its last turn was interrupted.
   */
  readonly state: RunState;
  /** The code of the failure, or why the session was stopped. */
  readonly code: string | null;
}

/** What decides the outcome. */
export interface RunSession {
  readonly status: SessionStatus;
  readonly failureCode: string | null;
  readonly stopReason: StopReason | null;
  readonly lastTurn: Pick<LastTurn, "state" | "error"> | null;
  /** Whether the agent's turn is under way. */
  readonly isAtWork: boolean;
}

/** Whether the session or its last turn failed. It stays so until a restart, or a later turn, has a better end. */
export const hasRunFailed = ({ status, lastTurn }: Pick<RunSession, "status" | "lastTurn">): boolean =>
  status === "failed" || lastTurn?.state === "failed";

export const runOutcome = (session: RunSession): RunOutcome => {
  const { status, failureCode, stopReason, lastTurn, isAtWork } = session;
  if (hasRunFailed(session))
    return { state: "failed", code: status === "failed" ? failureCode : (lastTurn?.error?.code ?? null) };
  const isOver = status === "stopped" || status === "completed";
  if (!isOver && (isAtWork || lastTurn === null)) return { state: "running", code: null };
  if (lastTurn?.state === "completed") return { state: "finished", code: null };
  return { state: "stopped", code: isOver ? stopReason : null };
};
