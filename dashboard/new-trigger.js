/** A new trigger: its fields, its lines in platform.toml as they are typed, and the change request that adds them. */
import { getJson, getJsonOrNull, post } from "./api.js";
import { h } from "./dom.js";
import { formView, given } from "./forms.js";
import { ZONE } from "./format.js";
import { readKept } from "./kept.js";
import { code, commandBlock, projectLink } from "./parts.js";
import { isArchived, projectHead, projectPath } from "./project.js";
import { instantsView } from "./schedule.js";

/** @typedef {import("./wire.d.ts").TriggerDraft} TriggerDraft */
/** @typedef {"cron" | "webhook"} Kind */
/** @typedef {{project: import("./wire.d.ts").Project, kind: Kind, secrets: string[]}} NewTriggerPage */
/** @typedef {import("./forms.js").FieldView} FieldView */

/** Long enough for the next key. */
const SETTLE_MS = 300;

/** @type {[Kind, string, string][]} */
const KINDS = [
  ["cron", "On a schedule", "A session starts at each due instant."],
  [
    "webhook",
    "On a webhook",
    "A session starts when another system, for example a code host, sends a signed request.",
  ],
];

/** @param {string | null | undefined} said @returns {Kind} */
const kindOf = (said) => (said === "webhook" ? "webhook" : "cron");

/** @type {FieldView} */
const SLUG = {
  name: "slug",
  label: "Slug",
  hint: "The trigger's name in addresses: `a-z`, `0-9`, `_` and `-`.",
  required: true,
  mono: true,
};

/** @param {string} hint @returns {FieldView} */
const promptField = (hint) => ({ name: "prompt", label: "Prompt", hint, lines: 6, required: true });

/** @type {import("./forms.js").GroupView} */
const MORE = {
  group: "Name and agent",
  fields: [
    { name: "name", label: "Name", hint: "Optional. It is shown to people instead of the slug." },
    {
      name: "agent",
      label: "Agent",
      hint: "Optional. An agent that the repository defines, in `.platform/runtime/agents`.",
      placeholder: "default",
      mono: true,
    },
  ],
};

/** @param {TriggerDraft | null} draft @param {string} zone @returns {import("./forms.js").FormView["fields"]} */
const cronFields = (draft, zone) => [
  SLUG,
  {
    name: "cron",
    label: "Schedule",
    hint: "Six fields: second, minute, hour, day, month, weekday. `0 30 2 * * *` is 02:30 each day, `0 0 9 * * 1-5` is 09:00 from Monday to Friday.",
    placeholder: "0 30 2 * * *",
    required: true,
    mono: true,
  },
  {
    name: "timezone",
    label: "Time zone",
    hint: "An IANA name. The schedule is read in this zone.",
    value: ZONE,
    suggestions: Intl.supportedValuesOf("timeZone"),
    mono: true,
  },
  h(
    "div",
    { class: "field", "data-key": "upcoming", "aria-live": "polite" },
    h("span", { class: "field-name" }, "Next runs"),
    draft === null || draft.upcoming.length === 0
      ? h("p", { class: "quiet" }, "They appear here when the schedule can be read.")
      : instantsView(draft.upcoming, zone === "" ? "UTC" : zone),
  ),
  promptField("The session's first message. `{{ cron.fired_at }}` becomes the due instant."),
  MORE,
];

/** @param {string[]} secrets @returns {import("./forms.js").FormView["fields"]} */
const webhookFields = (secrets) => [
  SLUG,
  {
    name: "secret_env",
    label: "Secret",
    hint: "The name of the project's secret with which the sender signs. You set its value later; the file never contains it.",
    value: "WEBHOOK_SECRET",
    suggestions: secrets,
    required: true,
    mono: true,
  },
  {
    name: "events",
    label: "Events",
    hint: "Optional. Only these start a session, for example `push, pull_request.opened`. If this is empty, every delivery does.",
    mono: true,
  },
  {
    name: "branches",
    label: "Branches",
    hint: "Optional. For example `main, release/*`.",
    mono: true,
  },
  promptField(
    "The session's first message. `{{ body.head_commit.message }}` becomes that value of the delivery.",
  ),
  MORE,
];

/** @param {string} text @returns {string[]} */
const listOf = (text) =>
  text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");

/** The description that the API takes. @param {Kind} kind @param {Record<string, string>} typed */
const wishOf = (kind, { events = "", branches = "", ...typed }) => ({
  type: kind,
  ...given(typed),
  ...(listOf(events).length > 0 && { events: listOf(events) }),
  ...(listOf(branches).length > 0 && { branches: listOf(branches) }),
});

/**
 * @typedef {object} Drafting
 * @property {TriggerDraft | null} draft of what is typed now
 * @property {Record<string, string>} typed
 * @property {(main: HTMLElement) => void} drawn
 * @property {() => void} end
 */

