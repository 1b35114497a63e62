/** Forms in pages: their fields, what the service refuses about them, and how they are sent. */
import { ApiError } from "../api/api.ts";
import { maskedArea } from "../frame/dialog.ts";
import { h } from "./dom.ts";
import { keep, readKept } from "../frame/kept.ts";
import { callout, prose } from "./parts.ts";
import { lackedRole } from "../frame/roles.ts";

/** @typedef {import("./dom.ts").Child} Child */

/**
 * @typedef {object} FieldView
 * @property {string} name
 * @property {string} label
 * @property {string} [hint] what it is for
 * @property {string} [value] at first
 * @property {"text" | "password" | "checkbox" | "url" | "file"} [type]
 * @property {number} [lines] more than one: a text area
 * @property {boolean} [masked] a text of several lines that is not shown until the reader wishes it
 * @property {boolean} [required]
 * @property {boolean} [mono] for keys and addresses
 * @property {string} [placeholder]
 * @property {[string, string][]} [options] values and labels to choose from
 * @property {(string | [string, string])[]} [suggestions] values, or values with what is said of them
 * @property {string} [path] the field's name in the API, if it differs: its issues are shown below the field
 */

/**
 * @typedef {object} FormView
 * @property {string} action its entry in frame/pages.js
 * @property {string} submit the button's label
 * @property {string} [sending] the label until the answer arrives
 * @property {Record<string, string>} [input] what the action gets besides the fields, as `data-` attributes
 * @property {(FieldView | GroupView | Node | null)[]} fields
 * @property {string} [keeps] the name under which the tab keeps what is typed until it is sent
 * @property {ReadonlyMap<string, string>} [noted] what is wrong so far, by field, before the form is sent
 */

/** @typedef {{group: string, fields: FieldView[], open?: boolean}} GroupView fields behind a line that opens them */

/** @typedef {(typed: Record<string, string>, input: DOMStringMap, page: import("../frame/actions.js").Page & {files: File[]}) => Promise<void | boolean>} Submit it gives false if the reader goes on with the form */

/** The last refusal, by the form's action. @type {Map<string, Error>} */
const refused = new Map();
/** Forms whose answer has not arrived. @type {Set<string>} */
const sending = new Set();

/** Forgets the refusals: the reader has left the page. */
export const forgetRefusals = () => refused.clear();

/** @param {FormView} form */
export const formView = ({
  action,
  submit,
  sending: busy = "Sending…",
  input = {},
  keeps,
  fields,
  noted,
}) => {
  const lacked = lackedRole(action);
  if (lacked !== null)
    return h("p", { class: "quiet", "data-key": action }, `This needs the role ${lacked} in the project.`);
  const refusals = issuesOf(action);
  const issues = new Map([...(noted ?? []), ...refusals]);
  const names = new Set(fields.flatMap((entry) => (isField(entry) ? [entry.path ?? entry.name] : [])));
  const attributes = Object.entries(input).map(([name, value]) => [`data-${name}`, value]);
  const kept = keptOf(keeps);
  return h(
    "form",
    {
      class: "form",
      "data-action": action,
      "data-key": action,
      "data-keeps": keeps,
      ...Object.fromEntries(attributes),
    },
    fields.map((entry) => {
      if (isField(entry)) return fieldView(action, kept(entry), issues);
      if (entry === null || !("group" in entry)) return entry;
      const inside = entry.fields.map(kept);
      const isTyped = keeps !== undefined && inside.some(({ value = "" }) => value !== "");
      return groupView(action, { ...entry, fields: inside, open: isTyped }, issues);
    }),
    problemView(
      action,
      [...refusals].filter(([path]) => !names.has(path)),
    ),
    h(
      "p",
      { class: "actions", "data-key": "submit" },
      // It is not disabled while the answer is awaited, because it would lose the focus.
      h(
        "button",
        { type: "submit", class: "primary", "aria-disabled": sending.has(action) && "true" },
        sending.has(action) ? busy : submit,
      ),
    ),
  );
};

