/** One item of a conversation as elements. */
import { isOpen, textOf } from "./conversation-model.js";
import { diffLines } from "./diff-view.js";
import { h, picture } from "./dom.js";
import { dollars, duration, grouped } from "./format.js";
import { markdown } from "./markdown-view.js";
import { badge, clockTime, code, tag } from "./parts.js";
import { requestView } from "./requests.js";

/** @typedef {import("./dom.js").Child} Child */
/** @typedef {import("./wire.d.ts").Item} Item */
/** @typedef {import("./wire.d.ts").ToolCall} ToolCall */

/**
 * @typedef {object} Context
 * @property {string} path of the session in the API
 * @property {string} agent
 * @property {boolean} isOpened whether the reader opened the item's details
 * @property {import("./steering.js").Asked} asked
 * @property {import("./requests.js").Draft} draft
 */

/** The page stays fast with this many lines of a diff. */
const PATCH_LINES = 1000;
const INPUT_MAX = 32_000;
/** Statuses that need no word. */
const USUAL = new Set(["accepted", "completed"]);
const TOOL_WORDS = /** @type {Record<string, string>} */ ({
  read: "Read",
  edit: "Edit",
  delete: "Delete",
  move: "Move",
  search: "Search",
  execute: "Run",
  think: "Think",
  fetch: "Fetch",
});

/** @param {Item} item @param {Context} context @returns {Child[]} */
export const itemView = (item, context) => {
  switch (item.kind) {
    case "message":
      return messageView(item, context);
    case "thought":
      return thoughtView(item, context);
    case "tool":
      return item.tool === null ? [] : toolView(item, item.tool, context);
    case "plan":
      return planView(item);
    case "request":
      return [...requestView(item, context), ...errorView(item)];
    default:
      return [h("p", { class: "note" }, textOf(item)), ...errorView(item)];
  }
};

/** @param {import("./wire.d.ts").Usage} usage */
export const usageText = ({ input_tokens, output_tokens, cached_tokens, cost_usd }) =>
  [
    `${grouped(input_tokens)} tokens in`,
    `${grouped(output_tokens)} out`,
    cached_tokens > 0 && `${grouped(cached_tokens)} cached`,
    cost_usd > 0 && dollars(cost_usd),
  ]
    .filter(Boolean)
    .join(" · ");

/** @param {Item} item @param {Context} context */
const messageView = (item, { agent, path }) => [
  h(
    "p",
    { class: "said-by" },
    h("strong", {}, item.role === "agent" ? agent : (item.author?.name ?? "Unknown author")),
    item.author?.kind === "trigger" && [" ", tag("trigger")],
    item.author?.kind === "service" && [" ", tag("service")],
    item.author?.kind === "sandbox" && [" ", tag("not by a person", "warn")],
    " ",
    clockTime(item.created_at),
    !USUAL.has(item.status) && [" ", badge(item.status)],
  ),
  markdown(textOf(item)),
  filesView(filesIn(item), path),
  ...errorView(item),
  item.role === "agent" &&
    (item.model !== null || item.usage !== null) &&
    h("p", { class: "spent" }, [item.model, item.usage && usageText(item.usage)].filter(Boolean).join(" · ")),
];

/** @typedef {{name: string, media_type: string, attachment_id: string | null}} ShownFile */

/** @param {Pick<Item, "content">} item @returns {ShownFile[]} */
export const filesIn = ({ content }) => content.flatMap((part) => (part.type === "file" ? [part] : []));

/** The kinds that the service sends as images. */
const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/** @param {readonly ShownFile[]} files @param {string} path of the session in the API */
export const filesView = (files, path) =>
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

/** @param {Item} item */
const errorView = ({ error, pruned, truncated, tool }) => [
  truncated && tool === null && h("p", { class: "quiet" }, "This is only the beginning of the text."),
  error !== null && h("p", { class: "refusal text" }, errorText(error)),
  pruned === true && h("p", { class: "quiet" }, "Parts of this item were removed to make room."),
];

/** The code of a tool's failure says nothing more than the badge. @param {NonNullable<Item["error"]>} error */
const errorText = ({ code: name, message }) => (name === "tool_failed" ? message : `${name}: ${message}`);

/** The service's words to the agent (api.md 5 "Approvals"). */
const DENIED = "was denied by a person, and was not made.";

/** A call that a person denied did not fail. @param {Item} item */
const toolStatus = ({ status, error }) => (error?.message.includes(DENIED) === true ? "denied" : status);