/** Reads the form at each key, and asks the service what it means. @param {string} path @param {() => void} changed @returns {Drafting} */
const followForm = (path, changed) => {
  /** The kind that each form was last drawn with. @type {WeakMap<HTMLFormElement, string | undefined>} */
  const heard = new WeakMap();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let settling;
  let turn = 0;
  /** @type {Drafting} */
  const drafting = {
    draft: null,
    typed: {},
    drawn: (main) => {
      const form = main.querySelector("form[data-kind]");
      if (!(form instanceof HTMLFormElement)) return;
      const isKnown = heard.has(form);
      if (isKnown && heard.get(form) === form.dataset["kind"]) return;
      heard.set(form, form.dataset["kind"]);
      if (isKnown) {
        // Another kind of the same trigger: what both have stays in the form, and is read as the new kind.
        drafting.draft = null;
        changed();
        void read(form);
        return;
      }
      form.addEventListener("input", () => {
        clearTimeout(settling);
        // eslint-disable-next-line no-restricted-globals -- the browser's timer
        settling = setTimeout(() => void read(form), SETTLE_MS);
      });
      // After a reload, the form has what the tab kept.
      if (readKept(form.dataset["keeps"] ?? "") !== null) void read(form);
    },
    end: () => {
      turn += 1;
      clearTimeout(settling);
    },
  };
  /** @param {HTMLFormElement} form */
  const read = async (form) => {
    turn += 1;
    const asked = turn;
    const typed = Object.fromEntries(
      [...new FormData(form)].map(([name, value]) => [
        name,
        name === "prompt" ? String(value) : String(value).trim(),
      ]),
    );
    const kind = kindOf(form.dataset["kind"]);
    // While the service does not answer, the form still works: sending it says what is wrong.
    const draft = await post(`${path}/drafts`, wishOf(kind, typed)).catch(() => null);
    if (asked !== turn) return;
    drafting.draft = draft;
    drafting.typed = typed;
    changed();
  };
  return drafting;
};

/** Only what is typed can be wrong so far. @param {Drafting | null} live @returns {Map<string, string>} */
const notedIn = (live) =>
  new Map(
    (live?.draft?.issues ?? []).flatMap(({ path, message }) =>
      (live?.typed[path] ?? "") === "" ? [] : [[path, message]],
    ),
  );

export const newTrigger = {
  /** @param {string[]} params @param {import("./app.js").Extent} extent @returns {Promise<NewTriggerPage>} */
  load: async ([id = ""], { query }) => {
    const [project, listing] = await Promise.all([
      getJson(projectPath(id)),
      getJsonOrNull(`${projectPath(id)}/secrets`, [403, 404]),
    ]);
    return {
      project,
      kind: kindOf(query.get("kind")),
      secrets: (listing?.secrets ?? []).map((/** @type {{name: string}} */ { name }) => name),
    };
  },

  /** @param {string[]} params @param {() => void} changed */
  follow: ([id = ""], changed) => followForm(`${projectPath(id)}/triggers`, changed),

  /** @param {NewTriggerPage} data */
  title: ({ project }) => `New trigger in ${project.name}`,

  /** @param {NewTriggerPage} data @param {unknown} _me @param {Drafting | null} live */
  view: ({ project, kind, secrets }, _me, live) => [
    ...projectHead(project, null),
    h("h2", { "data-key": "heading" }, "New trigger"),
    ...(isArchived(project) ? [] : formOf({ project, kind, secrets }, live)),
  ],
};

/** @param {NewTriggerPage} data @param {Drafting | null} live @returns {import("./dom.js").Child[]} */
const formOf = ({ project, kind, secrets }, live) => [
  h(
    "nav",
    { class: "tabs", "aria-label": "What starts it", "data-key": "kinds" },
    KINDS.map(([value, label]) =>
      h(
        "a",
        {
          href: projectLink(project.id, `/triggers/new?kind=${value}`),
          "aria-current": value === kind ? "true" : null,
        },
        label,
      ),
    ),
  ),
  h("p", { class: "quiet", "data-key": "about" }, KINDS.find(([value]) => value === kind)?.[2] ?? ""),
  h(
    "div",
    { class: "beside", "data-key": "form" },
    formView({
      action: "propose-trigger",
      submit: "Open a change request",
      sending: "Writing the commit…",
      input: { project: project.id, kind },
      keeps: `trigger ${project.id}`,
      fields:
        kind === "cron"
          ? cronFields(live?.draft ?? null, live?.typed["timezone"] ?? ZONE)
          : webhookFields(secrets),
      noted: notedIn(live),
    }),
    linesView(project, live?.draft ?? null),
  ),
];

/** @param {import("./wire.d.ts").Project} project @param {TriggerDraft | null} draft */
const linesView = (project, draft) =>
  h(
    "section",
    { class: "lines", "data-key": "lines" },
    h("h3", {}, "Lines of ", code("platform.toml")),
    draft === null || draft.lines === null
      ? h("p", { class: "quiet" }, "The lines appear here when all fields are valid.")
      : commandBlock(draft.lines, "the lines"),
    h(
      "p",
      { class: "quiet" },
      "The change request adds them at the end of the file, in a commit with you as the author. The trigger works as soon as a person merges it into ",
      code(project.default_branch),
      ". You can also add the lines yourself.",
    ),
  );

/** @type {import("./forms.js").Submit} */
const propose = async (typed, { project = "", kind }, page) => {
  const { number } = await post(`${projectPath(project)}/triggers/proposals`, wishOf(kindOf(kind), typed));
  page.go(projectLink(project, `/change-requests/${number}`));
};

/** @type {Record<string, import("./forms.js").Submit>} */
export const newTriggerForms = { "propose-trigger": propose };
