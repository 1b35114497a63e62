/** The panel of saved work: what is saved and what is not, earlier saves, and what a sandbox brought back. Loaded when a session has some. */
import { ApiError, getJson, getText, remove } from "../api/api.ts";
import { ask } from "../frame/dialog.ts";
import { h } from "../elements/dom.ts";
import { counted, pathCount, pathsOf } from "../elements/format.ts";
import { button, code, commandLine, detail, listRow, prose, time } from "../elements/parts.ts";
import { hasContents, runsWithoutSave } from "../../src/domain/save/shown.ts";
import { isLive, projectPath } from "../projects/project.js";
import { contents, savedSentence } from "./report.js";
import { pathItems, stop } from "./stopping.js";

/** @typedef {import("../wire.d.ts").Session} Session */
/** @typedef {import("../wire.d.ts").Saved} Saved */
/** @typedef {import("../wire.d.ts").Restored} Restored */
/** @typedef {import("../wire.d.ts").SessionChanges} SessionChanges */

/**
 * @typedef {object} Page what the session's page has already
 * @property {() => void} changed
 * @property {(session: Session) => boolean} canRestore
 * @property {() => import("../elements/dom.ts").Child} showDiff the place of the diff
 */

/** The save that the reader wants to see: "" is the newest. @type {{session: string, save: string} | null} */
let chosen = null;

/**
 * @typedef {object} SavedFiles
 * @property {string | null} key which save of which commit; null: none is shown
 * @property {string} save its id; "" is the newest
 * @property {SessionChanges | null} changes null before the answer
 * @property {string} diff
 * @property {string} url of the diff in the API
 * @property {string | null} problem why they could not be read
 */

/** Shows what is saved, and reads the files of a save: of a session that has ended, and whenever the reader asks. @param {string} path of the session in the API @param {Page} page */
export const followSaves = (path, { changed, canRestore, showDiff }) => {
  /** @type {SavedFiles} */
  const files = { key: null, save: "", changes: null, diff: "", url: "", problem: null };
  /** @param {string} query */
  const read = async (query) => {
    const { key } = files;
    /** @type {Partial<SavedFiles>} */
    let answer;
    try {
      const changes = await getJson(`${path}/changes?${query}`);
      const diff = changes.files_changed_total > 0 ? await getText(`${path}/diff?${query}`) : "";
      answer = { changes, diff };
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) return;
      answer = { problem: error instanceof Error ? error.message : String(error) };
    }
    // The reader may have chosen another one meanwhile.
    if (files.key !== key) return;
    Object.assign(files, answer);
    changed();
  };

  return {
    /** @param {Session} session */
    view: (session) => savedPanel(session, files, showDiff),
    /** The save whose files are shown, for its diff. */
    shown: () =>
      files.changes === null ? null : { diff: files.diff, url: files.url, changes: files.changes },
    /** @param {Session} session */
    see: (session) => {
      const wish = chosen?.session === session.id ? chosen.save : null;
      const isShown = session.saved !== null && (wish !== null || canRestore(session));
      const key = isShown ? `${session.saved?.wip} ${session.saved?.at} ${wish}` : null;
      if (key === files.key) return;
      const query = `of=saved${wish ? `&save=${encodeURIComponent(wish)}` : ""}`;
      const url = `${path}/diff?${query}`;
      Object.assign(files, { key, save: wish ?? "", changes: null, diff: "", url, problem: null });
      if (key !== null) void read(query);
    },
  };
};

/** @param {string} title @param {Saved["pending"]} paths @param {boolean} [isOpen] */
const pathList = (title, paths, isOpen = true) =>
  paths.length > 0 &&
  h(
    "details",
    { class: "paths", "data-key": title, open: isOpen },
    h("summary", {}, `${title}: ${pathsOf(pathCount(paths))}`),
    h("ul", {}, pathItems(paths)),
  );

/** The saved work of a session, the missing paths, and the work that its sandbox brought back. @param {Session} session @param {SavedFiles} files @param {Page["showDiff"]} showDiff */
const savedPanel = (session, files, showDiff) => {
  const { saved, restored, status } = session;
  if (saved === null && restored === null && status !== "running") return null;
  return h(
    "section",
    { "data-key": "saved", id: "saved", class: "saved" },
    h("h2", {}, "Saved work"),
    saved === null
      ? status === "running" &&
          h("p", {}, "Nothing is saved yet. The first save is at the end of the agent's turn.")
      : savedParts(session, saved),
    restored !== null && restoredParts(restored),
    files.key !== null && filesView(session, files, showDiff),
  );
};

