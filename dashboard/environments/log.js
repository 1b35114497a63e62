/**
 * Follows one build until it is over, with its log.
 *
 * A log has at most 4 MiB. It is in the document as pieces of PIECE characters, of which the browser lays out only those
 * that are in view.
 */
import { getJson } from "../api/api.js";
import { h, morph } from "../elements/dom.js";

/** @typedef {import("../wire.d.ts").Build} Build */
/** @typedef {import("../wire.d.ts").BuildLog} BuildLog */

const POLL_MS = 1000;
/** The pause after a failed read. */
const RETRY_MS = 5000;
/** As many pieces as the API gives at once. */
const LIMIT = 200;
/** A piece ends at the last end of a line before this many characters. Only a longer line is split. */
const PIECE = 16_384;
/** This near to the end, in pixels, counts as at it. */
const AT_END = 32;

/** @param {Build} build */
export const isOver = ({ status }) => ["ready", "failed", "cancelled"].includes(status);

/** @param {Build} build its path in the API */
const buildPath = ({ project_id: project, id }) =>
  `/v1/projects/${encodeURIComponent(project)}/environment/builds/${encodeURIComponent(id)}`;

/** How much of the text makes the next piece. @param {string} text longer than a piece */
const cutOf = (text) => {
  const line = text.lastIndexOf("\n", PIECE - 1) + 1;
  if (line > 0) return line;
  // Neither a character outside of the basic plane nor the end of a line is split.
  return /[\ud800-\udbff\r]/.test(text[PIECE - 1] ?? "") ? PIECE + 1 : PIECE;
};

/** An element that shows a growing text. Its end stays in view until the reader scrolls up. */
export const makeLog = () => {
  const lines = h("span", { class: "pieces" });
  const element = h(
    "pre",
    { class: "logs build-log", tabindex: 0, role: "region", "aria-label": "Log of the build" },
    lines,
  );
  let follows = true;
  let top = 0;
  const toEnd = () => {
    if (follows) element.scrollTop = element.scrollHeight;
  };
  element.addEventListener("scroll", () => {
    const { scrollTop, scrollHeight, clientHeight } = element;
    if (scrollHeight - scrollTop - clientHeight <= AT_END) follows = true;
    else if (scrollTop < top) follows = false;
    top = scrollTop;
  });
  // A piece gets its true height when it comes into view.
  const sizes = new ResizeObserver(toEnd);
  sizes.observe(lines);
  sizes.observe(element);

  /** The text of the last piece. */
  let tail = "";
  /** @type {HTMLElement | null} */
  let last = null;
  const show = (/** @type {string} */ text) => {
    last ??= lines.appendChild(h("span", {}));
    morph(last, [text]);
  };
  return {
    element,
    end: () => sizes.disconnect(),
    clear: () => {
      lines.replaceChildren();
      [tail, last] = ["", null];
    },
    /** @param {string} text */
    add: (text) => {
      tail += text;
      while (tail.length > PIECE + 1) {
        const cut = cutOf(tail);
        show(tail.slice(0, cut));
        [tail, last] = [tail.slice(cut), null];
      }
      if (tail !== "") show(tail);
      toEnd();
    },
  };
};

/** A build that is begun again clears its log after it is `resolving`. @param {Build} build @returns {string} names the log */
const lifeOf = ({ tries, status }) => (tries > 1 ? `${tries} ${status === "resolving"}` : "");

/**
 * @typedef {object} Following
 * @property {Build | null} build as it was last read
 * @property {string | null} problem why it could not be read
 */

/**
 * Reads a build again and again while the page is visible, until the build is over.
 *
 * @param {() => void} changed
 * @param {ReturnType<typeof makeLog> | null} log where the output goes; null: it is not read
 */
export const followBuild = (changed, log) => {
  /** @type {Following} */
  const seen = { build: null, problem: null };
  let hasEnded = false;
  let after = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;

  /** Adds what follows. @param {Build} build @returns {Promise<boolean>} whether nothing will follow */
  const readLog = async (build) => {
    for (;;) {
      const path = `${buildPath(build)}/log?after=${after}&limit=${LIMIT}`;
      // oxlint-disable-next-line no-await-in-loop -- each page continues after the one before
      const { pieces, complete } = /** @type {BuildLog} */ (await getJson(path));
      log?.add(pieces.map(({ text }) => text).join(""));
      after = pieces.at(-1)?.number ?? after;
      if (complete || pieces.length < LIMIT || hasEnded) return complete;
    }
  };
  /** @param {Build} build @returns {Promise<boolean>} whether all is known */
  const read = async (build) => {
    const isWhole = log === null || (await readLog(build));
    const next = await getJson(buildPath(build));
    if (seen.build !== build) return true;
    seen.build = next;
    seen.problem = null;
    if (log !== null && lifeOf(next) !== lifeOf(build)) {
      log.clear();
      after = 0;
      return false;
    }
    return isWhole && isOver(next);
  };
  /** @param {Build} build */
  const look = async (build) => {
    let isDone = false;
    try {
      isDone = document.visibilityState === "visible" && (await read(build));
    } catch (error) {
      seen.problem = error instanceof Error ? error.message : String(error);
    }
    const { build: next } = seen;
    if (hasEnded || next?.id !== build.id) return;
    changed();
    // eslint-disable-next-line no-restricted-globals -- the browser's timer
    if (!isDone) timer = setTimeout(() => void look(next), seen.problem === null ? POLL_MS : RETRY_MS);
  };

  return {
    seen,
    log,
    /** Follows this build, if it is another one. @param {Build} build */
    see: (build) => {
      if (seen.build?.id === build.id || hasEnded) return;
      clearTimeout(timer);
      seen.build = build;
      void look(build);
    },
    end: () => {
      hasEnded = true;
      clearTimeout(timer);
      log?.end();
    },
  };
};
