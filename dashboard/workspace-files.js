/** The files of a running session's workspace: a tree that is read directory by directory, and the text of one file. */
import { getJson } from "./api.js";
import { FILE_LINES } from "./diff-files.js";
import { numberedLines, shortened } from "./diff-view.js";
import { h, morph } from "./dom.js";
import { grouped, size } from "./format.js";

/** @typedef {import("./wire.d.ts").WorkspaceFiles} Files */
/** @typedef {import("./wire.d.ts").WorkspaceEntry} Entry */

/**
 * @typedef {object} Tree
 * @property {Map<string, Files | string>} read by path; text: why it could not be read
 * @property {string | null} file the path of the shown file
 */

/** @param {string} directory @param {string} name */
const below = (directory, name) => (directory === "" ? name : `${directory}/${name}`);

/** @param {Tree} tree @param {string} directory @param {Entry} entry */
const entryView = (tree, directory, { name, kind, size: bytes }) => {
  const path = below(directory, name);
  if (kind === "directory")
    return h(
      "li",
      { "data-key": path },
      h(
        "details",
        { "data-key": "open", "data-directory": path },
        h("summary", {}, `${name}/`),
        directoryView(tree, path),
      ),
    );
  if (kind !== "file")
    return h(
      "li",
      { "data-key": path, class: "quiet" },
      name,
      kind === "link" ? " (link)" : " (cannot be read)",
    );
  return h(
    "li",
    { "data-key": path },
    h(
      "button",
      { type: "button", class: "plain", "data-file": path, "aria-pressed": String(tree.file === path) },
      name,
    ),
    " ",
    h("span", { class: "quiet" }, size(bytes ?? 0)),
  );
};

/** @param {Tree} tree @param {string} path @returns {import("./dom.js").Child} */
const directoryView = (tree, path) => {
  const found = tree.read.get(path);
  if (found === undefined) return h("p", { class: "quiet" }, "Loading…");
  if (typeof found === "string") return h("p", { class: "refusal" }, found);
  if (found.kind === "file") return h("p", { class: "quiet" }, "This is a file now. Read the files again.");
  if (found.entries.length === 0) return h("p", { class: "quiet" }, "Empty.");
  return h(
    "ul",
    { class: "tree-list" },
    found.entries.map((entry) => entryView(tree, path, entry)),
    found.truncated &&
      h("li", { class: "quiet", "data-key": "" }, "It has more entries than the page lists."),
  );
};

/** @param {string} path @param {Extract<Files, {kind: "file"}>} file */
const textView = (path, { text, truncated }) => {
  if (text === null) return [h("p", { class: "quiet" }, "This file is not text.")];
  if (text === "") return [h("p", { class: "quiet" }, "This file is empty.")];
  const lines = text.replace(/\n$/, "").split("\n");
  const shown = lines.slice(0, FILE_LINES);
  return [
    numberedLines(
      shown.map((line, at) =>
        shortened({ kind: /** @type {const} */ ("same"), text: line, before: null, after: at + 1 }),
      ),
      "after",
      path,
    ),
    (truncated || shown.length < lines.length) &&
      h("p", { class: "quiet" }, `The page shows the first ${grouped(shown.length)} lines.`),
  ];
};

/** @param {Tree} tree */
const fileView = (tree) => {
  if (tree.file === null) return null;
  const found = tree.read.get(tree.file);
  return h(
    "section",
    { "data-key": `file ${tree.file}`, "aria-label": tree.file, "aria-live": "polite" },
    h("h3", { tabindex: -1 }, tree.file),
    found === undefined && h("p", { class: "quiet" }, "Loading…"),
    typeof found === "string" && h("p", { class: "refusal" }, found),
    found !== undefined &&
      typeof found !== "string" &&
      (found.kind === "file" ? textView(tree.file, found) : directoryView(tree, tree.file)),
  );
};

/** The file is below the tree, and so perhaps below the window. @param {HTMLElement} place */
const showFile = (place) => {
  const heading = place.querySelector("h3");
  heading?.focus({ preventScroll: true });
  heading?.scrollIntoView({ block: "start" });
};

/**
 * Shows the tree in an empty element, and keeps it there.
 *
 * @param {HTMLElement} place
 * @param {string} session its path in the API
 */
export const showFiles = async (place, session) => {
  /** @type {Tree} */
  const tree = { read: new Map(), file: null };
  const draw = () =>
    morph(place, [
      h("p", { "data-key": "again" }, h("button", { type: "button", "data-again": "yes" }, "Read again")),
      h("div", { "data-key": "root" }, directoryView(tree, "")),
      fileView(tree),
    ]);
  /** @param {string} path */
  const read = async (path) => {
    const query = path === "" ? "" : `?path=${encodeURIComponent(path)}`;
    const found = await getJson(`${session}/workspace/files${query}`).catch((/** @type {unknown} */ error) =>
      error instanceof Error ? error.message : String(error),
    );
    tree.read.set(path, found);
    draw();
  };
  place.addEventListener("click", (event) => {
    const pressed = event.target instanceof Element ? event.target.closest("button") : null;
    const path = pressed?.getAttribute("data-file") ?? null;
    if (path !== null) {
      tree.file = path;
      draw();
      void read(path).then(() => tree.file === path && showFile(place));
    }
    if (pressed?.hasAttribute("data-again")) void Promise.all([...tree.read.keys()].map(read));
  });
  // This event does not bubble.
  const toggled = (/** @type {Event} */ event) => {
    const path =
      event.target instanceof HTMLDetailsElement ? event.target.getAttribute("data-directory") : null;
    if (path !== null && /** @type {HTMLDetailsElement} */ (event.target).open && !tree.read.has(path))
      void read(path);
  };
  place.addEventListener("toggle", toggled, true);
  draw();
  await read("");
};