/** @param {Session} session @param {Saved} saved */
const savedParts = (session, saved) => {
  const { id, project_id: project, status } = session;
  const { before, at, after } = savedSentence(saved);
  const input = { "data-project": project, "data-session": id };
  return [
    h("p", { "data-key": "sentence" }, prose(before), at === null ? [] : [" (", time(at), ")"], prose(after)),
    isLive(status) &&
      h(
        "p",
        { class: "quiet", "data-key": "later" },
        runsWithoutSave(session)
          ? "This sandbox runs without it. It stays saved."
          : "Later changes are only in the sandbox until the next save.",
      ),
    status === "failed" &&
      h("p", { class: "quiet", "data-key": "later" }, "Later changes, if any, are lost."),
    pathList("Not saved", saved.pending),
    saved.pending.length > 0 &&
      h(
        "p",
        { class: "quiet", "data-key": "older" },
        "Older versions of these paths stay if an earlier save has them.",
      ),
    ...((saved.earlier ?? []).length === 0 ? [] : earlierParts(saved.earlier ?? [], input)),
    pathList("No save takes these", saved.skipped, false),
    hasContents(saved) &&
      h("p", { "data-key": "fetch" }, "Fetch it with git:", commandLine(`git fetch origin refs/wip/${id}`)),
    hasContents(saved) &&
      isLive(status) &&
      h(
        "p",
        { class: "actions", "data-key": "show" },
        button("show-save", "Show the saved files", { ...input, class: "plain" }),
      ),
  ];
};

/** @param {NonNullable<Saved["earlier"]>} earlier @param {import("../elements/dom.ts").Attributes} input */
const earlierParts = (earlier, input) => [
  h("h3", {}, "Earlier saves"),
  h("p", {}, "No sandbox has brought these back whole. The next restart tries again."),
  h(
    "ul",
    { class: "rows", "data-key": "earlier" },
    earlier.map((save) => {
      const own = { ...input, "data-save": save.id };
      return listRow(
        save.id,
        [
          h("span", {}, "Save of ", time(save.at)),
          detail(contents(save) || "staged changes", save.node && ` on node ${save.node}`),
        ],
        {
          states: [],
          actions: [
            button("show-save", "Show", { ...own, "data-key": "show" }),
            button("delete-save", "Delete", { ...own, "data-key": "delete" }),
          ],
        },
      );
    }),
  ),
];

/** What the sandbox brought back. @param {Restored} restored */
const restoredParts = ({ commits, files, refs, renamed, skipped, error, notes = [] }) => [
  h("h3", {}, "Brought back into this sandbox"),
  h(
    "p",
    { "data-key": "restored" },
    `${counted(files, "changed file")}${commits === 0 ? "" : ` and ${counted(commits, "commit")} on the session's branch`}.`,
    refs.length === 0 ? [] : [" Branches: ", ...refs.flatMap((ref, at) => [at > 0 && ", ", code(ref)]), "."],
  ),
  renamed.length > 0 &&
    h(
      "ul",
      { class: "paths" },
      renamed.map(({ path, as }) => h("li", {}, code(path), " came back as ", code(as))),
    ),
  error !== null && h("p", { class: "refusal" }, prose(error)),
  ...notes.map((note) => h("p", { class: "refusal" }, prose(note))),
  pathList("Not brought back", skipped),
];

/** The files of the shown save. @param {Session} session @param {SavedFiles} files @param {Page["showDiff"]} showDiff */
const filesView = ({ saved }, { save, changes, problem }, showDiff) => {
  const earlier = saved?.earlier?.find(({ id }) => id === save);
  return h(
    "div",
    { "data-key": `files ${save}`, id: "saved-files" },
    h(
      "h3",
      {},
      earlier === undefined ? "The newest save" : ["The save of ", time(earlier.at)],
      changes !== null && `: changes in ${counted(changes.files_changed_total, "file")}`,
    ),
    problem !== null && h("p", { class: "refusal" }, prose(problem)),
    changes !== null && showDiff(),
  );
};

/** @type {Record<string, import("../frame/actions.js").Action>} */
export const actions = {
  "stop-session": stop,

  /** Without a save, the newest one. */
  "show-save": ({ session = "", save = "" }, page) => {
    chosen = { session, save };
    page.draw();
    document.getElementById("saved-files")?.scrollIntoView({ behavior: "smooth" });
  },

  "delete-save": async ({ project = "", session = "", save = "" }, page) => {
    const sure = await ask({
      title: "Delete this save?",
      text: "Work that only this save has cannot be restored. The newest save and the session's branch stay.",
      confirm: "Delete",
    });
    if (sure === null) return;
    await remove(`${projectPath(project)}/sessions/${session}/saves/${encodeURIComponent(save)}`);
    page.notice("The save was deleted.");
    page.refresh();
  },
};
