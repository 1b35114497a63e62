/**
 * The palette: one field that finds projects, sessions, triggers and actions, by keyboard alone. The service searches
 * the sessions by name and by the words of their messages, and the conversation that is shown, as far back as it goes. Everything else is few, and read when the palette opens.
 */
import { request } from "../api/client.ts";
import { onClose, openDialog } from "./dialog.ts";
import { h } from "../elements/dom.ts";
import { moment } from "../elements/format.ts";
import { projectLink, sessionLink, sessionWord } from "../elements/parts.ts";
import { sessionName } from "../projects/project.ts";

/** How long the reader rests before the service searches. */
const TYPING_MS = 150;
/** How many of each kind are shown. */
const SHOWN = 8;
/** Projects, and with them their triggers, are searched up to this many: the newest. */
const PROJECTS = 200;

/** `go`: an address, or the action `!name`. `line`: the sentence of a message in which the words are. */
type Entry = { label: string; kind: string; detail: string; go: string; line?: string | undefined };

const ACTIONS: Entry[] = [
  { label: "Create a project", kind: "Action", detail: "A new one, with its repository", go: "#/new" },
  { label: "Home", kind: "Action", detail: "", go: "#/" },
  { label: "Show the projects", kind: "Action", detail: "", go: "#/projects" },
  { label: "Automations", kind: "Action", detail: "Triggers of all projects", go: "#/automations" },
  { label: "Activity", kind: "Action", detail: "What happened", go: "#/activity" },
  { label: "Show the queue", kind: "Action", detail: "", go: "#/queue" },
  { label: "Account and access tokens", kind: "Action", detail: "", go: "#/account" },
  { label: "People", kind: "Action", detail: "Invite somebody", go: "#/people" },
  { label: "Models", kind: "Action", detail: "", go: "#/models" },
  { label: "Limits of spend", kind: "Action", detail: "", go: "#/models?show=limits" },
  { label: "Audit", kind: "Action", detail: "Who did what", go: "#/audit" },
  { label: "Browsers", kind: "Action", detail: "", go: "#/browsers" },
  { label: "Sign in a program", kind: "Action", detail: "", go: "#/device" },
  { label: "Keyboard shortcuts", kind: "Action", detail: "", go: "!shortcuts" },
  { label: "Sign out", kind: "Action", detail: "", go: "!sign-out" },
];

/** Actions in the project of the address. */
const projectActions = (projectId: string, name: string): Entry[] =>
  [
    ["New session", "/new"],
    ["Sessions that wait for a person", "?status=waiting"],
    ["Failed sessions", "?status=failed"],
    ["Triggers", "/triggers"],
    ["Runs and deliveries", "/fires"],
    ["Change requests", "/change-requests"],
    ["Usage", "/usage"],
    ["Environment", "/environment"],
    ["Secrets", "/secrets"],
    ["Settings", "/settings"],
  ].map(([label = "", rest = ""]) => ({
    label,
    kind: "Action",
    detail: name,
    go: projectLink(projectId, rest),
  }));

/** Whether all typed words are in the entry. */
const fits = ({ label, detail, kind }: Entry, typed: string) => {
  const text = `${kind} ${label} ${detail}`.toLowerCase();
  return typed
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
};

/** The project of the address. */
const shownProject = (): string | undefined => /^#\/projects\/([0-9a-f-]{36})/.exec(location.hash)?.[1];

/** Names of projects, by id, newest project first. */
const readNames = async (): Promise<Map<string, string>> => {
  const { projects } = await request("GET /v1/projects", { query: { limit: PROJECTS } });
  return new Map(projects.map(({ id, name }) => [id, name]));
};

const readTriggers = async (): Promise<Entry[]> => {
  const { projects } = await request("GET /v1/triggers", { query: { limit: PROJECTS } });
  return projects.flatMap(({ id, name: project, triggers }) =>
    triggers.map(({ slug, name }) => ({
      label: name,
      kind: "Trigger",
      detail: `${slug} · ${project}`,
      go: projectLink(id, "/triggers"),
    })),
  );
};

