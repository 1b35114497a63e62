/** A project: its head with tabs, and what its pages share. */
import { h } from "../elements/dom.ts";
import { moment } from "../elements/format.ts";
import { button, code, projectLink, tag, trail } from "../elements/parts.ts";
import { roleSentence } from "../frame/roles.ts";

/** @typedef {import("../wire.d.ts").Project} Project */
/** @typedef {import("../wire.d.ts").Session} Session */
/** @typedef {import("../elements/dom.ts").Child} Child */

/** @param {Project} project */
export const repositoryName = ({ repository }) => {
  if (repository.kind === "github") return `${repository.owner}/${repository.name}`;
  return repository.kind === "git" ? repository.url : "hosted by this service";
};

const LIVE = new Set(["provisioning", "running"]);
/** @param {string} status */
export const isLive = (status) => LIVE.has(status);

const ENDED = new Set(["stopped", "failed"]);
/** Whether a restart would give it a new sandbox. @param {string} status */
export const hasEnded = (status) => ENDED.has(status);

/** @param {string} id */
export const projectPath = (id) => `/v1/projects/${encodeURIComponent(id)}`;

/** How much of a prompt stands for a session that has no name. */
const NAME_CHARS = 60;

/** @param {Pick<Session, "name" | "trigger_slug" | "initial_prompt">} session */
export const sessionName = (session) =>
  session.name ?? session.trigger_slug ?? (firstLine(session.initial_prompt ?? "") || "Session");

/** @param {string} text */
const firstLine = (text) => {
  const line = text.trim().split("\n", 1)[0] ?? "";
  const points = [...line];
  return points.length > NAME_CHARS ? `${points.slice(0, NAME_CHARS).join("").trimEnd()}…` : line;
};

/** @param {Project} project @param {"" | "/triggers" | "/fires" | "/change-requests" | "/usage" | "/environment" | "/secrets" | "/settings" | null} tab null: the page belongs to no tab @returns {Child[]} */
export const projectHead = (project, tab) => [
  trail([
    ["Projects", "#/projects"],
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
      isArchived(project) && tag(project.status),
      project.triggers_paused && tag("triggers paused", "warn"),
    ),
    roleView(project.id),
    h(
      "nav",
      { class: "tabs", "aria-label": "Project" },
      tabLink(project, tab, ["", "Sessions"]),
      tabLink(project, tab, ["/triggers", "Triggers"]),
      tabLink(project, tab, ["/fires", "Runs and deliveries"]),
      tabLink(project, tab, ["/change-requests", "Change requests"]),
      tabLink(project, tab, ["/usage", "Usage"]),
      tabLink(project, tab, ["/environment", "Environment"]),
      tabLink(project, tab, ["/secrets", "Secrets"]),
      tabLink(project, tab, ["/settings", "Settings"]),
    ),
  ),
  project.status === "deleted" && deletedView(project),
  // The settings say it beside the button.
  project.status === "archived" && tab !== "/settings" && archivedView(project),
];

/** Whether the project starts no sessions. One that is deleted waits for its end in this way. @param {Project} project */
export const isArchived = ({ status }) => status !== "active";

/** @param {Project} project */
const archivedView = ({ id }) =>
  h(
    "p",
    { class: "callout", "data-key": "archived" },
    "This project is archived: it starts no sessions, and its triggers do not run. ",
    h("a", { href: projectLink(id, "/settings") }, "Reactivate it in the settings"),
  );

/** @param {Project} project */
const deletedView = ({ id, name, deletes_at }) =>
  h(
    "p",
    { class: "callout", "data-tone": "warn", "data-key": "deleted" },
    "This project is deleted. It will be gone, with everything in it, on ",
    moment(deletes_at ?? ""),
    ". ",
    button("restore-project", "Restore", { "data-project": id, "data-title": name }),
  );

/** @param {string} id */
const roleView = (id) => {
  const sentence = roleSentence(id);
  return sentence !== null && h("p", { "data-key": "role" }, sentence);
};

/** @param {Project} project @param {string | null} tab @param {[string, string]} target */
const tabLink = (project, tab, [rest, label]) =>
  h("a", { href: projectLink(project.id, rest), "aria-current": tab === rest ? "page" : null }, label);
