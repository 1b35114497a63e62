/**
 * What a person reads afterwards of a project's events (GET /v1/activity). Other events only tell pages and programs that something changed.
 * Kinds are stored with the events: one that is removed here still stands in rows.
 */

export const NEWS = [
  "session.turn_ended",
  "session.waiting",
  "session.work_unsaved",
  "session.failed",
  "approval.waiting",
  "change_request.opened",
  "change_request.review_requested",
  "change_request.remarked",
  "change_request.merged",
  "change_request.closed",
  "trigger.fired",
  "fire.failed",
  "fire.expired",
  "delivery.refused",
  "queue.full",
  "manifest.stale",
  "webhook.disabled",
] as const;
export type News = (typeof NEWS)[number];

const isNews = (type: string): type is News => NEWS.some((kind) => kind === type);

/** Null if the event is no news. The stream has one type for all statuses of a session. */
export const readNews = ({
  type,
  data,
}: {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}): News | null => {
  const kind = type === "session.status" && data["status"] === "failed" ? "session.failed" : type;
  return isNews(kind) ? kind : null;
};
