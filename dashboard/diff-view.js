/** The changes between two commits: their commits, and a diff by file, in one column or in two. */
import { FILE_LINES, PAGE_LINES, planFiles } from "./diff-files.js";
import { pairLines } from "./diff-parse.js";
import { h } from "./dom.js";
import { counted, grouped } from "./format.js";
import { button, code, tag, time } from "./parts.js";
import { commentLines } from "./review.js";

/** The rest of a longer line is not shown. */
const LINE_CHARS = 1000;
/** Two columns need this much room. */
const WIDE = "(min-width: 60rem)";
const CHOICE = "diff-view";

/** @typedef {{sha: string, subject: string, author_name: string, committed_at: string}} Commit */
/** @typedef {import("./diff-files.js").PlannedFile} PlannedFile */
/** @typedef {import("./diff-files.js").Source} Source */
/** @typedef {import("./diff-parse.js").DiffLine} DiffLine */

/** @param {number} files */
export const changesIn = (files) => `Changes in ${files} ${files === 1 ? "file" : "files"}`;

/** A heading that says where a list is cut. @param {string} what @param {number} shown @param {number} total */
export const listed = (what, shown, total) =>
  shown < total ? `${what} (the newest ${shown} of ${total})` : what;

/** @param {readonly Commit[]} commits */
export const commitRows = (commits) =>
  h(
    "ul",
    { class: "rows" },
    commits.map((commit) =>
      h(
        "li",
        { class: "row", "data-key": commit.sha },
        h("span", { class: "row-main" }, commit.subject, h("span", { class: "quiet" }, commit.author_name)),
        code(commit.sha.slice(0, 10)),
        h("span", { class: "row-side" }, time(commit.committed_at)),
      ),
    ),
  );

/** How many lines were added and removed. @param {number} added @param {number} removed */
export const counts = (added, removed) =>
  h(
    "span",
    { class: "counts" },
    h("span", { class: "added" }, `+${added}`),
    " ",
    h("span", { class: "removed" }, `−${removed}`),
  );

/** The reader's choice, kept by the browser. @returns {"unified" | "split"} */
const chosenView = () => {
  try {
    return localStorage.getItem(CHOICE) === "split" ? "split" : "unified";
  } catch {
    return "unified";
  }
};

/** @param {string} view */
export const chooseDiffView = (view) => {
  try {
    localStorage.setItem(CHOICE, view === "split" ? "split" : "unified");
  } catch {
    // The storage is forbidden: the view stays as it is.
  }
};

/** @returns {HTMLDetailsElement[]} */
const shownFiles = () => [...document.querySelectorAll(/** @type {"details"} */ ("details.file"))];

/** @param {boolean} open */
export const foldFiles = (open) => {
  for (const file of shownFiles()) file.open = open;
};

/** @param {number} at */
export const showFile = (at) => {
  const file = shownFiles()[at];
  if (file === undefined) return;
  file.open = true;
  file.scrollIntoView({ block: "start" });
  file.querySelector("summary")?.focus({ preventScroll: true });
};

/**
 * Keys for a diff: `j` and `k` lead to the next and the previous file, `s` changes the view. Enter folds the file that has
 * the focus, as everywhere.
 *
 * @param {() => void} changed
 * @returns {() => void} ends it
 */
export const followDiffKeys = (changed) => {
  /** @param {KeyboardEvent} event */
  const pressed = (event) => {
    const target = event.target instanceof Element ? event.target : null;
    const isTyping = target?.closest("input, textarea, select, dialog, [contenteditable]") !== null;
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "s") {
      chooseDiffView(chosenView() === "split" ? "unified" : "split");
      changed();
    } else if (event.key === "j" || event.key === "k") {
      const files = shownFiles();
      const now = files.findIndex((file) => file.contains(document.activeElement));
      const next = event.key === "j" ? now + 1 : Math.max(now, 1) - 1;
      showFile(Math.min(next, files.length - 1));
    } else return;
    event.preventDefault();
  };
  document.addEventListener("keydown", pressed);
  return () => document.removeEventListener("keydown", pressed);
};

