/** The events for receivers. `npm run docs` writes this file from the records of events in src/features/notifications. */
export const EVENTS = {
  "session.waiting": { label: "A session waits for a person", isUsual: true },
  "session.turn_ended": { label: "The agent has finished its turn", isUsual: false },
  "approval.waiting": { label: "A tool call waits for approval", isUsual: true },
  "session.work_unsaved": { label: "Not all work of a session can be saved", isUsual: true },
  "session.stopped": { label: "A session stopped", isUsual: false },
  "session.failed": { label: "A session failed", isUsual: true },
  "change_request.opened": { label: "A change request was opened", isUsual: true },
  "change_request.review_requested": { label: "A person is asked for a review", isUsual: true },
  "change_request.merged": { label: "A change request was merged", isUsual: false },
  "change_request.closed": { label: "A change request was closed", isUsual: false },
  "fire.failed": { label: "A trigger's run could not start", isUsual: true },
  "fire.expired": { label: "A trigger's run waited too long", isUsual: false },
  "queue.full": { label: "The queue is full", isUsual: true },
  "manifest.stale": { label: "The newest platform.toml cannot be read", isUsual: true },
  "webhook.disabled": { label: "Another receiver was disabled", isUsual: false },
} as const;

export const EVENT_NAMES = Object.keys(EVENTS) as (keyof typeof EVENTS)[];
