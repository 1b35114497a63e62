/** The events of all projects that the reader sees, used as a signal to read the changed data again from the API. */
import { keepStream } from "./stream.ts";

/** The states of the ledger (api.md 4). */
export const FIRE_STATUSES = ["queued", "fired", "failed", "skipped", "expired", "cancelled", "duplicate"];

/** Names of events, as the service sends them. An event without a name is a "message". */
const EVENTS = [
  "message",
  "reset",
  "session.status",
  "session.turn_changed",
  "session.turn",
  "session.turn_ended",
  "session.updated",
  "session.deleted",
  "session.saved",
  "session.work_unsaved",
  "session.waiting",
  "approval.waiting",
  "approval.changed",
  "sandbox.status",
  "sandbox.environment",
  "environment.build",
  "trigger.fired",
  "delivery.refused",
  "queue.full",
  "manifest.stale",
  "webhook.disabled",
  // A fire's event is named after its new state.
  ...FIRE_STATUSES.map((status) => `fire.${status}`),
  "change_request.opened",
  "change_request.review_requested",
  "change_request.updated",
  "change_request.remarked",
  "change_request.merged",
  "change_request.closed",
];

export interface Listener {
  /**
   * Something changed, or may have while no stream was open.
   *
   * @param where a project's id. `ELSEWHERE`: another project than that of the page. Null: anywhere.
   */
  changed: (where: string | null) => void;
  connected: (live: boolean) => void;
}

const ELSEWHERE = "elsewhere";

/** Tells a listener when a stream is open. */
const hearConnection = (source: EventSource, listener: Listener) => {
  source.addEventListener("open", (event) => {
    // The service's first frame has the same name as the browser's own event.
    if (event instanceof MessageEvent) return;
    listener.connected(true);
    // Something may have happened before: a page reads its data before its stream is open.
    listener.changed(null);
  });
  source.addEventListener("error", () => listener.connected(false));
};

/** Tells a listener what a conversation's stream says of its project, and of the others. */
export const hearProject = (source: EventSource, listener: Listener) => {
  source.addEventListener("project", () => listener.changed(null));
  source.addEventListener("elsewhere", () => listener.changed(ELSEWHERE));
  hearConnection(source, listener);
};

/** Follows all projects that the reader sees. @returns ends it */
export const follow = (listener: Listener): (() => void) =>
  keepStream(() => {
    const source = new EventSource("/v1/events");
    for (const name of EVENTS)
      source.addEventListener(name, ({ data }) => listener.changed(JSON.parse(data).project_id ?? null));
    hearConnection(source, listener);
    return source;
  }).end;