/**
 * One block for each file. Long and generated files are folded, with a button that shows them.
 *
 * @param {string} diff
 * @param {{source?: Source | null, open?: boolean, keys?: boolean, columns?: boolean, review?: string | null}} [options] source: where single
 * files can be read; open: whether the files are opened at first; keys: whether `followDiffKeys` listens; columns:
 * whether there is room for two; review: the session whose agent gets comments on lines (review.js)
 */
export const diffView = (
  diff,
  { source = null, open = true, keys = false, columns = true, review = null } = {},
) => {
  const { files, cut } = planFiles(diff, source);
  if (files.length === 0) return h("p", { class: "quiet" }, "No differences.");
  const isWide = columns && matchMedia(WIDE).matches;
  const view = isWide ? chosenView() : "unified";
  const unlisted = Math.max(0, (source?.total ?? 0) - files.length);
  return h(
    "div",
    { class: "diff-files", "data-review": review },
    toolbar(files, { view, isWide, keys }),
    files.map((file) => fileView(file, { source, view, open, review })),
    unlisted > 0 && note("unlisted", `${counted(unlisted, "more file")} changed. ${restOf(source)}`),
    cut !== null && note("cut", `${cut} ${restOf(source)}`),
  );
};

/** Where a reader finds what is not shown. @param {Source | null} source */
const restOf = (source) => source?.rest ?? "Fetch the branch to read the rest.";

/** @param {string} key @param {string} text */
const note = (key, text) => h("p", { class: "quiet", "data-key": key }, text);

/** @param {PlannedFile[]} files @param {{view: string, isWide: boolean, keys: boolean}} how */
const toolbar = (files, { view, isWide, keys }) =>
  h(
    "div",
    { class: "diff-bar", "data-key": "diff-bar" },
    isWide &&
      h(
        "span",
        { class: "switch", role: "group", "aria-label": "View of the changes" },
        viewButton("unified", "One column", view),
        viewButton("split", "Side by side", view),
      ),
    files.length > 1 && [
      button("fold-files", "Fold all", { class: "plain", "data-key": "fold" }),
      button("fold-files", "Unfold all", { class: "plain", "data-key": "unfold", "data-open": "yes" }),
    ],
    keys &&
      h(
        "span",
        { class: "quiet keys" },
        ...["j", "k"].flatMap((key) => [h("kbd", {}, key), " "]),
        "next and previous file",
        isWide && [", ", h("kbd", {}, "s"), " view"],
        ", ",
        h("kbd", {}, "Enter"),
        " folds",
      ),
    files.length > 1 && fileList(files),
  );

/** @param {string} value @param {string} label @param {string} view */
const viewButton = (value, label, view) =>
  button("diff-view", label, {
    "data-key": value,
    "data-view": value,
    "aria-pressed": String(value === view),
  });

/** @param {PlannedFile[]} files */
const fileList = (files) =>
  h(
    "details",
    { class: "file-list", "data-key": "file-list" },
    h("summary", {}, counted(files.length, "file")),
    h(
      "ul",
      {},
      files.map((file, at) =>
        h(
          "li",
          { "data-key": file.key },
          button("show-file", file.path, { class: "plain", "data-file": String(at), "data-key": null }),
          " ",
          counts(file.added, file.removed),
        ),
      ),
    ),
  );

/** @param {string} mark */
const marked = (mark) => mark !== "" && [" ", tag(mark)];

/** @param {PlannedFile} file @param {{source: Source | null, view: string, open: boolean, review: string | null}} how */
const fileView = (file, { source, view, open, review }) =>
  h(
    "details",
    { class: "file", open, "data-key": file.key, "data-path": file.path },
    h(
      "summary",
      {},
      code(file.path),
      file.from !== null && h("span", { class: "quiet" }, " was ", code(file.from)),
      file.note !== "" && [" ", tag(file.note)],
      marked(source?.marks?.get(file.path) ?? ""),
      " ",
      counts(file.added, file.removed),
      !file.isShown && h("span", { class: "quiet" }, " not shown"),
    ),
    file.isShown
      ? shownLines(file, {
          view,
          rest: restOf(source),
          withComments: review === null ? (line) => [line] : commentLines(review, file.path),
        })
      : folded(file, source),
    review !== null &&
      h(
        "p",
        { class: "actions", "data-key": "comment" },
        button("comment-file", "Comment on this file", {
          class: "plain",
          "data-session": review,
          "data-path": file.path,
          "aria-label": `Comment on this file: ${file.path}`,
        }),
      ),
  );

