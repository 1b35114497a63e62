/** The audit record: who did what in the account, or in a project. */
import { getJson, getJsonOrNull, getList } from "./api.js";
import { ACTION_WORDS, ACTOR_WORDS, REFUSED_WORDS } from "./audit-words.js";
import { nameOf } from "./browsers.js";
import { h } from "./dom.js";
import { moment, ZONE } from "./format.js";
import { button, code, detail, empty, listRow, pick, tag } from "./parts.js";
import { projectHead, projectPath } from "./project.js";

/** @typedef {import("./wire.d.ts").AuditEvent} AuditEvent */
/** @typedef {import("./wire.d.ts").Project} Project */
/** @typedef {{id: string, name: string}} Named */
/** @typedef {{actor: string, action: string, project: string, since: string, until: string}} Filter "" for all */

/**
 * @typedef {object} AuditPage
 * @property {AuditEvent[]} events
 * @property {boolean} more
 * @property {Filter} filter
 * @property {Named[]} people to choose from
 * @property {Named[]} projects to choose from
 * @property {Project | null} project null: the whole account
 * @property {boolean} isAllowed whether the reader may see it
 */

const ID = /^[0-9a-f-]{36}$/;
const DAY = /^\d{4}-\d\d-\d\d$/;

/** @param {string} value */
const isDay = (value) => DAY.test(value) && !Number.isNaN(Date.parse(value));

/** What the address asks for. Unknown words are ignored. @param {URLSearchParams} query @returns {Filter} */
const filterOf = (query) => {
  /** @param {string} name @param {(value: string) => boolean} isGood */
  const read = (name, isGood) => {
    const value = query.get(name) ?? "";
    return isGood(value) ? value : "";
  };
  return {
    actor: read("actor", (value) => ID.test(value)),
    action: read("action", (value) => value in ACTION_WORDS),
    project: read("project", (value) => ID.test(value)),
    since: read("since", isDay),
    until: read("until", isDay),
  };
};

/** The beginning of a day in the reader's zone. @param {string} day @param {number} [later] days after it */
const beginning = (day, later = 0) => {
  const [year = 0, month = 1, date = 1] = day.split("-").map(Number);
  return new Date(year, month - 1, date + later).toISOString();
};

/** @param {Filter} filter */
const queryOf = ({ since, until, ...rest }) => {
  const wanted = new URLSearchParams(Object.entries(rest).filter(([, value]) => value !== ""));
  if (since !== "") wanted.set("since", beginning(since));
  if (until !== "") wanted.set("until", beginning(until, 1));
  return wanted.size === 0 ? "" : `?${wanted}`;
};

/** @param {string} path @param {import("./app.js").Extent} extent @param {Filter} filter */
const read = async (path, { pages: shown }, filter) => {
  try {
    return { ...(await getList(`${path}${queryOf(filter)}`, "events", shown)), isAllowed: true };
  } catch (error) {
    if (/** @type {{status?: number}} */ (error).status !== 403) throw error;
    return { items: [], more: false, isAllowed: false };
  }
};

/** @param {string | null} project @param {import("./app.js").Extent} extent @returns {Promise<AuditPage>} */
const load = async (project, extent) => {
  const filter = { ...filterOf(extent.query), ...(project !== null && { project: "" }) };
  const path = project === null ? "/v1/audit" : `${projectPath(project)}/audit`;
  const [{ items, more, isAllowed }, everyone, listed, own] = await Promise.all([
    read(path, extent, filter),
    // A token of one project reads no list of people.
    getJsonOrNull("/v1/people?limit=200", [403]),
    project === null ? getJson("/v1/projects?limit=200") : null,
    project === null ? null : getJson(projectPath(project)),
  ]);
  const [people, projects] = [everyone?.people ?? [], listed?.projects ?? []];
  return { events: items, more, isAllowed, filter, people, projects, project: own };
};

/** @param {"since" | "until"} name @param {string} label @param {string} value */
const day = (name, label, value) =>
  h(
    "label",
    { class: "pick" },
    label,
    h("input", { type: "date", "data-filter": name, value, "data-key": name }),
  );

/** @param {string} name @param {string} label @param {{all: string, among: Named[], chosen: string}} choice */
const pickNamed = (name, label, { all, among, chosen }) =>
  pick({
    name,
    label,
    all,
    // An actor that is not in the list, for example an agent, stays chosen.
    options: [...new Set([...among.map(({ id }) => id), ...(chosen === "" ? [] : [chosen])])],
    chosen,
    words: Object.fromEntries(among.map((one) => [one.id, one.name])),
  });

