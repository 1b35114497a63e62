/** A project's events, used as a signal to read the changed data again from the API. */
import { keepStream } from "./stream.js";

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

/**
 * @typedef {object} Listener
 * @property {() => void} changed something in the project changed, or may have while no stream was open
 * @property {(live: boolean) => void} connected
 */

/** @type {WeakSet<Listener>} those that have been connected */
const met = new WeakSet();

/**
 * Tells a listener what a stream says of its project: the project's own stream, or one that has its news as `project`.
 *
 * @param {EventSource} source
 * @param {Listener} listener
 */
export const hearProject = (source, listener) => {
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

/**
 * Follows a project.
 *
 * @param {string} projectId
 * @param {Listener} listener
 * @returns {() => void} ends it
 */
export const follow = (projectId, listener) =>
  keepStream(() => {
    const source = new EventSource(`/v1/projects/${encodeURIComponent(projectId)}/events`);
    hearProject(source, listener);
    return source;
  }).end;