const placesOf = (names: Map<string, string>, triggers: Entry[]): Entry[] => {
  const shown = shownProject();
  return [
    ...(shown === undefined ? [] : projectActions(shown, names.get(shown) ?? "")),
    ...[...names].map(([id, name]) => ({ label: name, kind: "Project", detail: "", go: projectLink(id) })),
    ...triggers,
    ...ACTIONS,
  ];
};

const readSessions = async (typed: string, names: Map<string, string>): Promise<Entry[]> => {
  const query = { limit: SHOWN, ...(typed !== "" && { search: typed.slice(0, 200) }) };
  const { sessions } = await request("GET /v1/sessions", { query });
  return sessions.map((session) => ({
    label: sessionName(session),
    kind: "Session",
    detail: `${sessionWord(session)} · ${names.get(session.project_id) ?? ""}`,
    line: session.found?.text,
    go: sessionLink(session),
  }));
};

/** Messages of the session that is shown, newest first. The page of it may not have read them yet. */
const readMessages = async (typed: string): Promise<Entry[]> => {
  const [, pid = "", sid] =
    /^#\/projects\/([0-9a-f-]{36})\/sessions\/([0-9a-f-]{36})/.exec(location.hash) ?? [];
  if (sid === undefined || typed === "") return [];
  const { found } = await request("GET /v1/projects/:pid/sessions/:sid/conversation/search", {
    params: { pid, sid },
    query: { search: typed.slice(0, 200) },
  });
  return found.map(({ item_id: item, at, text }) => ({
    label: text,
    kind: "Message",
    detail: `in this session · ${moment(at)}`,
    go: `${projectLink(pid, `/sessions/${sid}`)}?item=${item}`,
  }));
};

/** @param entries at most SHOWN of each kind */
const bounded = (entries: Entry[]) => {
  const counts: Map<string, number> = new Map();
  return entries.filter(({ kind }) => {
    const count = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, count);
    return count <= SHOWN;
  });
};

const option = ({ label, kind, detail, line }: Entry, index: number, chosen: boolean) =>
  h(
    "li",
    { id: `found-${index}`, role: "option", "aria-selected": String(chosen), "data-index": index },
    h("span", { class: "found-kind" }, kind),
    h("span", { class: "found-label" }, label),
    h("span", { class: "quiet" }, detail),
    line !== undefined && h("span", { class: "found-line", title: line }, line),
  );

/** @param target an address, or the action `!name` */
const follow = (target: string) => {
  if (!target.startsWith("!")) {
    location.hash = target;
    return;
  }
  // The page handles a click on an element that names the action.
  const trigger = h("button", { type: "button", hidden: true, "data-action": target.slice(1) });
  document.body.append(trigger);
  trigger.click();
  trigger.remove();
};

/** What one open palette shows and knows. */
class Palette {
  #places: Entry[] = [];
  #names: Map<string, string> = new Map();
  /** What the service found. */
  #searched: Entry[] = [];
  #found: Entry[] = [];
  #chosen = 0;
  /** Counts what was typed, so that a late answer to an earlier text is dropped. */
  #asked = 0;
  #typing: ReturnType<typeof globalThis.setTimeout> | undefined;

  readonly input = h("input", {
    id: "palette-input",
    type: "text",
    role: "combobox",
    "aria-label": "Search projects, sessions, triggers and actions",
    "aria-controls": "palette-found",
    "aria-expanded": "true",
    "aria-autocomplete": "list",
    autocomplete: "off",
    spellcheck: "false",
    maxlength: 200,
    placeholder: "Search projects, sessions, triggers and actions",
  }) as HTMLInputElement;
  readonly list = h("ul", { id: "palette-found", role: "listbox", "aria-label": "Found" });
  readonly note = h("p", { class: "quiet", role: "status" });

