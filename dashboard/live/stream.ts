/**
 * Server-sent events for a page that somebody looks at. A browser opens at most six connections to one service, for all
 * of its tabs together, and each stream keeps one. So a tab that is hidden closes its streams after a moment, and opens
 * them again when it is shown.
 */

/** A reader who only looks at another tab for a moment misses nothing. */
const HIDDEN_MS = 5000;
/** The browser reconnects by itself and resumes. After a refusal, a new stream is opened this much later. */
const REOPEN_MS = 5000;

export interface Stream {
  /** Opens a new stream in place of this one. */
  restart: () => void;
  end: () => void;
}

/**
 * Keeps a stream open.
 *
 * @param open makes a stream with its listeners: at once, when the tab is shown again, and some time after
 * the service refused it
 */
export const keepStream = (open: () => EventSource): Stream => {
  let source: EventSource | null = null;
  let later: ReturnType<typeof globalThis.setTimeout> | undefined;
  let isHidden = false;
  const close = () => {
    clearTimeout(later);
    source?.close();
    source = null;
  };
  const restart = () => {
    close();
    if (isHidden) return;
    const own = open();
    source = own;
    own.addEventListener("error", () => {
      if (own !== source || own.readyState !== EventSource.CLOSED) return;
      clearTimeout(later);
      // eslint-disable-next-line no-restricted-globals -- the browser's timer
      later = setTimeout(restart, REOPEN_MS);
    });
  };
  let hiding: ReturnType<typeof globalThis.setTimeout> | undefined;
  const look = () => {
    clearTimeout(hiding);
    if (document.visibilityState === "hidden") {
      // eslint-disable-next-line no-restricted-globals -- the browser's timer
      hiding = setTimeout(() => {
        isHidden = true;
        close();
      }, HIDDEN_MS);
    } else if (isHidden) {
      isHidden = false;
      restart();
    }
  };
  document.addEventListener("visibilitychange", look);
  restart();
  look();
  return {
    restart,
    end: () => {
      document.removeEventListener("visibilitychange", look);
      clearTimeout(hiding);
      close();
    },
  };
};
