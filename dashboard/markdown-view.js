/** Markdown as elements. Its text becomes text nodes; images become links, so that the page loads nothing. */
import { h, outside } from "./dom.js";
import { parse } from "./markdown.js";

/** @typedef {import("./dom.js").Child} Child */
/** @typedef {import("./markdown.js").Block} Block */
/** @typedef {import("./markdown.js").Inline} Inline */

/** A longer text is cut. The API has the rest. */
const SHOWN_MAX = 256 * 1024;

/** @param {string} text @returns {HTMLElement} */
export const markdown = (text) =>
  h(
    "div",
    { class: "markdown" },
    parse(text.slice(0, SHOWN_MAX)).map(blockView),
    text.length > SHOWN_MAX &&
      h("p", { class: "quiet" }, `${text.length - SHOWN_MAX} more characters are not shown.`),
  );

/** @param {Block} block @returns {HTMLElement} */
const blockView = (block) => {
  switch (block.type) {
    case "heading":
      // The page's own headings above a text are the first two levels.
      return h(`h${Math.min(6, block.level + 2)}`, { "data-level": block.level }, inlineView(block.children));
    case "code":
      return h(
        "pre",
        { tabindex: 0, "aria-label": block.language === "" ? "Code" : `Code: ${block.language}` },
        h("code", {}, block.text),
      );
    case "quote":
      return h("blockquote", {}, block.blocks.map(blockView));
    case "list":
      return h(
        block.ordered ? "ol" : "ul",
        { start: block.ordered && block.start !== 1 && block.start },
        block.entries.map(entryView),
      );
    case "table":
      return tableView(block);
    case "rule":
      return h("hr", {});
    case "plain":
      return h("div", { class: "text" }, block.text);
    default:
      return h("p", {}, inlineView(block.children));
  }
};

/** @param {import("./markdown.js").Entry} entry */
const entryView = ({ task, blocks: [first, ...rest] }) => {
  const tick = task !== null && [
    h("span", { class: "tick", "aria-hidden": "true" }, task ? "☑" : "☐"),
    h("span", { class: "unseen" }, task ? "Done: " : "To do: "),
  ];
  // A single paragraph needs no distance to its neighbours.
  const head = first?.type === "paragraph" ? inlineView(first.children) : first && [blockView(first)];
  return h(
    "li",
    { class: task === null ? null : "task" },
    ...(tick || []),
    h("div", {}, head || [], rest.map(blockView)),
  );
};

/** @param {Extract<Block, {type: "table"}>} table */
const tableView = ({ align, head, rows }) => {
  /** @param {string} tag @param {Inline[][]} row */
  const rowView = (tag, row) =>
    h(
      "tr",
      {},
      row
        .slice(0, head.length)
        .map((cell, index) => h(tag, { "data-align": align[index] }, inlineView(cell))),
    );
  return h(
    "div",
    { class: "table", tabindex: 0 },
    h(
      "table",
      {},
      h("thead", {}, rowView("th", head)),
      h(
        "tbody",
        {},
        rows.map((row) => rowView("td", row)),
      ),
    ),
  );
};

/** @param {Inline[]} tokens @param {boolean} [inLink] @returns {Child[]} */
const inlineView = (tokens, inLink = false) =>
  tokens.flatMap((token) => {
    if (token.type === "text") return [token.text];
    if (token.type === "code") return [h("code", {}, token.text)];
    if (token.type === "link") return linkView(token, inLink);
    return [h(token.type, {}, inlineView(token.children, inLink))];
  });

/** @param {Extract<Inline, {type: "link"}>} link @param {boolean} inLink @returns {Child[]} */
const linkView = ({ href, target, image, children }, inLink) => {
  const shown = inlineView(children, true);
  const label = image && shown.length === 0 ? ["image"] : shown;
  if (inLink) return label;
  // Any other target stays readable beside its label.
  if (href === null) return target === "" ? label : [...label, " (", h("code", {}, target), ")"];
  const text = textOf(children);
  const misleads = /^\s*(?:https?:|www\.)/i.test(text) && text !== target;
  return [outside(href, image && "🖼 ", label), misleads && ` (${href})`];
};

/** @param {Inline[]} tokens @returns {string} */
const textOf = (tokens) =>
  tokens.map((token) => ("text" in token ? token.text : textOf(token.children))).join("");