/** @typedef {(line: DiffLine) => DiffLine[]} WithComments a line, and the comments on it */

/** @param {PlannedFile} file @param {{view: string, rest: string, withComments: WithComments}} how rest: where the lines are that are not shown */
const shownLines = ({ lines, cut }, { view, rest, withComments }) => {
  const hidden = lines.length - FILE_LINES;
  return [
    linesView(lines.slice(0, FILE_LINES).map(shortened), view, withComments),
    hidden > 0 && note("hidden", `${grouped(hidden)} more lines are not shown. ${rest}`),
    cut !== null && note("file-cut", `${cut} ${rest}`),
  ];
};

const FOLDED = {
  generated: "This file is generated.",
  long: "This file is long.",
  room: `The page shows ${grouped(PAGE_LINES)} lines at once.`,
  absent: "The diff is too long to be sent at once.",
};

/** @param {PlannedFile} file @param {Source | null} source */
const folded = ({ path, why, lines }, source) =>
  h(
    "p",
    { "data-key": "folded" },
    h("span", { class: "quiet" }, why === null ? "" : FOLDED[why]),
    " ",
    button("show-lines", "Show this file", {
      "data-url": source?.url ?? "",
      "data-head": source?.head ?? "",
      "data-path": path,
      "data-load": lines.length === 0 ? "yes" : null,
      "aria-label": `Show this file: ${path}`,
    }),
  );

/** @param {DiffLine[]} lines @param {string} view @param {WithComments} withComments */
const linesView = (lines, view, withComments) => {
  if (lines.length === 0) return h("p", { class: "quiet", "data-key": "none" }, "No lines to show.");
  if (view === "unified")
    return h("div", { "data-key": "unified" }, numberedLines(lines.flatMap(withComments)));
  const rows = pairLines(lines).flatMap((row) => withCommentsBelow(row, withComments));
  return h(
    "div",
    { class: "split", "data-key": "split" },
    h(
      "div",
      {},
      numberedLines(
        rows.map(([before]) => before),
        "before",
      ),
    ),
    h(
      "div",
      {},
      numberedLines(
        rows.map(([, after]) => after),
        "after",
      ),
    ),
  );
};

/**
 * A row of two columns, and below it a row for each comment on one of its lines.
 *
 * @param {[DiffLine | null, DiffLine | null]} row
 * @param {WithComments} withComments
 * @returns {[DiffLine | null, DiffLine | null][]}
 */
const withCommentsBelow = ([before, after], withComments) => {
  const onBefore = before === null || before === after ? [] : withComments(before).slice(1);
  const onAfter = after === null ? [] : withComments(after).slice(1);
  return [
    [before, after],
    ...onBefore.map((comment) => /** @type {[DiffLine, null]} */ ([comment, null])),
    ...onAfter.map((comment) => /** @type {[null, DiffLine]} */ ([null, comment])),
  ];
};

/** @param {DiffLine} line @returns {DiffLine} */
export const shortened = (line) =>
  line.text.length > LINE_CHARS
    ? {
        ...line,
        text: `${line.text.slice(0, LINE_CHARS)} … ${grouped(line.text.length - LINE_CHARS)} more characters`,
      }
    : line;

/**
 * Lines with their numbers in the files. The numbers are drawn by the style sheet, so that a copy has the lines alone.
 *
 * @param {(import("./diff-parse.js").DiffLine | null)[]} lines null: an empty line, opposite to one of the other side
 * @param {"before" | "after"} [side] one column of two
 * @param {string} [label]
 */
export const numberedLines = (
  lines,
  side,
  label = side === undefined ? "Changes" : side === "before" ? "Before" : "After",
) =>
  h(
    "pre",
    {
      class: "diff numbered",
      tabindex: 0,
      "data-side": side,
      "aria-label": label,
    },
    lines.map((line) =>
      line === null
        ? h("span", { class: "nothing" }, "\n")
        : h(
            "span",
            {
              class: line.kind,
              // The arrow keys lead here (review.js).
              tabindex: -1,
              "data-before": side === "after" ? null : (line.before ?? ""),
              "data-after": side === "before" ? null : (line.after ?? ""),
            },
            `${line.text}\n`,
          ),
    ),
  );
