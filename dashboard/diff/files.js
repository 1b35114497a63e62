/** Which files of a diff a page shows, and which it folds until the reader asks for them. It uses no document. */
import { parseDiff } from "./parse.js";

/** A browser shows this many lines at once without effort. Files that the reader asked for come on top. */
export const PAGE_LINES = 4000;
/** A longer file is folded. */
const OPEN_LINES = 600;
/** How many lines of one file are shown when the reader asks for it. */
export const FILE_LINES = 20_000;
/** Files that programs write. */
const GENERATED =
  /(?:^|\/)(?:package-lock\.json|npm-shrinkwrap\.json|pnpm-lock\.yaml|go\.sum|packages\.lock\.json|[^/]*\.lock|bun\.lockb|[^/]*\.min\.(?:js|css)|[^/]*\.map)$/;

/** @typedef {import("./parse.js").DiffFile} DiffFile */
/** @typedef {{path: string, additions: number, deletions: number}} Listed as the service lists it */

/**
 * @typedef {object} Source where single files of the diff can be read
 * @property {string} url of the diff in the API
 * @property {string | null} head the commit: another one has other lines
 * @property {readonly Listed[]} listed
 * @property {number} total how many files changed. It may be more than are listed
 * @property {Map<string, string>} [marks] a word about each file, by its path
 * @property {string} [rest] a sentence that says where a reader finds what is not shown
 */

/**
 * @param {string} url of the diff in the API
 * @param {{head_commit: string | null, files_changed: readonly Listed[], files_changed_total: number}} changes
 * @returns {Source}
 */
export const sourceOf = (url, { head_commit: head, files_changed: files, files_changed_total: total }) => ({
  url,
  head,
  listed: files,
  total,
});

/**
 * @typedef {DiffFile & {
 *   isShown: boolean,
 *   why: "generated" | "long" | "room" | "absent" | null,
 *   cut: string | null,
 * }} PlannedFile why it is not shown; absent: the service did not send it. cut: what the service says where it cut it
 */

/** Files that the reader asked for, with their lines if the diff has none. @type {Map<string, {file: DiffFile | null, cut: string | null}>} */
const asked = new Map();

/** @param {string} url @param {string} head @param {string} path */
const keyOf = (url, head, path) => JSON.stringify([url, head, path]);

/**
 * Notes that the reader wants to see a file.
 *
 * @param {{url: string, head: string, path: string}} file head: "" without a commit
 * @param {string | null} diff its own diff. Null: the whole diff has it
 */
export const showAsked = ({ url, head, path }, diff) => {
  if (diff === null) {
    asked.set(keyOf(url, head, path), { file: null, cut: null });
    return;
  }
  const { files, cut } = parseDiff(diff);
  const [file] = files;
  if (file === undefined) throw new Error(`${path} has no differences any more. The branch has changed.`);
  asked.set(keyOf(url, head, path), { file, cut });
};

/** Files whose lines were read alone may have other lines now. @param {string} url of the diff in the API */
export const forgetLoaded = (url) => {
  for (const [key, { file }] of asked)
    if (file !== null && key.startsWith(`[${JSON.stringify(url)},`)) asked.delete(key);
};

/** The diff that was read last: a page is drawn much more often than its diff changes. */
let last = { diff: "", parsed: parseDiff("") };

/** @param {string} diff */
const parsedOnce = (diff) => {
  if (diff !== last.diff) last = { diff, parsed: parseDiff(diff) };
  return last.parsed;
};

/** @param {Listed} listed @returns {DiffFile} */
const unsent = ({ path, additions, deletions }) => ({
  key: `absent ${path}`,
  path,
  from: null,
  note: "",
  lines: [],
  added: additions,
  removed: deletions,
});

/** All changed files, also those that the service left out, with the counts of the whole file. @param {string} diff @param {Source | null} source */
const filesOf = (diff, source) => {
  const { files, cut } = parsedOnce(diff);
  const listed = new Map(source?.listed.map((one) => [one.path, one]));
  // The file in which the diff was cut lacks lines.
  const [whole, part] = cut === null ? [files, undefined] : [files.slice(0, -1), files.at(-1)];
  for (const { path } of whole) listed.delete(path);
  const missing = [...listed.values()].map(unsent);
  const isListed = part !== undefined && listed.has(part.path);
  return {
    files: part === undefined || isListed ? [...whole, ...missing] : [...whole, part, ...missing],
    absent: new Set(missing),
    cut: isListed ? null : cut,
  };
};

/**
 * @param {string} diff
 * @param {Source | null} source null: single files cannot be asked for
 * @returns {{files: PlannedFile[], hidden: number, cut: string | null}} hidden: how many changed files are not shown
 */
export const planFiles = (diff, source) => {
  const { files, absent, cut } = filesOf(diff, source);
  let left = PAGE_LINES;
  const all = files.map((file) => {
    const own = asked.get(keyOf(source?.url ?? "", source?.head ?? "", file.path));
    if (own !== undefined) return planned(own.file ?? file, null, { key: file.key, cut: own.cut });
    const why = foldedFor(file, absent.has(file), left);
    if (why === null) left -= file.lines.length;
    return planned(file, why, { key: file.key, cut: null });
  });
  const unlisted = Math.max(0, (source?.total ?? 0) - all.length);
  return { files: all, hidden: unlisted + all.filter(({ isShown }) => !isShown).length, cut };
};

/** @param {DiffFile} file @param {PlannedFile["why"]} why @param {{key: string, cut: string | null}} rest @returns {PlannedFile} */
const planned = (file, why, rest) => ({ ...file, ...rest, isShown: why === null, why });

/** @param {DiffFile} file @param {boolean} isAbsent @param {number} left @returns {PlannedFile["why"]} */
const foldedFor = ({ path, lines }, isAbsent, left) => {
  if (GENERATED.test(path)) return "generated";
  if (isAbsent) return "absent";
  if (lines.length > OPEN_LINES) return "long";
  return lines.length > left ? "room" : null;
};