/** What the tab keeps of a form replaces a field's first value. @param {string | undefined} name @returns {(field: FieldView) => FieldView} */
const keptOf = (name) => {
  const typed = name === undefined ? null : readKept(name);
  return (field) =>
    typeof typed?.[field.name] === "string" ? { ...field, value: typed[field.name] } : field;
};

/** Forms with a text that the service refused because of a secret. They are not kept until the page is loaded again. @type {Set<string>} */
const secretive = new Set();

/** Keeps what is typed in forms that wish it, except for secrets and files. */
export const keepForms = () =>
  document.addEventListener("input", ({ target }) => {
    const form = target instanceof Element ? target.closest("form[data-keeps]") : null;
    if (!(form instanceof HTMLFormElement)) return;
    const name = form.dataset["keeps"] ?? "";
    if (secretive.has(name)) return;
    const typed = [...new FormData(form)].filter(([field, value]) => {
      const input = form.elements.namedItem(field);
      return typeof value === "string" && !(input instanceof Element && input.matches(SECRET));
    });
    // A form of two kinds keeps the fields of the other kind, too.
    keep(name, { ...readKept(name), ...Object.fromEntries(typed) });
  });
const SECRET = "[type=password], .masked *";

/** @param {FieldView | GroupView | Node | null} entry @returns {entry is FieldView} */
const isField = (entry) => entry !== null && !(entry instanceof Node) && !("group" in entry);

/** The group may be closed, so its issues are listed above the button, too. @param {string} action @param {GroupView} view @param {Map<string, string>} issues */
const groupView = (action, { group, fields, open }, issues) =>
  h(
    "details",
    { class: "group", "data-key": group, open },
    h("summary", {}, group),
    fields.map((field) => fieldView(action, field, issues)),
  );

/** What the service says about single fields. @param {string} action @returns {Map<string, string>} */
const issuesOf = (action) => {
  const error = refused.get(action);
  const issues = error instanceof ApiError ? (error.details?.issues ?? []) : [];
  return new Map(
    issues.map((/** @type {{path: string, message: string}} */ { path, message }) => [path, message]),
  );
};

/** Whether the form's fields say all that the service said. @param {string} action @param {[string, string][]} others issues of no field */
const isMarked = (action, others) => {
  const error = refused.get(action);
  const isOfFields = error instanceof ApiError && error.code === "invalid_request";
  return isOfFields && others.length === 0 && issuesOf(action).size > 0;
};

/** @param {string} action @param {[string, string][]} others issues of no field */
const problemView = (action, others) => {
  const error = refused.get(action);
  if (error === undefined) return null;
  return h(
    "div",
    { role: "alert", "data-key": "problem" },
    callout(
      "bad",
      // The service names the field as programs do. The form marks it.
      h("p", {}, isMarked(action, others) ? "Correct what is marked." : prose(error.message)),
      others.length > 0 &&
        h(
          "ul",
          {},
          others.map(([path, message]) => h("li", {}, h("code", {}, path), " ", ...prose(message))),
        ),
    ),
  );
};

/** @param {string} action @param {FieldView} spec @param {Map<string, string>} issues */
const fieldView = (action, spec, issues) => {
  const id = `${action}-${spec.name}`;
  const issue = issues.get(spec.path ?? spec.name);
  const described = [spec.hint && `${id}-hint`, issue && `${id}-issue`].filter(Boolean).join(" ");
  const input = inputView(id, spec, {
    "aria-describedby": described === "" ? null : described,
    "aria-invalid": issue !== undefined && "true",
  });
  const label = h("label", { for: id }, spec.label);
  return h(
    "div",
    { class: "field", "data-key": spec.name, "data-type": spec.type },
    spec.type === "checkbox" ? h("span", { class: "check" }, input, label) : label,
    spec.hint && h("p", { id: `${id}-hint`, class: "quiet" }, prose(spec.hint)),
    spec.type !== "checkbox" && input,
    issue && h("p", { id: `${id}-issue`, class: "refusal" }, prose(issue)),
  );
};

