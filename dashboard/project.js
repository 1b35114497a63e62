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

/** @param {Session} session */
export const sessionName = (session) => session.name ?? session.trigger_slug ?? "Session";

/** @param {Project} project @param {"" | "/triggers" | "/fires" | "/webhook-refusals" | "/change-requests" | "/usage"} tab @returns {Child[]} */
export const projectHead = (project, tab) => [
  trail([
    ["Projects", "#/"],
    [project.name, null],
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
    ),
  ),
];

/** @param {Project} project @param {string} tab @param {[string, string]} target */
const tabLink = (project, tab, [rest, label]) =>
  h("a", { href: projectLink(project.id, rest), "aria-current": tab === rest ? "page" : null }, label);

/** @typedef {{project: Project, sessions: Session[], more: boolean}} Sessions */

export const sessions = {
  /** @param {string[]} params @param {import("./app.js").Extent} extent @returns {Promise<Sessions>} */
  load: async ([id = ""], { pages }) => {
    const [project, { items, more }] = await Promise.all([
      getJson(projectPath(id)),
      getList(`${projectPath(id)}/sessions`, "sessions", pages),
    ]);
    return { project, sessions: items, more };
  },

  /** @param {Sessions} data */
  title: ({ project }) => project.name,

  /** @param {Sessions} data */
  view: ({ project, sessions: list, more }) => [
    ...projectHead(project, ""),
    project.manifest.error &&
      callout("bad", h("strong", {}, "The manifest could not be read. "), prose(project.manifest.error)),
    list.length === 0
      ? empty(
          "No sessions yet.",
          "A trigger starts a session. To start one yourself, call ",
          code(`POST ${projectPath(project.id)}/sessions`),
          ". ",
          h("a", { href: projectLink(project.id, "/triggers") }, "Show the triggers"),
        )
      : h("ul", { class: "rows", "data-key": "sessions" }, list.map(row)),
    more && h("p", { class: "more" }, button("more", "Show older sessions")),
  ],
};

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
