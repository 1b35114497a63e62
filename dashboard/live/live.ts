/** A project's events, used as a signal to read the changed data again from the API. */
import { keepStream } from "./stream.ts";

/** The states of the ledger (api.md 4). */
export const FIRE_STATUSES = ["queued", "fired", "failed", "skipped", "expired", "cancelled", "duplicate"];

/** Names of events, as the service sends them. An event without a name is a "message". */
const EVENTS = [
  "message",
  // In the stream of a conversation, for all of these.
  "project",
  "reset",
  "session.status",
  "session.turn",
  "session.turn_ended",
  "session.waiting",
  "approval.waiting",
  "approval.changed",
  "sandbox.status",
  "sandbox.environment",
  "environment.build",
  "trigger.fired",
  // A fire's event is named after its new state.
  ...FIRE_STATUSES.map((status) => `fire.${status}`),
  "change_request.opened",
  "change_request.review_requested",
  "change_request.updated",
  "change_request.merged",
  "change_request.closed",
];

export interface Listener {
  /** Something in the project changed, or may have while no stream was open. */
  changed: () => void;
  connected: (live: boolean) => void;
}

/** those that have been connected */
const met: WeakSet<Listener> = new WeakSet();

/** Tells a listener what a stream says of its project: the project's own stream, or one that has its news as `project`. */
export const hearProject = (source: EventSource, listener: Listener) => {
  for (const name of EVENTS) source.addEventListener(name, listener.changed);
  source.addEventListener("open", (event) => {
    // The service's first frame has the same name as the browser's own event.
    if (event instanceof MessageEvent) return;
    listener.connected(true);
    // Something may have happened while no stream was open.
    if (met.has(listener)) listener.changed();
    met.add(listener);
  });
  source.addEventListener("error", () => listener.connected(false));
};

/** Follows a project. @returns ends it */
export const follow = (projectId: string, listener: Listener): (() => void) =>
  keepStream(() => {
    const source = new EventSource(`/v1/projects/${encodeURIComponent(projectId)}/events`);
    hearProject(source, listener);
    return source;
  }).end;
