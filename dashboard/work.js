/** The work of a session: what its workspace has while it runs, its pushed commits, and their diff. */
import { ApiError, getJson, getText } from "./api.js";
import { forgetLoaded } from "./diff-files.js";
import { changesIn, commitRows, counts, diffView, listed } from "./diff-view.js";
import { h } from "./dom.js";
import { counted } from "./format.js";
import { prose } from "./parts.js";
import { reviewView } from "./review.js";

/** @typedef {import("./wire.d.ts").SessionChanges} SessionChanges */
/** @typedef {import("./wire.d.ts").WorkspaceChanges} WorkspaceChanges */

/** So much of the time is left to the sandbox: a reading begins this long after the one before. */
const REST_MS = 1000;

/**
 * @typedef {object} Work
 * @property {SessionChanges | null} changes the pushed work. Null before the first answer
 * @property {WorkspaceChanges | null} live what the workspace has, while the session runs. Null: it cannot be read
 * @property {string} diff of the workspace, otherwise of the branch
 * @property {string} url of the session in the API
 * @property {string | null} problem why the branch or the workspace could not be read
 * @property {boolean} isRunning
 */

/** @typedef {ReturnType<typeof followWork>} Following */

/** @param {unknown} error */
const saidBy = (error) => (error instanceof Error ? error.message : String(error));

/** Reads all of it. @param {Work} work as it is @returns {Promise<Partial<Work>>} what has changed */
const readWork = async ({ url, changes: before, live: wasLive, diff, isRunning }) => {
  const [changes, workspace] = await Promise.all([
    getJson(`${url}/changes`),
    isRunning ? getJson(`${url}/workspace/changes`).catch(saidBy) : null,
  ]);
  // A message: the sandbox does not answer, or ends. The branch has what was pushed.
  if (typeof workspace === "string" || workspace === null) {
    // A merge changes what is new, and not the branch.
    const isSame =
      wasLive === null &&
      changes.head_commit === before?.head_commit &&
      changes.commits_total === before?.commits_total;
    const pushed = async () => (changes.files_changed_total > 0 ? await getText(`${url}/diff`) : "");
    return { changes, live: null, problem: workspace, diff: isSame ? diff : await pushed() };
  }
  const path = `${url}/workspace/diff`;
  const text = workspace.files_changed_total > 0 ? await getText(path) : "";
  if (text !== diff) forgetLoaded(path);
  return { changes, live: workspace, problem: null, diff: text };
};

/**
 * Reads the work again whenever the session's state changes, and when its agent has finished a tool. Never while the page is
 * hidden.
 *
 * @param {string} url of the session in the API
 * @param {() => void} changed
 */
export const followWork = (url, changed) => {
  /** @type {Work} */
  const work = { changes: null, live: null, diff: "", problem: null, url, isRunning: false };
  let hasEnded = false;
  let isReading = false;
  let isOutdated = false;
  let seen = "";

  const read = async () => {
    isOutdated = true;
    if (isReading || hasEnded || document.visibilityState !== "visible") return;
    isOutdated = false;
    isReading = true;
    try {
      Object.assign(work, await readWork(work));
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) return;
      work.problem = saidBy(error);
    } finally {
      // eslint-disable-next-line no-restricted-globals -- the browser's timer
      setTimeout(() => {
        isReading = false;
        if (isOutdated) void read();
      }, REST_MS);
    }
    if (!hasEnded) changed();
  };
  const shown = () => {
    if (isOutdated) void read();
  };
  document.addEventListener("visibilitychange", shown);

  return {
    work,
    /**
     * @param {import("./wire.d.ts").Session} session as it is now
     * @param {import("./wire.d.ts").ChangeRequest[]} requests its change requests
     * @param {number} tools how many tools the agent has finished
     */
    see: (session, requests, tools) => {
      work.isRunning = session.status === "running";
      const merged = requests.filter(({ status }) => status === "merged").length;
      const state = `${session.status} ${session.turn.state} ${session.last_turn?.at ?? ""} ${merged} ${work.isRunning ? tools : ""}`;
      if (state === seen) return;
      seen = state;
      void read();
    },
    end: () => {
      hasEnded = true;
      document.removeEventListener("visibilitychange", shown);
    },
  };
};

/** @param {Pick<SessionChanges, "files_changed">} changes */
const sumOf = ({ files_changed: files }) =>
  counts(
    files.reduce((sum, { additions }) => sum + additions, 0),
    files.reduce((sum, { deletions }) => sum + deletions, 0),
  );

/** A line for the head of the page. It leads to the changes. @param {Work | null} work */
export const workSummary = (work) => {
  const { changes = null, live = null } = work ?? {};
  const shown = live ?? changes;
  if (shown === null || changes === null || shown.files_changed_total + changes.commits_total === 0)
    return null;
  const commits = changes.commits_total + (live?.unpushed_commits ?? 0);
  return h(
    "button",
    { type: "button", class: "plain", "data-action": "show-work", "data-key": "show-work" },
    `${commits > 0 ? `${counted(commits, "commit")}, ` : ""}${counted(shown.files_changed_total, "file")} `,
    sumOf(shown),
  );
};

