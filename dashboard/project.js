/** A project: its head with tabs, and the tab of its sessions. */
import { getJson, getList } from "./api.js";
import { h } from "./dom.js";
import { duration, now } from "./format.js";
import { repositoryName } from "./overview.js";
import {
  badge,
  button,
  callout,
  code,
  empty,
  idTail,
  pick,
  projectLink,
  prose,
  tag,
  time,
  trail,
} from "./parts.js";
import { TURN_WORDS } from "./turn.js";

/** @typedef {import("./wire.d.ts").Project} Project */
/** @typedef {import("./wire.d.ts").Session} Session */
/** @typedef {import("./dom.js").Child} Child */

const LIVE = new Set(["provisioning", "running"]);
/** @param {string} status */
export const isLive = (status) => LIVE.has(status);

/** @param {string} id */
export const projectPath = (id) => `/v1/projects/${encodeURIComponent(id)}`;

/** How much of a prompt stands for a session that has no name. */
const NAME_CHARS = 60;

/** @param {Session} session */
export const sessionName = (session) =>
  session.name ?? session.trigger_slug ?? (firstLine(session.initial_prompt ?? "") || "Session");

/** @param {string} text */
const firstLine = (text) => {
  const line = text.trim().split("\n", 1)[0] ?? "";
  const points = [...line];
  return points.length > NAME_CHARS ? `${points.slice(0, NAME_CHARS).join("").trimEnd()}…` : line;
};

/** @param {Project} project @param {"" | "/triggers" | "/fires" | "/webhook-refusals" | "/change-requests" | "/usage" | "/secrets" | "/settings" | null} tab null: the page belongs to no tab @returns {Child[]} */
export const projectHead = (project, tab) => [
  trail([
    ["Projects", "#/"],
    [project.name, tab === null ? projectLink(project.id) : null],
  ]),
  h(
    "header",
    { class: "head", "data-key": "head" },
    h("h1", {}, project.name),
    h(
      "p",
      { class: "quiet" },
      repositoryName(project),
      " · default branch ",
      code(project.default_branch),
      project.status === "archived" && tag("archived"),
      project.triggers_paused && tag("triggers paused", "warn"),
    ),
    h(
      "nav",
      { class: "tabs", "aria-label": "Project" },
      tabLink(project, tab, ["", "Sessions"]),
      tabLink(project, tab, ["/triggers", "Triggers"]),
      tabLink(project, tab, ["/fires", "Runs"]),
      tabLink(project, tab, ["/webhook-refusals", "Refused deliveries"]),
      tabLink(project, tab, ["/change-requests", "Change requests"]),
      tabLink(project, tab, ["/usage", "Usage"]),
      tabLink(project, tab, ["/secrets", "Secrets"]),
      tabLink(project, tab, ["/settings", "Settings"]),
    ),
  ),
];

/** @param {Project} project @param {string | null} tab @param {[string, string]} target */
const tabLink = (project, tab, [rest, label]) =>
  h("a", { href: projectLink(project.id, rest), "aria-current": tab === rest ? "page" : null }, label);

/** @typedef {{project: Project, sessions: Session[], more: boolean, status: string}} Sessions status: the filter */

const STATUSES = ["provisioning", "running", "stopped", "failed"];

export const sessions = {
  /** @param {string[]} params @param {import("./app.js").Extent} extent @returns {Promise<Sessions>} */
  load: async ([id = ""], { pages, query }) => {
    const asked = query.get("status") ?? "";
    const status = STATUSES.includes(asked) ? asked : "";
    const filter = status === "" ? "" : `?status=${status}`;
    const [project, { items, more }] = await Promise.all([
      getJson(projectPath(id)),
      getList(`${projectPath(id)}/sessions${filter}`, "sessions", pages),
    ]);
    return { project, sessions: items, more, status };
  },

  /** @param {Sessions} data */
  title: ({ project }) => project.name,

  /** @param {Sessions} data */
  view: ({ project, sessions: list, more, status }) => [
    ...projectHead(project, ""),
    project.manifest.error &&
      callout("bad", h("strong", {}, "The manifest could not be read. "), prose(project.manifest.error)),
    (list.length > 0 || status !== "") &&
      h(
        "div",
        { class: "filters", "data-key": "filters" },
        pick({ name: "status", label: "Status", all: "all", options: STATUSES, chosen: status }),
        newSessionLink(project),
      ),
    list.length === 0
      ? noSessions(project, status)
      : h("ul", { class: "rows", "data-key": "sessions" }, list.map(row)),
    more && h("p", { class: "more" }, button("more", "Show older sessions")),
  ],
};

/** @param {Project} project */
const newSessionLink = (project) =>
  project.status === "active" &&
  h("a", { class: "button primary", href: projectLink(project.id, "/new") }, "New session");

/** @param {Project} project @param {string} status */
const noSessions = (project, status) =>
  status === ""
    ? empty(
        "No sessions yet.",
        "You or a trigger starts a session. ",
        h("a", { href: projectLink(project.id, "/setup") }, "Set up the project"),
        h("span", { class: "empty-action" }, newSessionLink(project)),
      )
    : empty("No sessions match the filter.");

/** @param {Session} session */
const row = (session) =>
  h(
    "li",
    { class: "row", "data-key": session.id },
    h(
      "span",
      { class: "row-main" },
      h(
        "a",
        { class: "cover", href: projectLink(session.project_id, `/sessions/${session.id}`) },
        sessionName(session),
      ),
      h("span", { class: "quiet" }, idTail(session.id), " · ", session.agent_name),
      session.failure && h("span", { class: "reason" }, prose(session.failure.message)),
      session.failure === null &&
        session.last_turn?.state === "failed" &&
        h("span", { class: "reason" }, prose(`Last turn failed: ${session.last_turn.error?.message ?? ""}`)),
    ),
    h(
      "span",
      { class: "states" },
      session.status === "running" && turnTag(session.turn.state),
      badge(session.status),
    ),
    h("span", { class: "row-side" }, time(session.created_at), length(session)),
  );

/** Whether the agent or the reader has to act. @param {import("./wire.d.ts").Turn["state"]} state */
const turnTag = (state) => h("span", { class: "turn-word", "data-turn": state }, TURN_WORDS[state]);

/** How long it ran, or has been running. @param {Session} session */
const length = (session) => {
  if (session.running_at === null) return null;
  const end = isLive(session.status)
    ? now()
    : Date.parse(session.stopped_at ?? session.failure?.at ?? session.running_at);
  return h("span", { class: "quiet" }, ` · ${duration(end - Date.parse(session.running_at))}`);
};
