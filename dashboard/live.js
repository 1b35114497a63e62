/** A project's events, used as a signal to read the changed data again from the API. */

/** The states of the ledger (api.md 4). */
export const FIRE_STATUSES = ["queued", "fired", "failed", "skipped", "expired", "cancelled", "duplicate"];

/** Names of events, as the service sends them. An event without a name is a "message". */
const EVENTS = [
  "message",
  "reset",
  "session.status",
  "session.turn",
  "sandbox.status",
  "sandbox.environment",
  "environment.build",
  "trigger.fired",
  // A fire's event is named after its new state.
  ...FIRE_STATUSES.map((status) => `fire.${status}`),
  "change_request.opened",
  "change_request.updated",
  "change_request.merged",
  "change_request.closed",
];
/** The browser reconnects by itself. After a refusal, a new stream is opened this much later. */
const REOPEN_MS = 5000;

/**
 * Follows a project.
 *
 * @param {string} projectId
 * @param {{changed: () => void, connected: (live: boolean) => void}} listener `changed` is also called after a gap
 * @returns {() => void} ends it
 */
export const follow = (projectId, listener) => {
  /** @type {EventSource | null} */
  let source = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let reopening;
  let opened = false;
  const open = () => {
    source = new EventSource(`/v1/projects/${encodeURIComponent(projectId)}/events`);
    for (const name of EVENTS) source.addEventListener(name, listener.changed);
    source.addEventListener("open", (event) => {
      // The service's first frame has the same name as the browser's own event.
      if (event instanceof MessageEvent) return;
      listener.connected(true);
      // Something may have happened while the stream was closed.
      if (opened) listener.changed();
      opened = true;
    });
    source.addEventListener("error", () => {
      listener.connected(false);
      if (source?.readyState !== EventSource.CLOSED) return;
      // eslint-disable-next-line no-restricted-globals -- the browser's timer
      reopening = setTimeout(open, REOPEN_MS);
    });
  };
  open();
  return () => {
    clearTimeout(reopening);
    source?.close();
  };
};
