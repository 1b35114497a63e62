/** Unpushed work that the service saved: its files, what became of it, and whether a restart brings it back. */
import { ApiError, getJson, getText } from "./api.js";
import { changesIn, diffView } from "./diff-view.js";
import { h } from "./dom.js";
import { counted } from "./format.js";
import { button, callout, code, prose } from "./parts.js";
import { sourceOf } from "./work.js";

/** @typedef {import("./wire.d.ts").Session} Session */
/** @typedef {import("./wire.d.ts").SessionChanges} SessionChanges */

const BOX = "restore-saved";
const ENDED = new Set(["stopped", "failed"]);

/** Whether a restart of this session would have something to bring back. @param {Session} session */
const hasSaved = ({ status, saved }) => ENDED.has(status) && saved !== null && saved.wip !== null;

/** What the reader wishes of a restart. Without a box, as in a list, saved work is brought back. */
export const isRestoreWanted = () => {
  const box = document.querySelector(`#${BOX}`);
  return !(box instanceof HTMLInputElement) || box.checked;
};

/**
 * @typedef {object} SavedFiles
 * @property {string | null} wip the commit of these files
 * @property {SessionChanges | null} changes null before the answer
 * @property {string} diff
 * @property {string} url of the diff in the API
 * @property {string | null} problem why they could not be read
 */

/** Reads the files of the saved commit once the session has ended. @param {string} path of the session in the API @param {() => void} changed */
export const followSaved = (path, changed) => {
  const url = `${path}/diff?of=saved`;
  /** @type {SavedFiles} */
  const files = { wip: null, changes: null, diff: "", url, problem: null };
  let hasEnded = false;

  const read = async () => {
    try {
      const changes = await getJson(`${path}/changes?of=saved`);
      files.diff = changes.files_changed_total > 0 ? await getText(url) : "";
      files.changes = changes;
      files.problem = null;
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) return;
      files.problem = error instanceof Error ? error.message : String(error);
    }
    if (!hasEnded) changed();
  };

  return {
    files,
    /** @param {Session} session */
    see: (session) => {
      const wip = hasSaved(session) ? (session.saved?.wip ?? null) : null;
      if (wip === files.wip) return;
      Object.assign(files, { wip, changes: null, diff: "", problem: null });
      if (wip !== null) void read();
    },
    end: () => (hasEnded = true),
  };
};

/** Above the conversation of a session that has ended: what a restart brings back. @param {Session} session */
export const restoreChoice = (session) =>
  hasSaved(session) &&
  callout(
    "info",
    h("strong", {}, "The agent left unpushed work."),
    h(
      "p",
      {},
      h(
        "label",
        { class: "choice" },
        h("input", { type: "checkbox", id: BOX, checked: true, "data-key": BOX }),
        " Bring back unpushed work with a restart",
      ),
      " ",
      button("show-saved", "Show the files", { class: "plain" }),
    ),
  );

/** The files of the saved commit. @param {Session} session @param {SavedFiles | null} files */
export const savedFiles = (session, files) => {
  if (files === null || !hasSaved(session)) return null;
  const { changes, problem } = files;
  return h(
    "section",
    { "data-key": "saved", id: "saved" },
    h(
      "h2",
      {},
      changes === null
        ? "Unpushed work"
        : `Unpushed work: ${firstLower(changesIn(changes.files_changed_total))}`,
    ),
    problem !== null && h("p", { class: "refusal" }, prose(problem)),
    changes !== null && diffView(files.diff, { source: sourceOf(files.url, changes), open: false }),
  );
};

/** @param {string} text */
const firstLower = (text) => `${text.charAt(0).toLowerCase()}${text.slice(1)}`;

/** How many skipped files are listed. The API has them all. */
const SKIPPED_SHOWN = 10;

/** @param {import("./wire.d.ts").Saved["skipped"]} skipped */
const listOf = (skipped) =>
  `${skipped
    .slice(0, SKIPPED_SHOWN)
    .map(({ path, reason }) => `${path} (${reason})`)
    .join(", ")}${skipped.length > SKIPPED_SHOWN ? ` and ${skipped.length - SKIPPED_SHOWN} more` : ""}`;

/** The unpushed work when the sandbox was torn down. @param {Session} session @param {import("./wire.d.ts").Saved} saved */
export const savedWork = ({ id }, { wip, skipped, error }) =>
  h(
    "span",
    { class: "text" },
    error !== null && `Not saved: ${error}${wip === null ? "" : ". Saved earlier: "}`,
    wip !== null && code(`refs/wip/${id}`),
    error === null && wip === null && "Nothing to save: all commits were pushed.",
    skipped.length > 0 && ` Skipped: ${listOf(skipped)}`,
  );

/** What the sandbox brought back. @param {import("./wire.d.ts").Restored} restored */
export const restoredWork = ({ commits, files, skipped, error }) =>
  h(
    "span",
    { class: "text" },
    `${counted(commits, "commit")}, ${counted(files, "changed file")}.`,
    skipped.length > 0 && ` Not restored: ${listOf(skipped)}.`,
    error !== null && ` Not restored: ${error}`,
  );
