/** Names in a session's and a sandbox's life, spelled as in the database and the API (spec 3). */

/** The seven values of the enum (spec 3.1). The service writes only those of `WrittenSessionStatus`. */
export const SESSION_STATUSES = [
  "queued",
  "branching",
  "provisioning",
  "running",
  "stopped",
  "failed",
  "completed",
] as const;
export type SessionStatus = (typeof SESSION_STATUSES)[number];
export type WrittenSessionStatus = Extract<SessionStatus, "provisioning" | "running" | "stopped" | "failed">;

/** A session in one of these states holds a slot of its account's cap (api.md 2). */
export const LIVE_SESSION_STATUSES: readonly SessionStatus[] = ["provisioning", "running"];
export const isLive = (status: SessionStatus): boolean => LIVE_SESSION_STATUSES.includes(status);

/** How many live sessions the agent of a session may have started. */
export const CHILDREN_MAX = 5;
/** How many sessions may stand above a session: an agent's session starts one, and that one starts another. */
export const PARENTS_MAX = 2;

export const SANDBOX_STATUSES = ["provisioning", "active", "stopped", "error", "archived"] as const;
export type SandboxStatus = (typeof SANDBOX_STATUSES)[number];

/**
 * Why a session was stopped (api.md 3, `stop_reason`). `made_room`: it rested, and a person's request waited for its slot.
 * `outdated`: an upgrade of the service left its sandbox with a daemon that is too old.
 */
export const STOP_REASONS = [
  "requested",
  "idle",
  "made_room",
  "outdated",
  "deleted",
  "user_deactivated",
] as const;
export type StopReason = (typeof STOP_REASONS)[number];

/** Whether the service stopped the session by itself, so that it goes on as soon as something waits for its agent. */
export const isPause = (reason: StopReason | null): boolean =>
  reason === "idle" || reason === "made_room" || reason === "outdated";