/** More files than these are a list that is opened one by one. */
const OPEN_FILES = 5;

/** As in workbench.css: from this width on, the work has a column of its own. @param {Pick<SessionChanges, "files_changed_total">} changes */
const isBeside = ({ files_changed_total: files }) =>
  files <= OPEN_FILES && matchMedia("(min-width: 80rem)").matches;

/** Whether the branch is as it began. @param {SessionChanges} changes */
const isUntouched = ({ head_commit: head, base_commit: base }) => head === null || head === base;

const NOTHING_NEW = "Nothing is new: all pushed commits are merged.";

/** @param {SessionChanges} changes */
const nothingNew = (changes) =>
  isUntouched(changes) ? "The agent has not pushed a commit yet." : NOTHING_NEW;

/** Whether a change request could propose something. @param {Work | null} work */
export const hasNewWork = (work) => (work?.changes?.commits_total ?? 0) > 0;

/** @param {string} url @param {Pick<SessionChanges, "head_commit" | "files_changed" | "files_changed_total">} changes */
export const sourceOf = (url, { head_commit: head, files_changed: files, files_changed_total: total }) => ({
  url,
  head,
  listed: files,
  total,
});

/** The unpushed work in words. @param {WorkspaceChanges} live @param {SessionChanges | null} pushed */
const unpushedWords = ({ files_changed_total: all, unpushed_total: unpushed, ...live }, pushed) => {
  const { uncommitted_total: uncommitted, unpushed_commits: commits } = live;
  if (all === 0 && unpushed === 0)
    return pushed === null || isUntouched(pushed) ? "The agent has not changed a file yet." : NOTHING_NEW;
  if (unpushed === 0 && commits === 0) return "All of it is pushed.";
  const parts = [
    ...(commits > 0 ? [counted(commits, "commit")] : []),
    ...(uncommitted > 0 ? [`uncommitted changes in ${counted(uncommitted, "file")}`] : []),
  ];
  return `Not pushed yet: ${parts.join(" and ")}.`;
};

const STATES = { uncommitted: "not committed", committed: "not pushed", pushed: "" };

/** @typedef {import("./review.js").Reviewed | null} Reviewed null: the reader cannot comment on lines */

/** @param {Work} work @param {WorkspaceChanges} live @param {Reviewed} reviewed */
const liveView = ({ diff, url, changes }, live, reviewed) => [
  h("p", { class: "quiet", "data-key": "unpushed" }, unpushedWords(live, changes)),
  live.files_changed_total > 0 &&
    diffView(diff, {
      source: {
        url: `${url}/workspace/diff`,
        head: null,
        listed: live.files_changed,
        total: live.files_changed_total,
        rest: "“Files of the workspace” below shows whole files.",
        marks: new Map(live.files_changed.map(({ path, state }) => [path, STATES[state]])),
      },
      open: isBeside(live),
      columns: false,
      review: reviewed?.session ?? null,
    }),
];

/** @param {Work} work @param {SessionChanges} changes @param {Reviewed} reviewed */
const pushedView = ({ diff, url }, changes, reviewed) =>
  changes.commits_total === 0
    ? [h("p", { class: "quiet" }, nothingNew(changes))]
    : [
        diffView(diff, {
          source: sourceOf(`${url}/diff`, changes),
          open: isBeside(changes),
          columns: false,
          review: reviewed?.session ?? null,
        }),
      ];

/** @param {Work | null} work @param {Reviewed} reviewed */
export const workView = (work, reviewed) => {
  if (work === null || (work.changes === null && work.problem === null)) return null;
  const { changes, live, problem } = work;
  const files = (live ?? changes)?.files_changed_total ?? 0;
  return h(
    "section",
    { "data-key": "work", id: "work" },
    h("h2", {}, files === 0 ? "Changes" : changesIn(files)),
    problem !== null && h("p", { class: "refusal" }, prose(problem)),
    files > 0 && reviewed !== null && reviewView(reviewed),
    live !== null && liveView(work, live, reviewed),
    live === null && changes !== null && pushedView(work, changes, reviewed),
    changes !== null &&
      changes.commits_total > 0 &&
      h(
        "details",
        { class: "group", "data-key": "commits" },
        h(
          "summary",
          {},
          listed(
            counted(changes.commits_total, (live?.unpushed_commits ?? 0) > 0 ? "pushed commit" : "commit"),
            changes.commits.length,
            changes.commits_total,
          ),
        ),
        commitRows(changes.commits),
      ),
    live !== null &&
      h(
        "details",
        { class: "group", "data-key": "files", id: "workspace-files" },
        h("summary", {}, "Files of the workspace"),
        h("div", { "data-own": "workspace-files", "data-key": "tree", class: "tree" }),
      ),
  );
};
