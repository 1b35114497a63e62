/** A session's live log: the service's stream of it, and the newest lines for the page to show. */
import { h } from "./dom.js";
import { keepStream } from "./stream.js";

/** The page stays fast with this many lines. The API has the rest. */
const SHOWN_LINES = 3000;

/** @typedef {{sandbox_id: string, at: string | null, source: string, line: string}} Line */

/**
 * @typedef {object} Log
 * @property {(Line | null)[]} lines the newest, oldest first; null where lines are missing
 * @property {boolean} heard whether the service has answered
 * @property {(isWanted: boolean) => void} want reads on while it is wanted; the lines stay
 * @property {() => void} end
 */

/**
 * A log that is followed while somebody wants it.
 *
 * @param {string} path of the session in the API
 * @param {() => void} changed
 * @returns {Log}
 */
export const followLog = (path, changed) => {
  /** @type {import("./stream.js").Stream | null} */
  let stream = null;
  const stop = () => {
    stream?.end();
    stream = null;
  };
  /** @type {Log} */
  const log = {
    lines: [],
    heard: false,
    want: (isWanted) => {
      if (!isWanted) stop();
      else stream ??= keepStream(open);
    },
    end: stop,
  };
  /** @param {Line | null} line */
  const add = (line) => {
    log.lines.push(line);
    if (log.lines.length > SHOWN_LINES) log.lines.splice(0, log.lines.length - SHOWN_LINES);
    changed();
  };
  const open = () => {
    const source = new EventSource(`${path}/logs`);
    let isFirst = true;
    source.addEventListener("open", (event) => {
      // The service's first frame has the same name as the browser's own event.
      if (event instanceof MessageEvent) return;
      // A new stream starts at the beginning of the log. One that the browser reopened continues.
      if (isFirst) log.lines.length = 0;
      isFirst = false;
      log.heard = true;
      changed();
    });
    source.addEventListener("line", (event) => add(JSON.parse(event.data)));
    source.addEventListener("reset", () => add(null));
    source.addEventListener("error", () => {
      log.heard = true;
      changed();
    });
    return source;
  };
  return log;
};

/** @param {Log | null} log */
export const logView = (log) => {
  if (log === null || !log.heard) return h("p", { class: "quiet" }, "Loading…");
  if (log.lines.length === 0) return h("p", { class: "quiet" }, "No logs yet.");
  return h(
    "pre",
    { class: "logs", tabindex: 0 },
    log.lines.flatMap((line, index) => [...borderBefore(log.lines, index), ...lineView(line)]),
  );
};

/** @param {Line | null} line */
const lineView = (line) => {
  if (line === null) return [h("span", { class: "quiet" }, "… some lines are missing …"), "\n"];
  const said = line.source === "daemon" ? line.line : `${line.source}: ${line.line}`;
  return [h("span", { class: "quiet" }, line.at === null ? "-" : line.at.slice(11, 23)), ` ${said}\n`];
};

/** Each boot is a sandbox of its own. @param {(Line | null)[]} lines @param {number} index */
const borderBefore = (lines, index) => {
  const [before, line] = [lines[index - 1], lines[index]];
  if (!before || !line || before.sandbox_id === line.sandbox_id) return [];
  return [h("span", { class: "quiet" }, "── new sandbox ──"), "\n"];
};
