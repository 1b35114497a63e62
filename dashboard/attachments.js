/**
 * Files that a reader attaches to a message. Each is uploaded at once, so that the message can go out without a wait.
 *
 *  T1 A file that could not be attached stays with its reason until the reader removes it. Until then no message is sent:
 *     the reader would think that the agent has the file.
 */
import { upload } from "./api.js";
import { h, morph } from "./dom.js";
import { size } from "./format.js";

/** @typedef {{id: string, name: string, media_type: string, bytes: number}} Attachment */

/**
 * @typedef {object} Chosen
 * @property {number} key
 * @property {string} name
 * @property {number} bytes
 * @property {Attachment | null} attachment null until it is kept
 * @property {string | null} problem
 */

/** The service's own limits (api.md 3, messages). */
const [COUNT_MAX, FILE_MAX, ALL_MAX] = [10, 10 * 1024 * 1024, 25 * 1024 * 1024];

/** @param {Chosen[]} chosen @param {{size: number}} file @returns {string | null} why the file cannot be attached */
const refusalOf = (chosen, file) => {
  const all = chosen.reduce((sum, one) => sum + (one.problem === null ? one.bytes : 0), file.size);
  if (file.size === 0) return "The file is empty.";
  if (file.size > FILE_MAX) return `A file has at most ${size(FILE_MAX)}.`;
  if (all > ALL_MAX) return `The files of a message have at most ${size(ALL_MAX)} together.`;
  return null;
};

/** @param {File[]} files @returns {string | null} why these files cannot be attached to one message */
export const faultOfFiles = (files) => {
  if (files.length > COUNT_MAX) return `A message has at most ${COUNT_MAX} files.`;
  const all = files.reduce((sum, { size: bytes }) => sum + bytes, 0);
  const single = files
    .map((file) => [file.name, refusalOf([], file)])
    .find(([, problem]) => problem !== null);
  if (single !== undefined) return `“${single[0]}”: ${single[1]}`;
  return all > ALL_MAX ? `The files of a message have at most ${size(ALL_MAX)} together.` : null;
};

/** @param {Chosen} one @returns {HTMLElement} */
const chip = ({ key, name, bytes, attachment, problem }) =>
  h(
    "li",
    { class: problem === null ? "chip" : "chip bad", "data-key": key },
    h("span", { class: "chip-name", title: name }, name),
    " ",
    problem === null
      ? h("span", { class: "quiet" }, attachment === null ? "uploading…" : size(bytes))
      : h("span", { role: "alert" }, problem),
    " ",
    h("button", { type: "button", class: "plain", "data-detach": key, "aria-label": `Remove ${name}` }, "✕"),
  );

const makeButton = () =>
  h(
    "button",
    { type: "button", class: "attach", title: "Attach files", "aria-label": "Attach files" },
    h("span", { class: "word" }, "Attach"),
    // On a narrow window.
    h("span", { class: "sign" }, "+"),
  );

/** @typedef {ReturnType<typeof makeAttachments>} Attachments */

/**
 * @param {string} path of the session in the API
 * @param {{changed: () => void, told: (problem: string) => void}} listener
 */
export const makeAttachments = (path, { changed, told }) => {
  /** @type {Chosen[]} */
  let chosen = [];
  let keys = 0;
  const input = /** @type {HTMLInputElement} */ (
    h("input", { type: "file", multiple: true, hidden: true, tabindex: -1, "aria-hidden": "true" })
  );
  const button = makeButton();
  const list = h("ul", { class: "chips", "aria-label": "Attached files", hidden: true });
  const draw = () => {
    morph(list, chosen.map(chip));
    list.toggleAttribute("hidden", chosen.length === 0);
    changed();
  };

  /** @param {Chosen} one @param {File} file */
  const send = async (one, file) => {
    try {
      one.attachment = await upload(`${path}/attachments?name=${encodeURIComponent(file.name)}`, file);
    } catch (error) {
      one.problem = error instanceof Error ? error.message : String(error);
    }
    draw();
  };
  /** @param {Iterable<File>} files */
  const add = (files) => {
    told("");
    for (const file of files) {
      if (chosen.length >= COUNT_MAX) {
        told(`A message has at most ${COUNT_MAX} files. “${file.name}” was not attached.`);
        break;
      }
      keys += 1;
      const problem = refusalOf(chosen, file);
      /** @type {Chosen} */
      const one = { key: keys, name: file.name, bytes: file.size, attachment: null, problem };
      chosen.push(one);
      if (problem === null) void send(one, file);
    }
    draw();
  };

  button.addEventListener("click", () => input.click());
  input.addEventListener("change", () => {
    add(input.files ?? []);
    input.value = "";
  });
  list.addEventListener("click", ({ target }) => {
    const key = target instanceof Element ? target.closest("button")?.dataset["detach"] : undefined;
    if (key === undefined) return;
    chosen = chosen.filter((one) => one.key !== Number(key));
    draw();
    button.focus();
  });
  return {
    button,
    input,
    list,
    add,
    /** Those that are kept. */
    get ready() {
      return chosen.flatMap(({ attachment }) => attachment ?? []);
    },
    /** Whether a file is on its way, or could not be attached. */
    get isUnready() {
      return chosen.some(({ attachment }) => attachment === null);
    },
    /** @param {readonly Attachment[]} attachments that the service has */
    set: (attachments) => {
      chosen = attachments.map((attachment) => {
        keys += 1;
        const { name, bytes } = attachment;
        return { key: keys, name, bytes, attachment, problem: null };
      });
      draw();
    },
  };
};
