/** A project's page of sessions, with filters and a menu for each session. */
import { getJson, getJsonOrNull, getList } from "../api/api.ts";
import { h } from "../elements/dom.ts";
import { duration, now } from "../elements/format.ts";
import {
  button,
  callout,
  empty,
  idTail,
  pick,
  fireLink,
  projectLink,
  prose,
  sessionBadge,
  time,
} from "../elements/parts.ts";
import { isArchived, isLive, projectHead, projectPath, sessionName } from "./project.js";
import { lackedRole } from "../frame/roles.ts";
import { isUnsafe, unsavedWords } from "../saved/words.js";
import { ACTIVITY_WORDS } from "../../src/domain/session/activity-words.ts";

/** @typedef {import("../wire.d.ts").Project} Project */
/** @typedef {import("../wire.d.ts").Session} Session */
/** @typedef {import("../wire.d.ts").Fire} Fire */

/** @type {Record<NonNullable<Session["waits_for"]>["kind"], string>} */
const WAITS = {
  question: "An answer",
  permission: "A permission",
  approval: "An approval",
  plan: "The approval of its plan",
  work_unsaved: "Work not saved",
};

/** What the state may be narrowed to: its words, and the API's query. @type {Record<string, [string, string]>} */
const STATUSES = {
  waiting: [ACTIVITY_WORDS.needs_you.word, "activity=needs_you"],
  ...Object.fromEntries(
    Object.entries(ACTIVITY_WORDS)
      .filter(([activity]) => activity !== "needs_you" && activity !== "queued")
      .map(([activity, { word }]) => [activity, [word, `activity=${activity}`]]),
  ),
  queued: [ACTIVITY_WORDS.queued.word, ""],
};

/** Who started a session. A trigger's slug follows its colon. @type {Record<string, [string, string]>} */
const STARTERS = {
  me: ["me", "started_by=person"],
  person: ["people", "started_by=person"],
  trigger: ["triggers", "started_by=trigger"],
};
const TRIGGER = "trigger:";

/**
 * @typedef {object} Sessions
 * @property {Project} project
 * @property {Session[]} sessions
 * @property {Fire[]} queued runs that wait to become sessions, where these are asked for
 * @property {boolean} more
 * @property {{status: string, by: string, search: string}} filter
 * @property {string[]} slugs of the project's triggers
 */

/** What the address asks for. Unknown words are ignored. @param {URLSearchParams} query */
const filterOf = (query) => {
  const status = query.get("status") ?? "";
  const by = query.get("by") ?? "";
  return {
    status: status in STATUSES ? status : "",
    by: by in STARTERS || by.startsWith(TRIGGER) ? by : "",
    search: (query.get("search") ?? "").trim().slice(0, 200),
  };
};

/** @param {Sessions["filter"]} filter @param {string} user the reader's id */
const queryOf = ({ status, by, search }, user) => {
  const query = new URLSearchParams(
    [STATUSES[status]?.[1], STARTERS[by]?.[1]].filter((part) => part !== undefined).join("&"),
  );
  if (by === "me") query.set("created_by", user);
  if (by.startsWith(TRIGGER)) query.set("trigger", by.slice(TRIGGER.length));
  if (search !== "") query.set("search", search);
  return query.size === 0 ? "" : `?${query}`;
};

export const sessions = {
  /** @param {string[]} params @param {import("../frame/page.ts").Extent} extent @returns {Promise<Sessions>} */
  load: async ([id = ""], { pages, query }) => {
    const filter = filterOf(query);
    const path = projectPath(id);
    const user = filter.by === "me" ? (await getJson("/v1/me")).user.id : "";
    const listed =
      filter.status === "queued"
        ? getList(`${path}/fires?status=queued`, "fires", pages)
        : getList(`${path}/sessions${queryOf(filter, user)}`, "sessions", pages);
    const [project, listing, { items, more }] = await Promise.all([
      getJson(path),
      getJsonOrNull(`${path}/triggers`),
      listed,
    ]);
    const isQueue = filter.status === "queued";
    return {
      project,
      sessions: isQueue ? [] : items,
      queued: isQueue ? items : [],
      more,
      filter,
      slugs: (listing?.triggers ?? []).map((/** @type {{slug: string}} */ { slug }) => slug),
    };
  },

  /** @param {Sessions} data */
  title: ({ project }) => project.name,

  /** @param {Sessions} data */
  view: ({ project, sessions: list, queued, more, filter, slugs }) => [
    ...projectHead(project, ""),
    project.manifest.error &&
      callout("bad", h("strong", {}, "The manifest could not be read. "), prose(project.manifest.error)),
    (list.length > 0 || isNarrowed(filter)) && filterBar(project, filter, slugs),
    list.length === 0 && queued.length === 0
      ? noSessions(project, filter)
      : h(
          "ul",
          { class: "rows", "data-key": "sessions" },
          list.map((one) => row(one)),
          queued.map((run) => waitingRun(project.id, run)),
        ),
    more && h("p", { class: "more" }, button("more", "Show older sessions")),
  ],
};

/** @param {Sessions["filter"]} filter */
const isNarrowed = ({ status, by, search }) => status !== "" || by !== "" || search !== "";