/** @param {string} id @param {FieldView} spec @param {import("./dom.ts").Attributes} described */
const inputView = (id, spec, described) => {
  const { name, value = "", type = "text", lines = 1, required = false, placeholder } = spec;
  const own = { id, name, required, placeholder, class: spec.mono === true && "mono", ...described };
  if (spec.options !== undefined) {
    return h(
      "select",
      own,
      spec.options.map(([option, label]) =>
        h("option", { value: option, selected: option === value, "data-key": option }, label),
      ),
    );
  }
  if (spec.masked === true) return maskedArea({ ...own, rows: lines });
  if (lines > 1) return h("textarea", { ...own, rows: lines, spellcheck: spec.mono !== true }, value);
  if (type === "checkbox") return h("input", { ...own, type, value: "yes", checked: value !== "" });
  if (type === "file") return h("input", { ...own, type, multiple: true });
  const input = h("input", {
    ...own,
    type,
    value,
    autocomplete: type === "password" ? "new-password" : "off",
    spellcheck: "false",
    list: spec.suggestions && `${id}-list`,
  });
  if (spec.suggestions === undefined) return input;
  const options = spec.suggestions.map((suggestion) => {
    const [offered, label] = typeof suggestion === "string" ? [suggestion] : suggestion;
    return h("option", { value: offered, label });
  });
  return h("div", {}, input, h("datalist", { id: `${id}-list` }, options));
};

/**
 * Sends a form. A refusal is shown in the form, and everything typed stays.
 *
 * @param {HTMLFormElement} form
 * @param {Submit} submit
 * @param {import("../frame/actions.js").Page} page
 */
export const sendForm = async (form, submit, page) => {
  const action = form.dataset["action"] ?? "";
  if (sending.has(action)) return;
  sending.add(action);
  refused.delete(action);
  page.draw();
  try {
    const taken = await submit(typedIn(form), form.dataset, { ...page, files: filesIn(form) });
    if (taken === false) return;
    forgetTyped(form);
    form.reset();
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) throw error;
    if (error instanceof ApiError && error.code === "secret_in_message") {
      secretive.add(form.dataset["keeps"] ?? "");
      forgetTyped(form);
    }
    refused.set(action, error instanceof Error ? error : new Error(String(error)));
  } finally {
    sending.delete(action);
    page.draw();
  }
};

/** @param {HTMLFormElement} form */
const forgetTyped = ({ dataset: { keeps } }) => {
  if (keeps !== undefined) keep(keeps, null);
};

/** Secrets and texts of several lines stay as typed. @param {HTMLFormElement} form @returns {Record<string, string>} */
const typedIn = (form) => {
  const typed = [...new FormData(form)].filter(([, value]) => typeof value === "string");
  return Object.fromEntries(
    typed.map(([name, value]) => {
      const input = form.elements.namedItem(name);
      const isExact =
        input instanceof HTMLTextAreaElement ||
        (input instanceof HTMLInputElement && input.type === "password");
      return [name, isExact ? String(value) : String(value).trim()];
    }),
  );
};

/** The chosen files. Without a choice, a browser sends one without name and content. @param {HTMLFormElement} form */
const filesIn = (form) =>
  [...new FormData(form).values()].flatMap((value) =>
    value instanceof File && !(value.name === "" && value.size === 0) ? [value] : [],
  );

/** The entries that are not empty. @param {Record<string, string | undefined>} entries @returns {Record<string, string>} */
export const given = (entries) =>
  Object.fromEntries(
    Object.entries(entries).flatMap(([name, value]) =>
      value === undefined || value === "" ? [] : [[name, value]],
    ),
  );
