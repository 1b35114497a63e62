/** The ports on which programs of a session's sandbox listen, while the session runs. */
import { getJson } from "./api.js";
import { button } from "./parts.js";
import { lackedRole } from "./roles.js";

/** How often they are read. */
const POLL_MS = 5000;
/** As many buttons as the head of the page has room for. The rest is opened by number. */
const SHOWN = 4;

/** @typedef {{ports: number[]}} Ports */

/**
 * Reads the ports again and again while the session runs and the page is visible.
 *
 * @param {string} path of the session in the API
 * @param {() => void} changed
 */
export const followPorts = (path, changed) => {
  /** @type {Ports} */
  const found = { ports: [] };
  let isRunning = false;
  let isReading = false;
  let hasEnded = false;

  /** @param {number[]} ports */
  const set = (ports) => {
    if (hasEnded || `${ports}` === `${found.ports}`) return;
    found.ports = ports;
    changed();
  };
  const read = async () => {
    if (isReading || !isRunning || document.visibilityState !== "visible" || lackedRole("open-port") !== null)
      return;
    isReading = true;
    // A sandbox that does not answer shows no ports. They are opened by number then.
    const answer = await getJson(`${path}/ports`).catch(() => null);
    isReading = false;
    set(isRunning ? (answer?.ports ?? []) : []);
  };
  // eslint-disable-next-line no-restricted-globals -- the browser's timer
  const timer = setInterval(() => void read(), POLL_MS);

  return {
    found,
    /** @param {import("./wire.d.ts").Session} session as it is now */
    see: (session) => {
      const was = isRunning;
      isRunning = session.status === "running";
      if (isRunning && !was) void read();
      if (!isRunning) set([]);
    },
    end: () => {
      hasEnded = true;
      clearInterval(timer);
    },
  };
};

/** A button for each port. @param {import("./wire.d.ts").Session} session @param {Ports | null} found */
export const portButtons = (session, found) =>
  (session.status === "running" ? (found?.ports ?? []) : []).slice(0, SHOWN).map((port) =>
    button("open-port", `Port ${port}`, {
      "data-project": session.project_id,
      "data-session": session.id,
      "data-port": String(port),
      "data-key": `port-${port}`,
      "aria-label": `Open port ${port}`,
      title: "A program in the sandbox listens on this port",
    }),
  );