/** @param {AuditPage} data */
const filterBar = ({ filter, people, projects, project }) =>
  h(
    "div",
    { class: "filters", "data-key": "filters", role: "search", "aria-label": "Audit record" },
    people.length > 0 &&
      pickNamed("actor", "Person", { all: "everyone", among: people, chosen: filter.actor }),
    pick({
      name: "action",
      label: "Action",
      all: "all",
      options: Object.keys(ACTION_WORDS),
      chosen: filter.action,
      words: ACTION_WORDS,
    }),
    project === null &&
      pickNamed("project", "Project", { all: "all", among: projects, chosen: filter.project }),
    day("since", "From", filter.since),
    day("until", "To", filter.until),
  );

/** @param {AuditEvent["actor"]} actor */
const whoOf = ({ kind, name }) => {
  if (kind === "session" && name !== null) return `An agent of ${name}`;
  if (kind === "operator" && name !== null) return `The operator ${name}`;
  return name ?? ACTOR_WORDS[kind] ?? kind;
};

/** @param {unknown} value */
const plainOf = (value) => (Array.isArray(value) ? value.join(", ") : String(value ?? "none"));

/** The value, or what it was and is now. @param {unknown} value */
const valueOf = (value) => {
  if (typeof value !== "object" || value === null || !("from" in value)) return plainOf(value);
  return `${plainOf(value.from)} → ${plainOf("to" in value ? value.to : null)}`;
};

/** A browser by its name, and another program by the first word of what it says. @param {string | null} agent */
const programOf = (agent) => {
  if (agent === null) return null;
  return agent.startsWith("Mozilla/") ? nameOf(agent) : (agent.split(" ", 1)[0] ?? "");
};

/** @param {AuditEvent} event @param {Named[]} projects */
const row = ({ id, at, actor, action, target, outcome, project_id, ...rest }, projects) => {
  const { address, user_agent, changes } = rest;
  const project = projects.find((one) => one.id === project_id)?.name ?? null;
  const refused = outcome === "refused" ? REFUSED_WORDS[action] : undefined;
  const changed = Object.entries(changes).filter(([, value]) => value !== null);
  return listRow(
    id,
    [
      h("span", {}, h("strong", {}, whoOf(actor)), ` ${refused ?? ACTION_WORDS[action] ?? action}`),
      detail(
        h("time", { datetime: at }, moment(at)),
        target !== null && [" · ", code(target)],
        project !== null && ` · in ${project}`,
      ),
      changed.length > 0 && detail(changed.map(([name, value]) => `${name}: ${valueOf(value)}`).join(" · ")),
      detail([address ?? "no address", programOf(user_agent)].filter((part) => part !== null).join(" · ")),
    ],
    {
      states: [
        outcome === "refused" && tag("refused", "warn"),
        outcome === "begun" && tag("asked for"),
        // The second row of an actor's work has the words of the first.
        outcome === "done" && ACTION_WORDS[action]?.startsWith("asked to") && tag("done"),
      ],
      actions: [],
    },
  );
};

/**
 * Work that has ended has two rows, and the second one says it all. A first row alone is shown.
 *
 * @param {AuditEvent[]} events newest first
 */
const withoutBegun = (events) => {
  const ended = new Set(events.filter(({ outcome }) => outcome !== "begun").map(workOf));
  return events.filter((event) => event.outcome !== "begun" || !ended.has(workOf(event)));
};

/** @param {AuditEvent} event */
const workOf = ({ request_id, action, target }) => JSON.stringify([request_id, action, target]);

/** @param {AuditPage} data */
const listOf = (data) => {
  const { events, more, filter, isAllowed, projects } = data;
  if (!isAllowed) return [empty("Only owners see the audit record.", "Ask an owner of the account.")];
  const isNarrowed = Object.values(filter).some((value) => value !== "");
  return [
    filterBar(data),
    h("p", { class: "quiet", "data-key": "zone" }, `Newest first. Times are in the time zone ${ZONE}.`),
    events.length === 0
      ? empty(
          "Nothing on record.",
          isNarrowed
            ? button("clear-filters", "Show everything", { class: "plain" })
            : "The record begins with the next change.",
        )
      : h(
          "ul",
          { class: "rows", "data-key": "events" },
          withoutBegun(events).map((event) => row(event, projects)),
        ),
    more && h("p", { class: "more", "data-key": "more" }, button("more", "Show older entries")),
  ];
};

const audit = {
  /** @param {string[]} _params @param {import("./app.js").Extent} extent */
  load: (_params, extent) => load(null, extent),
  title: () => "Audit",
  /** @param {AuditPage} data */
  view: (data) => [h("h1", { "data-key": "heading" }, "Audit"), ...listOf(data)],
};

const projectAudit = {
  /** @param {string[]} params @param {import("./app.js").Extent} extent */
  load: ([id = ""], extent) => load(id, extent),
  /** @param {AuditPage} data */
  title: ({ project }) => `Audit of ${project?.name ?? ""}`,
  /** @param {AuditPage} data */
  view: (data) => [
    ...(data.project === null ? [] : projectHead(data.project, "/settings")),
    h("h2", { "data-key": "heading" }, "Audit"),
    ...listOf(data),
  ],
};

export const pages = { audit, projectAudit };