/** @param {Item} item */
const spanOf = ({ created_at: from, completed_at: to }) =>
  to === null ? "" : duration(Date.parse(to) - Date.parse(from));

/** Details whose content is made only while they are open. @param {Child[]} summary @param {boolean} isOpened @param {() => Child[]} content */
const folded = (summary, isOpened, content) =>
  h(
    "details",
    { open: isOpened },
    h("summary", {}, ...summary),
    h("div", { class: "folded" }, isOpened ? content() : []),
  );

/** @param {Item} item @param {Context} context */
const thoughtView = (item, { isOpened }) => [
  folded(
    [isOpen(item) ? "Thinking…" : "Thought", " ", h("span", { class: "quiet" }, spanOf(item))],
    isOpened,
    () => [markdown(textOf(item))],
  ),
  ...errorView(item),
];

/** @param {Item} item @param {ToolCall} tool @param {Context} context */
const toolView = (item, tool, { isOpened }) => [
  folded(
    [
      tag(TOOL_WORDS[tool.kind] ?? tool.name),
      " ",
      h("span", { class: "tool-title" }, toolTitle(tool)),
      " ",
      item.status !== "completed" && badge(toolStatus(item)),
      " ",
      h("span", { class: "quiet" }, spanOf(item)),
    ],
    isOpened,
    () => toolDetails(tool),
  ),
  ...errorView(item),
];

/** The inputs that say most, in this order. */
const TELLING = ["command", "filePath", "path", "pattern", "query", "url"];
const TITLE_MAX = 120;

/** A runtime may name what a tool does only when it has ended. Until then its input says it. @param {ToolCall} tool */
const toolTitle = ({ title, name, input }) => {
  if (title !== null && title !== name) return title;
  const given = /** @type {Record<string, unknown>} */ (
    typeof input === "object" && input !== null ? input : {}
  );
  const told = TELLING.map((key) => given[key]).find((value) => typeof value === "string" && value !== "");
  const line = typeof told === "string" ? (told.trim().split("\n")[0] ?? "") : "";
  if (line === "") return name;
  return line.length > TITLE_MAX ? `${line.slice(0, TITLE_MAX)}…` : line;
};

/** @param {ToolCall} tool @returns {Child[]} */
const toolDetails = (tool) => [
  h("h3", {}, "Input ", h("span", { class: "quiet" }, tool.name)),
  h("pre", { class: "text", tabindex: 0, "aria-label": "Input" }, inputText(tool.input)),
  ...tool.changes.map(changeView),
  tool.output !== "" && h("h3", {}, "Output"),
  tool.output !== "" && h("pre", { class: "text", tabindex: 0, "aria-label": "Output" }, tool.output),
  tool.truncated && h("p", { class: "quiet" }, "This is only the beginning of the output."),
];

/** A single text, such as a command, needs no JSON around it. @param {unknown} input */
const inputText = (input) => {
  const values = typeof input === "object" && input !== null ? Object.values(input) : [input];
  const text =
    values.length === 1 && typeof values[0] === "string" ? values[0] : (JSON.stringify(input, null, 2) ?? "");
  return text.length > INPUT_MAX ? `${text.slice(0, INPUT_MAX)}…` : text;
};

/** @param {ToolCall["changes"][number]} change @returns {HTMLElement} */
const changeView = ({ path, operation, patch }) => {
  const lines = patch?.replace(/\n$/, "").split("\n") ?? [];
  return h(
    "div",
    { class: "file" },
    h("h3", {}, code(path), " ", h("span", { class: "quiet" }, operation)),
    lines.length > 0 && diffLines(lines.slice(0, PATCH_LINES)),
    lines.length > PATCH_LINES &&
      h("p", { class: "quiet" }, `${lines.length - PATCH_LINES} more lines are not shown.`),
  );
};

const MARKS = { completed: "☑", running: "▸", pending: "☐", cancelled: "☒" };
const MARK_WORDS = {
  completed: "Done: ",
  running: "In progress: ",
  pending: "To do: ",
  cancelled: "Cancelled: ",
};

/** @param {Item} item */
const planView = (item) => [
  h("h3", {}, "Plan"),
  h(
    "ol",
    { class: "plan" },
    item.plan.map(({ text, status }) =>
      h(
        "li",
        { "data-status": status },
        h("span", { class: "tick", "aria-hidden": "true" }, MARKS[status] ?? "☐"),
        h("span", { class: "unseen" }, MARK_WORDS[status] ?? ""),
        h("span", {}, text),
      ),
    ),
  ),
];
