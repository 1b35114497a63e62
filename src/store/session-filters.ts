/** Which sessions a filter can fit at all, so that a list looks at few. Both adapters use it. */
import type { Activity } from "../domain/session/session-activity.ts";
import { isLive, SESSION_STATUSES } from "../domain/session/session.ts";
import type { SessionFilter } from "./ports/sessions/sessions.ts";

/** Activities of live sessions, and of those for which a person is needed, or which are to start again, although they have ended. */
const OPEN_ACTIVITIES: ReadonlySet<Activity> = new Set(["queued", "starting", "working", "needs_you"]);

/**
 * `live`: live sessions alone. `open`: also those that have ended while a call waited, an answer or a restart. `all`: any session. The statuses
 * `queued` and `branching` are never written.
 */
export const filterReach = (filter: SessionFilter): "live" | "open" | "all" => {
  const { status, turn, activities, mayApprove } = filter;
  if (turn === "requires_action" && mayApprove === true) return "open";
  if (turn !== undefined || SESSION_STATUSES.some((each) => each === status && isLive(each))) return "live";
  if (activities?.every((activity) => OPEN_ACTIVITIES.has(activity)) !== true) return "all";
  return activities.includes("needs_you") || activities.includes("queued") ? "open" : "live";
};
