/** A project's events, as a signal that something changed: what changed is read again from the API. */

/** The states of the ledger (api.md 4). */
export const FIRE_STATUSES = ["queued", "fired", "failed", "skipped", "expired", "cancelled", "duplicate"];

/** Names of events, as the service sends them; what has no name is a "message". */
const EVENTS = [
  "message",
  "reset",
  "session.status",
  "session.turn",
  "sandbox.status",
  "trigger.fired",
  // A fire's event is named after the state it came to.
  ...FIRE_STATUSES.map((status) => `fire.${status}`),
  "change_request.opened",
  "change_request.updated",
  "change_request.merged",
  "change_request.closed",
];
/** The browser reconnects by itself; only after a refusal is a new stream opened, this much later. */
const REOPEN_MS = 5000;

/**
 * Follows a project.
 *
 * @param {string} projectId
 * @param {{changed: () => void, connected: (live: boolean) => void}} listener `changed` also after a gap
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
      // What happened while nobody listened.
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
