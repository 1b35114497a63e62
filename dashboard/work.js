/** The pushed work of a session: its new commits, its files, and their diff. */
import { ApiError, getJson, getText } from "./api.js";
import { changesIn, commitRows, counts, diffView, listed } from "./diff-view.js";
import { h } from "./dom.js";
import { counted } from "./format.js";
import { prose } from "./parts.js";

/** @typedef {import("./wire.d.ts").SessionChanges} SessionChanges */

/** How often the branch is read while the agent works. */
const POLL_MS = 5000;

/**
 * @typedef {object} Work
 * @property {SessionChanges | null} changes null before the first answer
 * @property {string} diff
 * @property {string} url of the diff in the API
 * @property {string | null} problem why the branch could not be read
 */

/** @typedef {ReturnType<typeof followWork>} Following */

/**
 * Reads the work again whenever the session's state changes, and from time to time while its agent works.
 *
 * @param {string} path of the session in the API
 * @param {() => void} changed
 */
export const followWork = (path, changed) => {
  /** @type {Work} */
  const work = { changes: null, diff: "", problem: null, url: `${path}/diff` };
  let hasEnded = false;
  let isReading = false;
  let seen = "";
  let isWorking = false;

  const read = async () => {
    if (isReading || hasEnded) return;
    isReading = true;
    try {
      const changes = await getJson(`${path}/changes`);
      // A merge changes what is new, and not the branch.
      if (
        changes.head_commit !== work.changes?.head_commit ||
        changes.commits_total !== work.changes?.commits_total
      ) {
        work.diff = changes.files_changed_total > 0 ? await getText(`${path}/diff`) : "";
      }
      work.changes = changes;
      work.problem = null;
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) return;
      work.problem = error instanceof Error ? error.message : String(error);
    } finally {
      isReading = false;
    }
    if (!hasEnded) changed();
  };

  // eslint-disable-next-line no-restricted-globals -- the browser's timer
  const timer = setInterval(() => {
    if (isWorking && document.visibilityState === "visible") void read();
  }, POLL_MS);

  return {
    work,
    /**
     * @param {import("./wire.d.ts").Session} session as it is now
     * @param {import("./wire.d.ts").ChangeRequest[]} requests its change requests
     */
    see: (session, requests) => {
      isWorking = session.status === "running" && session.turn.state !== "idle";
      const merged = requests.filter(({ status }) => status === "merged").length;
      const state = `${session.status} ${session.turn.state} ${session.last_turn?.at ?? ""} ${merged}`;
      if (state === seen) return;
      seen = state;
      void read();
    },
    end: () => {
      hasEnded = true;
      clearInterval(timer);
    },
  };
};

/** @param {SessionChanges} changes */
const sumOf = ({ files_changed: files }) =>
  counts(
    files.reduce((sum, { additions }) => sum + additions, 0),
    files.reduce((sum, { deletions }) => sum + deletions, 0),
  );

/** A line for the head of the page. It leads to the changes. @param {Work | null} work */
export const workSummary = (work) => {
  const changes = work?.changes ?? null;
  if (changes === null || changes.commits_total === 0) return null;
  return h(
    "button",
    { type: "button", class: "plain", "data-action": "show-work", "data-key": "show-work" },
    `${counted(changes.commits_total, "commit")}, ${counted(changes.files_changed_total, "file")} `,
    sumOf(changes),
  );
};

/** More files than these are a list that is opened one by one. */
const OPEN_FILES = 5;

/** As in workbench.css: from this width on, the work has a column of its own. @param {SessionChanges} changes */
const isBeside = ({ files_changed_total: files }) =>
  files <= OPEN_FILES && matchMedia("(min-width: 80rem)").matches;

/** @param {SessionChanges} changes */
const nothingNew = ({ head_commit: head, base_commit: base }) =>
  head === null || head === base
    ? "The agent has not pushed a commit yet."
    : "Nothing is new: all pushed commits are merged.";

/** Whether a change request could propose something. @param {Work | null} work */
export const hasNewWork = (work) => (work?.changes?.commits_total ?? 0) > 0;

/** @param {string} url @param {Pick<SessionChanges, "head_commit" | "files_changed" | "files_changed_total">} changes */
export const sourceOf = (url, { head_commit: head, files_changed: files, files_changed_total: total }) => ({
  url,
  head,
  listed: files,
  total,
});

/** @param {Work | null} work */
export const workView = (work) => {
  const changes = work?.changes ?? null;
  if (work === null || (changes === null && work.problem === null)) return null;
  return h(
    "section",
    { "data-key": "work", id: "work" },
    h(
      "h2",
      {},
      changes === null || changes.files_changed_total === 0
        ? "Changes"
        : changesIn(changes.files_changed_total),
    ),
    work.problem !== null && h("p", { class: "refusal" }, prose(work.problem)),
    changes !== null &&
      (changes.commits_total === 0
        ? h("p", { class: "quiet" }, nothingNew(changes))
        : [
            diffView(work.diff, {
              source: sourceOf(work.url, changes),
              open: isBeside(changes),
              columns: false,
            }),
            h(
              "details",
              { class: "group", "data-key": "commits" },
              h(
                "summary",
                {},
                listed(
                  counted(changes.commits_total, "commit"),
                  changes.commits.length,
                  changes.commits_total,
                ),
              ),
              commitRows(changes.commits),
            ),
          ]),
  );
};
