/** The first page: how much of the account is in use, its projects, and what waits for a free slot. */
import { getJson } from "./api.js";
import { h } from "./dom.js";
import { counted } from "./format.js";
import { badge, callout, code, empty, projectLink, tag, time } from "./parts.js";

/** @typedef {import("./wire.d.ts").Project} Project */
/** @typedef {import("./wire.d.ts").QueuedFire} QueuedFire */

/** @typedef {{projects: Project[], queue: QueuedFire[], more: boolean}} Overview */

export const overview = {
  /** @returns {Promise<Overview>} */
  load: async () => {
    const [{ projects, next_cursor }, { queue }] = await Promise.all([
      getJson("/v1/projects?limit=200"),
      getJson("/v1/queue?limit=50"),
    ]);
    return { projects, queue, more: next_cursor !== null };
  },

  title: () => "Projects",

  /** @param {Overview} data */
  view: ({ projects, queue, more }) => [
    h("h1", { "data-key": "heading" }, "Projects"),
    projects.length === 0
      ? empty("There is no project yet.", "Make one with ", code("POST /v1/projects"), " or run the demo.")
      : h("ul", { class: "cards", "data-key": "projects" }, projects.map(card)),
    more && h("p", { class: "quiet" }, "Only the newest 200 are shown."),
    queue.length > 0 &&
      h("section", { "data-key": "queue" }, h("h2", {}, "Waiting for a free slot"), waiting(queue, projects)),
  ],
};

/** @param {Project} project */
const card = (project) =>
  h(
    "li",
    { class: "card", "data-key": project.id },
    h("h2", {}, h("a", { class: "cover", href: projectLink(project.id) }, project.name)),
    h(
      "p",
      { class: "quiet" },
      repositoryName(project),
      " · ",
      project.default_branch,
      " · made ",
      time(project.created_at),
    ),
    h(
      "p",
      { class: "tags" },
      project.status === "archived" && tag("archived"),
      project.triggers_paused && tag("triggers paused", "warn"),
    ),
    project.manifest.error && callout("bad", project.manifest.error),
  );

/** @param {Project} project */
export const repositoryName = ({ repository }) => {
  if (repository.kind === "github") return `${repository.owner}/${repository.name}`;
  return repository.url ?? "hosted here";
};

/** @param {QueuedFire[]} queue @param {Project[]} projects */
const waiting = (queue, projects) => {
  const names = new Map(projects.map((project) => [project.id, project.name]));
  return h(
    "ol",
    { class: "rows" },
    queue.map((fire) =>
      h(
        "li",
        { class: "row", "data-key": fire.fire_id },
        h(
          "span",
          { class: "row-main" },
          h("a", { href: projectLink(fire.project_id, "/triggers") }, fire.trigger_slug),
          h("span", { class: "quiet" }, names.get(fire.project_id) ?? fire.project_id),
        ),
        badge("queued"),
        h(
          "span",
          { class: "row-side" },
          time(fire.queued_at),
          h("span", { class: "quiet" }, " · expires ", time(fire.expires_at)),
        ),
      ),
    ),
  );
};

/** What the header says about the account. @param {import("./wire.d.ts").Me} me @param {boolean | null} live */
export const accountView = ({ user, account }, live) => [
  live !== null && h("span", { class: "live", "data-live": String(live) }, live ? "live" : "reconnecting"),
  h(
    "span",
    { class: "usage" },
    h("meter", {
      min: 0,
      max: account.session_cap,
      value: account.active_sessions,
      high: account.session_cap * 0.9,
      "aria-label": "Sessions in use",
    }),
    `${account.active_sessions} of ${counted(account.session_cap, "session")}`,
    account.queued_fires > 0 && `, ${account.queued_fires} waiting`,
  ),
  h("span", { class: "who" }, user.name),
  h("button", { type: "button", class: "plain", "data-action": "sign-out" }, "Sign out"),
];
