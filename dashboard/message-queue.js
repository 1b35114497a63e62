/** Messages that the agent does not have yet: the next one at the conversation's end, and the queue above the composer. */
import { textOf } from "./conversation-model.js";
import { h, picture } from "./dom.js";
import { counted } from "./format.js";
import { markdown } from "./markdown-view.js";
import { clockTime, code } from "./parts.js";

/** @typedef {import("./wire.d.ts").Item} Item */
/** @typedef {import("./outbox.js").Sent} Sent */
/** @typedef {import("./dom.js").Child} Child */

/**
 * @typedef {object} Waiting
 * @property {Item[]} next what the agent gets now
 * @property {Item[]} queue
 * @property {readonly Sent[]} sent what only this page has
 * @property {boolean} isNext whether what this page has needs to wait for nothing
 * @property {boolean} held
 * @property {string} status of the session
 * @property {Set<string>} busy
 * @property {string} me the reader's name
 * @property {string} path of the session in the API
 */

/** The messages at the end of the conversation. @param {Waiting} waiting @returns {Child[]} */
export const nextView = ({ next, sent, isNext, busy, me, status, path }) => [
  ...next.map((item) =>
    messageRow(
      { id: item.id, author: item.author?.name ?? "Unknown author", at: item.created_at },
      [markdown(textOf(item)), filesView(filesIn(item), path)],
      item.status === "queued"
        ? [status === "running" ? "Sending… " : "Waits for the sandbox ", cancelButton(item.id, busy)]
        : ["Sending…"],
    ),
  ),
  ...(isNext ? sent : []).map((one) =>
    messageRow(
      { id: one.id, author: me, at: one.at },
      [markdown(one.message.text), filesView(sentFiles(one), path)],
      sentState(one),
    ),
  ),
];

/** @param {Sent} sent @returns {ShownFile[]} */
const sentFiles = ({ message: { attachments = [] } }) =>
  attachments.map(({ id, name, media_type }) => ({ name, media_type, attachment_id: id }));

/** @param {{id: string, author: string, at: string}} said @param {Child[]} words @param {Child[]} state @returns {HTMLElement} */
const messageRow = ({ id, author, at }, words, state) =>
  h(
    "li",
    { class: "own-message", "data-key": id, "data-message": id },
    h("p", { class: "said-by" }, h("strong", {}, author), " ", clockTime(at)),
    ...words,
    h("p", { class: "message-state" }, ...state),
  );

/** @param {Sent} one @returns {Child[]} */
const sentState = ({ id, problem }) =>
  problem === null
    ? ["Sending…"]
    : [
        h("span", { class: "refusal", role: "alert" }, `Not sent. ${problem} `),
        h("button", { type: "button", class: "plain", "data-again": id }, "Try again"),
        " ",
        h("button", { type: "button", class: "plain", "data-take-back": id }, "Edit"),
      ];

/** The queue above the composer. @param {Waiting} waiting @returns {Child[]} */
export const queueView = ({ queue, sent, isNext, held, status, busy, me }) => {
  const own = isNext ? [] : sent;
  const count = queue.length + own.length;
  if (count === 0) return [];
  return [
    h(
      "div",
      { class: "queue-head", "data-key": "head" },
      h("h3", {}, `${counted(count, "message")} waiting for the agent`),
      held &&
        h(
          "p",
          { role: "status" },
          "The queue is paused. ",
          h(
            "button",
            { type: "button", "data-resume": true, "aria-disabled": busy.has("resume") && "true" },
            "Resume",
          ),
        ),
      ["stopped", "failed"].includes(status) &&
        h("p", { class: "quiet" }, "The agent gets them after a restart."),
    ),
    h(
      "ol",
      { class: "queued", "data-key": "list" },
      queue.map((item) =>
        queuedRow(
          item.id,
          [item.author?.name ?? "Unknown author", inShort(textOf(item), filesIn(item))],
          [cancelButton(item.id, busy)],
        ),
      ),
      own.map((one) => queuedRow(one.id, [me, inShort(one.message.text, sentFiles(one))], sentState(one))),
    ),
  ];
};

/** @param {string} text @param {readonly {name: string}[]} files */
const inShort = (text, files) => [text, ...files.map(({ name }) => `[${name}]`)].join(" ").trim();

/** @param {string} id @param {[string, string]} said author and text @param {Child[]} state @returns {HTMLElement} */
const queuedRow = (id, [author, text], state) =>
  h(
    "li",
    { class: "item", "data-kind": "message", "data-key": id, "data-message": id },
    h(
      "p",
      { class: "queued-text" },
      h("strong", {}, author),
      " ",
      h("span", { class: "text", title: text }, text),
    ),
    h("p", { class: "message-state" }, ...state),
  );

/** @param {string} id @param {Set<string>} busy @returns {HTMLElement} */
const cancelButton = (id, busy) =>
  h(
    "button",
    { type: "button", class: "plain", "data-cancel": id, "aria-disabled": busy.has(id) && "true" },
    busy.has(id) ? "Cancelling…" : "Cancel",
  );

/** @typedef {{name: string, media_type: string, attachment_id: string | null}} ShownFile */

/** @param {Pick<Item, "content">} item @returns {ShownFile[]} */
const filesIn = ({ content }) => content.flatMap((part) => (part.type === "file" ? [part] : []));

/** The kinds that the service sends as images. */
const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/** @param {readonly ShownFile[]} files @param {string} path of the session in the API */
const filesView = (files, path) =>
  files.length > 0 &&
  h("ul", { class: "files", "aria-label": "Files" }, ...files.map((file) => fileView(file, path)));

/** @param {ShownFile} file @param {string} path */
const fileView = ({ name, media_type: type, attachment_id: id }, path) => {
  if (id === null) return h("li", {}, code(name), " ", h("span", { class: "quiet" }, type));
  const href = `${path}/attachments/${id}`;
  return PICTURES.has(type)
    ? h("li", { class: "picture" }, h("a", { href, target: "_blank", title: name }, picture(href, name)))
    : h("li", {}, h("a", { href, download: name }, name), " ", h("span", { class: "quiet" }, type));
};
