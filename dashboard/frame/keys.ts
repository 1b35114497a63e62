/**
 * The page by keyboard. A shortcut of one key works while nothing is typed, and no dialog is open; the reader can switch
 * these off. `?` lists them.
 */
import { openDialog } from "./dialog.ts";
import { h } from "../elements/dom.ts";
import { browserWish } from "./kept.ts";
import { closeMenus } from "./menus.ts";
import { openPalette } from "./palette.ts";

/** A second key of a pair comes within this time. */
const PAIR_MS = 1500;
const OFF = "shortcuts-off";

const PROJECT = /^#\/projects\/[0-9a-f-]{36}/;

/** The address of the project that is shown. */
const projectHash = (): string | null => PROJECT.exec(location.hash)?.[0] ?? null;

const go = (hash: string) => {
  location.hash = hash;
};

/** Goes to a part of the shown project, or to the first page if none is shown. */
const inProject = (rest: string) => {
  const project = projectHash();
  go(project === null ? "#/" : project + rest);
};

/** Where the next session's prompt is written: on the first page, or on the page of the shown project. */
const startSession = () => {
  const prompt = document.querySelector("#main .start textarea");
  if (prompt instanceof HTMLElement) prompt.focus();
  else inProject("/new");
};

/** The rows and cards of the page's lists, by their links. */
const rowLinks = () => [...(document.querySelectorAll("#main a.cover") as NodeListOf<HTMLElement>)];

const moveInList = (by: number) => {
  const links = rowLinks();
  const at = links.findIndex((link) => link.closest(".row, .card")?.contains(document.activeElement));
  const next = at === -1 ? (by > 0 ? 0 : links.length - 1) : Math.min(Math.max(at + by, 0), links.length - 1);
  links[next]?.focus();
};

const focusFilter = () => {
  const filter = document.querySelector("#main input[data-filter], #main select[data-filter]");
  if (filter instanceof HTMLElement) filter.focus();
  else openPalette();
};

/** The action menu of the row with the focus. */
const openMenu = () => {
  const menu = document.activeElement?.closest(".row")?.querySelector("details.menu");
  if (!(menu instanceof HTMLDetailsElement)) return;
  menu.open = true;
  menu.querySelector("button")?.focus();
};

const SHORTCUTS: Record<string, { about: string; run: () => void }> = {
  "g h": { about: "Go to the first page", run: () => go("#/") },
  "g p": { about: "Go to the projects", run: () => go("#/projects") },
  "g s": { about: "Go to the project's sessions", run: () => inProject("") },
  "g t": { about: "Go to the project's triggers", run: () => inProject("/triggers") },
  "g c": { about: "Go to the project's change requests", run: () => inProject("/change-requests") },
  "g q": { about: "Go to the queue", run: () => go("#/queue") },
  "g a": { about: "Go to the account", run: () => go("#/account") },
  c: { about: "Start a session", run: startSession },
  j: { about: "Next entry of a list", run: () => moveInList(1) },
  k: { about: "Previous entry of a list", run: () => moveInList(-1) },
  ".": { about: "Actions of the chosen entry", run: openMenu },
  "/": { about: "Filter the list, or search", run: focusFilter },
  "?": { about: "Show the shortcuts", run: () => showShortcuts() },
};

const off = browserWish(OFF);

/** Whether the key belongs to something that takes text or choices. */
const takesKeys = (element: Element | null) =>
  element instanceof HTMLElement &&
  (element.isContentEditable ||
    element.matches("input, textarea, select, [role='textbox'], [role='combobox']"));

/** The first key of a pair. */
let first = "";
let forgetting: ReturnType<typeof globalThis.setTimeout> | undefined;

/** @returns whether it means anything */
const press = (key: string): boolean => {
  const pair = first === "" ? key : `${first} ${key}`;
  clearTimeout(forgetting);
  first = "";
  const found = SHORTCUTS[pair];
  if (found !== undefined) {
    found.run();
    return true;
  }
  if (!Object.keys(SHORTCUTS).some((keys) => keys.startsWith(`${key} `))) return false;
  first = key;
  // eslint-disable-next-line no-restricted-globals -- the browser's timer
  forgetting = setTimeout(() => {
    first = "";
  }, PAIR_MS);
  return true;
};

const isSignedIn = () => document.getElementById("search")?.hidden === false;
const isAsking = () => document.querySelector("dialog[open]") !== null;

const pressed = (event: KeyboardEvent) => {
  if (event.defaultPrevented || event.isComposing || !isSignedIn() || isAsking()) return;
  if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k") {
    event.preventDefault();
    openPalette();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || off.read() || takesKeys(document.activeElement))
    return;
  if (press(event.key)) event.preventDefault();
};

/** In a text of several lines, Enter begins a line, and Ctrl+Enter sends the form as its button does: a dialog needs the button's value. */
const sendByKey = (event: KeyboardEvent) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  const form = event.target instanceof HTMLTextAreaElement ? event.target.form : null;
  if (form?.matches(".form, [method=dialog]") !== true) return;
  const submit = form.querySelector("[type=submit]");
  form.requestSubmit(submit instanceof HTMLElement ? submit : null);
};

/** Listens for the whole life of the page. */
export const followKeys = () => {
  document.addEventListener("keydown", sendByKey);
  document.addEventListener("keydown", pressed);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !isAsking()) closeMenus();
  });
};

export const showShortcuts = () => {
  const rows = [["Ctrl K", "Search projects, sessions, triggers and actions"]].concat(
    Object.entries(SHORTCUTS).map(([keys, { about }]) => [keys, about]),
  );
  const toggle = h("input", { type: "checkbox", id: "shortcuts-on" }) as HTMLInputElement;
  toggle.checked = !off.read();
  toggle.addEventListener("change", () => off.keep(!toggle.checked));
  openDialog(
    h(
      "form",
      { method: "dialog" },
      h("h2", { id: "dialog-title" }, "Keyboard shortcuts"),
      h(
        "dl",
        { class: "shortcuts" },
        rows.map(([keys = "", about = ""]) =>
          h(
            "div",
            {},
            h(
              "dt",
              {},
              keys.split(" ").map((key) => h("kbd", {}, key)),
            ),
            h("dd", {}, about),
          ),
        ),
      ),
      h(
        "p",
        { class: "check" },
        toggle,
        h("label", { for: "shortcuts-on" }, "Shortcuts without Ctrl are on"),
      ),
      h("p", { class: "actions" }, h("button", { type: "button", class: "decline" }, "Close")),
    ),
  );
};