  constructor() {
    this.input.addEventListener("input", () => this.#typed());
    this.input.addEventListener("keydown", (event) => this.#key(event));
    this.list.addEventListener("click", (event) => {
      const row = event.target instanceof Element ? event.target.closest("li") : null;
      if (row instanceof HTMLElement) this.#go(Number(row.dataset["index"]));
    });
  }

  async begin() {
    this.#show();
    try {
      this.#names = await readNames();
      this.#places = placesOf(this.#names, []);
      void this.#search();
      // For these the service reads the manifest of each project. The rest does not wait for them.
      const triggers = await readTriggers();
      this.#places = placesOf(this.#names, triggers);
      this.#show();
    } catch (error) {
      this.note.textContent = error instanceof Error ? error.message : String(error);
    }
  }

  end() {
    clearTimeout(this.#typing);
    this.#asked += 1;
  }

  #typed() {
    // From now on, an answer to the earlier text is late.
    this.#asked += 1;
    this.#chosen = 0;
    this.#searched = [];
    this.#show();
    clearTimeout(this.#typing);
    // eslint-disable-next-line no-restricted-globals -- the browser's timer
    this.#typing = setTimeout(() => void this.#search(), TYPING_MS);
  }

  async #search() {
    this.#asked += 1;
    const asked = this.#asked;
    try {
      const typed = this.input.value.trim();
      const found = await Promise.all([readMessages(typed), readSessions(typed, this.#names)]);
      if (asked !== this.#asked) return;
      this.#searched = found.flat();
      this.#show();
    } catch (error) {
      if (asked === this.#asked)
        this.note.textContent = error instanceof Error ? error.message : String(error);
    }
  }

  #show() {
    const typed = this.input.value.trim();
    const places = this.#places.filter((entry) => typed === "" || fits(entry, typed));
    const chosen = this.#found[this.#chosen];
    this.#found = bounded(
      [...places.filter(({ kind }) => kind !== "Action"), ...this.#searched].concat(
        places.filter(({ kind }) => kind === "Action"),
      ),
    );
    // An entry that the reader went to stays chosen, when others arrive before it.
    const kept = this.#found.findIndex(({ go, label }) => go === chosen?.go && label === chosen.label);
    this.#chosen = this.#chosen === 0 ? 0 : Math.max(0, kept);
    this.list.replaceChildren(
      ...this.#found.map((entry, index) => option(entry, index, index === this.#chosen)),
    );
    this.list.hidden = this.#found.length === 0;
    this.note.textContent =
      this.#places.length === 0
        ? "Loading…"
        : this.#found.length === 0
          ? "Nothing found. The search looks at names, and at the words of messages."
          : "";
    this.#point();
  }

  #point() {
    for (const [index, row] of [...this.list.children].entries())
      row.setAttribute("aria-selected", String(index === this.#chosen));
    if (this.#found.length === 0) this.input.removeAttribute("aria-activedescendant");
    else this.input.setAttribute("aria-activedescendant", `found-${this.#chosen}`);
    this.list.children[this.#chosen]?.scrollIntoView({ block: "nearest" });
  }

  #key(event: KeyboardEvent) {
    const last = this.#found.length - 1;
    if (event.key === "ArrowDown") this.#chosen = this.#chosen >= last ? 0 : this.#chosen + 1;
    else if (event.key === "ArrowUp") this.#chosen = this.#chosen <= 0 ? Math.max(0, last) : this.#chosen - 1;
    else if (event.key === "Enter") this.#go(this.#chosen);
    else return;
    event.preventDefault();
    this.#point();
  }

  #go(index: number) {
    const entry = this.#found[index];
    if (entry === undefined) return;
    const dialog = this.input.closest("dialog");
    // After the event, because an action may open the same dialog again.
    if (dialog instanceof HTMLDialogElement) onClose(dialog, () => follow(entry.go));
    dialog?.close();
  }
}

export const openPalette = () => {
  const palette = new Palette();
  const form = h(
    "form",
    { method: "dialog", class: "palette" },
    h("h2", { id: "dialog-title", class: "unseen" }, "Search"),
    palette.input,
    palette.list,
    palette.note,
  );
  form.addEventListener("submit", (event) => event.preventDefault());
  onClose(openDialog(form, { wide: true }), () => palette.end());
  palette.input.focus();
  void palette.begin();
};
