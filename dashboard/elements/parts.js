/** Pieces that several pages show. */
import { h } from "./dom.js";
import { inZone, moment, relative, shortId } from "./format.ts";
import { ACTIVITY_WORDS } from "../../src/domain/session/activity-words.ts";
import { lackedRole } from "../frame/roles.ts";

/** @typedef {import("./dom.js").Child} Child */

/** A state as a word and a dot, because colour alone is not readable for everyone. @param {string} status */
export const badge = (status) => h("span", { class: "badge", "data-status": status }, status);

/** A session's activity, in the words of all lists. @param {Pick<import("../wire.d.ts").Session, "activity" | "archived">} session */
export const sessionWord = ({ activity, archived }) =>
  archived ? "Archived" : ACTIVITY_WORDS[activity].word;

/** The same with a dot. @param {Pick<import("../wire.d.ts").Session, "activity" | "archived">} session */
export const sessionBadge = (session) =>
  h("span", { class: "badge", "data-status": session.activity }, sessionWord(session));

/** A small word beside a name. @param {string} text @param {string} [tone] */
export const tag = (text, tone) => h("span", { class: "tag", "data-tone": tone }, text);

/** @param {string | null | undefined} at @param {string} [otherwise] shown without an instant */
export const time = (at, otherwise = "never") =>
  at
    ? h("time", { datetime: at, title: moment(at) }, relative(at))
    : h("span", { class: "quiet" }, otherwise);

/** @param {string} text */
export const code = (text) => h("code", {}, text);

/** A sentence of the service: the parts that it puts in backticks are shown as code, and instants in the reader's zone. @param {string} text @returns {Child[]} */
export const prose = (text) =>
  text
    .split(/`([^`\n]+)`/)
    .map((part, index) => (index % 2 === 1 ? code(part) : inZone(part)))
    .filter((part) => part !== "");

/** @param {string} id */
export const idTail = (id) => h("code", { class: "quiet", title: id }, `…${shortId(id)}`);

/**
 * A row of a list.
 *
 * @param {string} key
 * @param {Child[]} main what it is
 * @param {{states: Child[], actions: Child[]}} rest
 */
export const listRow = (key, main, { states, actions }) =>
  h(
    "li",
    { class: "row", "data-key": key },
    h("span", { class: "row-main" }, main),
    h("span", { class: "states" }, states),
    h("span", { class: "row-side actions" }, actions),
  );

/** A line below a row's name. @param {...(Child | Child[])} children */
export const detail = (...children) => h("span", { class: "quiet" }, ...children);

/** A list of names and values. Rows whose value is null are left out. @param {[string, Child][]} rows */
export const facts = (rows) =>
  h(
    "dl",
    { class: "facts" },
    rows
      .filter(([, value]) => value !== null && value !== undefined && value !== false)
      .map(([name, value]) => h("div", { "data-key": name }, h("dt", {}, name), h("dd", {}, value))),
  );

/**
 * A button. The entry `action` of frame/actions.js handles it. It has a key, so that a removed button never turns into
 * another one while the reader presses it.
 *
 * @param {string} action
 * @param {string} label
 * @param {import("./dom.js").Attributes} [attributes]
 * @returns {HTMLElement | null} null: the reader's role forbids it. The project's head says so.
 */
export const button = (action, label, attributes = {}) =>
  lackedRole(action) === null
    ? h("button", { type: "button", "data-action": action, "data-key": action, ...attributes }, label)
    : null;

/** A line with a button that copies it. @param {string} text */
export const commandLine = (text) =>
  h(
    "span",
    { class: "copy" },
    h("code", { class: "long" }, text),
    button("copy", "Copy", { class: "plain", "data-text": text, "aria-label": "Copy the line" }),
  );

/** Several lines with a button that copies them. @param {string} text @param {string} what its name, e.g. "the command" */
export const commandBlock = (text, what) =>
  h(
    "div",
    { class: "block" },
    h("pre", { class: "text", tabindex: 0, "aria-label": what }, text),
    button("copy", "Copy", { class: "plain", "data-text": text, "aria-label": `Copy ${what}` }),
  );

/**
 * A filter of the page. The chosen option becomes the parameter `name` of the address's query.
 *
 * @param {{name: string, label: string, all: string, options: readonly string[], chosen: string, words?: Record<string,
 * string>}} choice all: label of no choice; words: labels of options whose value is not their label
 */
export const pick = ({ name, label, all, options, chosen, words = {} }) =>
  h(
    "label",
    { class: "pick" },
    label,
    h(
      "select",
      { "data-filter": name },
      ["", ...options].map((value) =>
        h(
          "option",
          { value, selected: value === chosen, "data-key": value },
          value === "" ? all : (words[value] ?? value),
        ),
      ),
    ),
  );

/** @param {string} tone "bad", "warn" or "good" @param {...(Child | Child[])} children */
export const callout = (tone, ...children) => h("div", { class: "callout", "data-tone": tone }, ...children);

/** @param {string} title @param {...Child} explanation */
export const empty = (title, ...explanation) =>
  h("div", { class: "empty" }, h("p", { class: "empty-title" }, title), h("p", {}, ...explanation));

/** @param {string} projectId @param {string} [rest] e.g. "/triggers" */
export const projectLink = (projectId, rest = "") => `#/projects/${projectId}${rest}`;

/** The runs of a project's triggers, or of one of them. @param {string} projectId @param {string} [slug] */
export const firesLink = (projectId, slug) =>
  projectLink(projectId, slug === undefined ? "/fires" : `/fires?${new URLSearchParams({ slug })}`);

/** The deliveries that a project refused. @param {string} projectId */
export const refusedLink = (projectId) => projectLink(projectId, "/fires?status=refused");

/** @param {string} projectId @param {string} id */
export const fireLink = (projectId, id) => projectLink(projectId, `/fires/${id}`);

/** The breadcrumbs. @param {[string, string | null][]} steps label and link; the last has no link */
export const trail = (steps) =>
  h(
    "nav",
    { class: "trail", "aria-label": "Breadcrumb" },
    h(
      "ol",
      {},
      steps.map(([label, link]) =>
        h(
          "li",
          {},
          link === null ? h("span", { "aria-current": "page" }, label) : h("a", { href: link }, label),
        ),
      ),
    ),
  );
