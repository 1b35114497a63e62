/** The changes between two commits: their commits, and a diff by file. */
import { diffLines } from "./diff.js";
import { h } from "./dom.js";
import { code, time } from "./parts.js";

/** A browser shows this many lines at once without effort. */
const DIFF_LINES = 4000;

/** @typedef {{sha: string, subject: string, author_name: string, committed_at: string}} Commit */

/** @param {number} files */
export const changesIn = (files) => `Changes in ${files} ${files === 1 ? "file" : "files"}`;

/** A heading that says where a list is cut. @param {string} what @param {number} shown @param {number} total */
export const listed = (what, shown, total) =>
  shown < total ? `${what} (the newest ${shown} of ${total})` : what;

/** @param {Commit[]} commits */
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

/** @param {string[]} file the lines of one file's diff */
const countsOf = (file) => {
  const lines = file.slice(firstHunk(file));
  return counts(
    lines.filter((line) => line.startsWith("+")).length,
    lines.filter((line) => line.startsWith("-")).length,
  );
};

/**
 * One block for each file.
 *
 * @param {string} diff
 * @param {{open?: boolean}} [options] open: whether the files are opened at first
 */
export const diffView = (diff, { open = true } = {}) => {
  const lines = diff.replace(/\n$/, "").split("\n");
  if (diff.trim() === "") return h("p", { class: "quiet" }, "No differences.");
  /** @type {string[][]} */
  const files = [];
  for (const line of lines.slice(0, DIFF_LINES)) {
    if (line.startsWith("diff --git ") || files.length === 0) files.push([]);
    files.at(-1)?.push(line);
  }
  return h(
    "div",
    {},
    files.map((file) =>
      h(
        "details",
        { class: "file", open, "data-key": file[0] ?? "" },
        h("summary", {}, code(fileName(file)), " ", countsOf(file)),
        diffLines(body(file)),
      ),
    ),
    lines.length > DIFF_LINES &&
      h("p", { class: "quiet" }, `${lines.length - DIFF_LINES} more lines are not shown.`),
  );
};

/** @param {string[]} file */
const fileName = (file) => {
  const header = file.slice(0, firstHunk(file));
  const named =
    header.find((line) => line.startsWith("+++ b/")) ?? header.find((line) => line.startsWith("--- a/"));
  return named?.slice("+++ b/".length) ?? file[0]?.replace(/^diff --git a\/(.*) b\/.*$/, "$1") ?? "";
};

/** The name replaces the lines above the first hunk, unless there are no others. @param {string[]} file */
const body = (file) => (firstHunk(file) === file.length ? file.slice(1) : file.slice(firstHunk(file)));

/** @param {string[]} file */
const firstHunk = (file) => {
  const at = file.findIndex((line) => line.startsWith("@@"));
  return at < 0 ? file.length : at;
};
