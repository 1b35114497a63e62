/** The column values that follow from a machine's step. Both adapters use them, so that they cannot differ. */
import { keptChanges } from "../domain/person/audit.ts";
import type { Failure } from "../domain/session/failure.ts";
import {
  isLive,
  type SandboxStatus,
  type StopReason,
  type WrittenSessionStatus,
} from "../domain/session/session.ts";
import type { Unsaved } from "../domain/save/order.ts";
import { countLeft, isSafe, type Saved } from "../domain/save/saved.ts";
import type { SandboxEvent, SandboxSnapshot } from "../machines/sandbox.ts";
import type { SessionEvent, SessionSnapshot } from "../machines/session.ts";
import type { NewAuditEvent } from "./ports/audit.ts";
import type { Session } from "./ports/sessions/sessions.ts";

/** The part of a `Change` that decides the columns. */
interface Step<Snapshot, Event> {
  readonly event: Event;
  readonly before: Snapshot;
  readonly after: Snapshot;
  readonly now: number;
}

/** Absent columns stay unchanged. */
export interface SessionColumns {
  readonly status: WrittenSessionStatus;
  readonly baseCommit?: string;
  readonly failure?: Session["failure"];
  readonly stopReason?: StopReason | null;
  readonly runningAt?: number | null;
  readonly stoppedAt?: number | null;
  readonly deletedAt?: number;
  readonly saved?: Saved;
  readonly unsaved?: Unsaved | null;
  readonly restoreSaved?: boolean;
  readonly restored?: null;
}

/** The reason of events that end a session at once. For a running session, the machine's context has the reason. */
const STOP_REASONS: Partial<Record<SessionEvent["type"], StopReason>> = {
  "stop.requested": "requested",
  "delete.requested": "deleted",
  "user.deactivated": "user_deactivated",
};

/** The columns that a session's step sets (api.md 3). */
export const sessionColumns = (step: Step<SessionSnapshot, SessionEvent>): SessionColumns => {
  const { event, before, after, now } = step;
  const hasMoved = before.state !== after.state;
  const deletion = event.type === "delete.requested" ? { deletedAt: now } : {};
  const columns = { status: after.state, ...deletion };
  if (event.type === "branch.created") return { ...columns, baseCommit: event.commit };
  if (event.type === "sandbox.kept")
    return {
      ...columns,
      ...(event.saved !== null && { saved: event.saved }),
      ...(event.unsaved !== null && { unsaved: event.unsaved }),
    };
  if (!hasMoved) return columns;
  switch (after.state) {
    case "running":
      return { ...columns, runningAt: now };
    case "failed":
      return "failure" in event
        ? { ...columns, failure: { ...event.failure, at: now }, unsaved: null }
        : columns;
    case "stopped":
      return {
        ...columns,
        stoppedAt: now,
        stopReason: before.context.ending ?? STOP_REASONS[event.type] ?? null,
        unsaved: null,
        ...(event.type === "sandbox.ended" && event.saved !== null && { saved: event.saved }),
      };
    case "provisioning":
      return {
        ...columns,
        failure: null,
        stopReason: null,
        runningAt: null,
        stoppedAt: null,
        restoreSaved: event.type === "restart.requested" && event.restoreSaved === true,
        restored: null,
      };
  }
};

/** The event for people after a step that could not save everything. */
export const unsavedNews = ({
  event,
  before,
}: Pick<Step<SessionSnapshot, SessionEvent>, "event" | "before">) => {
  const { ending: reason } = before.context;
  if (reason === null || before.state !== "running") return null;
  if (event.type === "sandbox.kept")
    return event.unsaved?.tries === 1
      ? { reason, pending: countLeft(event.saved?.pending ?? []), stays: true }
      : null;
  // Who asks for a stop or a deletion decides that for herself.
  const isOwn = reason === "requested" || reason === "deleted";
  if (event.type !== "sandbox.ended" || isOwn || isSafe(event.saved)) return null;
  return { reason, pending: countLeft(event.saved?.pending ?? []), stays: false };
};

/** The audit row for the end of a deactivated person's session, with the state of its last save. Null for other steps. */
export const dismissedRow = (
  {
    event,
    before,
    after,
    now,
  }: Pick<Step<SessionSnapshot, SessionEvent>, "event" | "before" | "after" | "now">,
  place: { readonly id: string; readonly accountId: string; readonly projectId: string },
): NewAuditEvent | null => {
  const isEnd = isLive(before.state) && !isLive(after.state);
  if (!isEnd || before.context.ending !== "user_deactivated" || !("sandboxId" in event)) return null;
  const lastSave = "saved" in event ? event.saved : null;
  return {
    // A sandbox ends once.
    id: event.sandboxId,
    at: now,
    accountId: place.accountId,
    projectId: place.projectId,
    actor: { kind: "service", id: null, name: null, tokenId: null },
    action: "session.dismissed",
    target: place.id,
    outcome: "done",
    address: null,
    userAgent: null,
    requestId: null,
    changes: keptChanges({
      saved: event.type === "sandbox.ended" ? (lastSave?.state ?? null) : "failed",
      files: lastSave?.files,
      commits: lastSave?.commits,
      missing: lastSave === null ? undefined : countLeft(lastSave.pending),
      error: lastSave?.error ?? undefined,
    }),
  };
};

/** The change of the account's slot counter that a session's step causes (journal.ts D3). */
export const slotMove = (step: Pick<Step<SessionSnapshot, SessionEvent>, "before" | "after">) => {
  const [was, is] = [isLive(step.before.state), isLive(step.after.state)];
  return was === is ? "keep" : is ? "reserve" : "release";
};

/** After a restart, the deadline is as far from now as the former one was from the former start. */
export const restartDeadline = (
  former: { readonly provisionedAt: number; readonly bootDeadlineAt: number },
  now: number,
): number => now + (former.bootDeadlineAt - former.provisionedAt);

export interface SandboxColumns {
  readonly status: SandboxStatus;
  readonly failure?: Failure;
  readonly activeAt?: number;
  readonly endedAt?: number;
}

/** The columns that a sandbox's step sets. */
export const sandboxColumns = (step: Step<SandboxSnapshot, SandboxEvent>): SandboxColumns => {
  const { event, before, after, now } = step;
  const failure = "failure" in event ? { failure: event.failure } : {};
  if (before.state === after.state) return { status: after.state };
  return after.state === "active"
    ? { status: after.state, activeAt: now }
    : { status: after.state, endedAt: now, ...failure };
};