/** @param {Project} project @param {Sessions["filter"]} filter @param {string[]} slugs */
const filterBar = (project, { status, by, search }, slugs) =>
  h(
    "div",
    { class: "filters", "data-key": "filters", role: "search", "aria-label": "Sessions" },
    pick({
      name: "status",
      label: "State",
      all: "all",
      options: Object.keys(STATUSES),
      chosen: status,
      words: Object.fromEntries(Object.entries(STATUSES).map(([name, [word]]) => [name, word])),
    }),
    pick({
      name: "by",
      label: "Started by",
      all: "anyone",
      // The address may name a trigger that has left the manifest.
      options: [
        ...Object.keys(STARTERS),
        ...new Set([...slugs.map((slug) => TRIGGER + slug), ...(by.startsWith(TRIGGER) ? [by] : [])]),
      ],
      chosen: by,
      words: {
        ...Object.fromEntries(Object.entries(STARTERS).map(([name, [word]]) => [name, word])),
        ...Object.fromEntries([...slugs, by.slice(TRIGGER.length)].map((slug) => [TRIGGER + slug, slug])),
      },
    }),
    h(
      "label",
      { class: "pick", "data-key": "search" },
      "Name or words",
      h("input", {
        type: "search",
        "data-filter": "search",
        value: search,
        maxlength: 200,
        placeholder: "contains",
        autocomplete: "off",
        spellcheck: "false",
      }),
    ),
    newSessionLink(project),
  );

/** @param {Project} project */
const newSessionLink = (project) =>
  !isArchived(project) &&
  lackedRole("start-session") === null &&
  h("a", { class: "button primary", href: projectLink(project.id, "/new") }, "New session");

/** @param {Project} project @param {Sessions["filter"]} filter */
const noSessions = (project, filter) =>
  isNarrowed(filter)
    ? empty(
        filter.status === "queued" ? "No runs are queued." : "No sessions match the filter.",
        button("clear-filters", "Show all sessions", { class: "plain" }),
      )
    : empty(
        "No sessions yet.",
        !isArchived(project) && "You or a trigger starts a session. ",
        h("a", { href: projectLink(project.id, "/setup") }, "Set up the project"),
        h("span", { class: "empty-action" }, newSessionLink(project)),
      );

/** @param {Session} session @param {string} [project] its name, on a page of several projects */
export const row = (session, project) =>
  h(
    "li",
    { class: "row has-menu", "data-key": session.id },
    h(
      "span",
      { class: "row-main" },
      h(
        "a",
        { class: "cover", href: projectLink(session.project_id, `/sessions/${session.id}`) },
        sessionName(session),
      ),
      h(
        "span",
        { class: "quiet" },
        project === undefined ? [idTail(session.id), " · ", session.agent_name] : project,
        session.name !== null && session.trigger_slug !== null && ` · ${session.trigger_slug}`,
        session.parent_session_id && " · by an agent",
      ),
      session.found !== undefined && h("span", { class: "quiet" }, session.found.text),
      session.failure && h("span", { class: "reason" }, prose(session.failure.message)),
      session.failure === null &&
        session.last_turn?.state === "failed" &&
        !(isLive(session.status) && session.turn.state !== "idle") &&
        h("span", { class: "reason" }, prose(`Last turn failed: ${session.last_turn.error?.message ?? ""}`)),
      session.failure === null &&
        session.saved !== null &&
        isUnsafe(session) &&
        h("span", { class: "reason" }, unsavedWords(session.saved)),
    ),
    h(
      "span",
      { class: "states" },
      session.waits_for !== null &&
        h("span", { class: "turn-word", "data-turn": "requires_action" }, WAITS[session.waits_for.kind]),
      sessionBadge(session),
    ),
    h("span", { class: "row-side" }, time(session.created_at), length(session)),
    menu(session),
  );

/** What can be done with a session without opening it. @param {Session} session */
const menu = (session) => {
  const name = sessionName(session);
  const input = {
    "data-project": session.project_id,
    "data-session": session.id,
    "data-title": name,
    "data-stay": "yes",
  };
  return h(
    "details",
    { class: "menu" },
    h("summary", { "aria-label": `Actions for ${name}`, title: "Actions" }, "⋯"),
    h(
      "div",
      { class: "menu-items" },
      isLive(session.status) && button("stop-session", "Stop", input),
      ["stopped", "failed"].includes(session.status) && button("restart-session", "Restart", input),
      button("rename-session", "Rename", { ...input, "data-name": session.name }),
      button("delete-session", "Delete", { ...input, class: "danger" }),
    ),
  );
};

/** A run that becomes a session when a slot is free. @param {string} projectId @param {Fire} run */
const waitingRun = (projectId, run) =>
  h(
    "li",
    { class: "row", "data-key": run.id },
    h(
      "span",
      { class: "row-main" },
      h("a", { class: "cover", href: fireLink(projectId, run.id) }, run.trigger_slug ?? "Session"),
      h("span", { class: "quiet" }, "Waits for a free session of the account."),
    ),
    sessionBadge({ activity: "queued", archived: false }),
    h("span", { class: "row-side" }, time(run.received_at)),
  );

/** How long it ran, or has been running. @param {Session} session */
const length = (session) => {
  if (session.running_at === null) return null;
  const stillRuns = isLive(session.status);
  const end = stillRuns ? now() : Date.parse(session.stopped_at ?? session.failure?.at ?? session.running_at);
  const lasted = duration(end - Date.parse(session.running_at));
  return h("span", { class: "quiet" }, stillRuns ? `for ${lasted}` : `ran ${lasted}`);
};
