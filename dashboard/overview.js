/** The first page: what waits for a person or for a slot, and the account's projects. */
import { getJson } from "./api.js";
import { notificationState, readWaiting } from "./attention.js";
import { h } from "./dom.js";
import { counted } from "./format.js";
import { button, callout, empty, projectLink, prose, tag, time } from "./parts.js";
import { repositoryName } from "./project.js";
import { row } from "./session-list.js";

/** @typedef {import("./wire.d.ts").Project} Project */
/** @typedef {import("./wire.d.ts").Me} Me */

/** @typedef {{projects: Project[], more: boolean, asking: import("./wire.d.ts").Session[]}} Overview asking: sessions that wait for a person */

export const overview = {
  /** @returns {Promise<Overview>} */
  load: async () => {
    const [{ projects, next_cursor }, asking] = await Promise.all([
      getJson("/v1/projects?limit=200"),
      readWaiting(),
    ]);
    return { projects, more: next_cursor !== null, asking };
  },

  title: () => "Projects",

  /** @param {Overview} data @param {Me | null} me */
  view: ({ projects, more, asking }, me) => [
    asking.length > 0 && askingView(asking, projects),
    h(
      "header",
      { class: "head with-action", "data-key": "heading" },
      h("h1", {}, "Projects"),
      projects.length > 0 && h("a", { class: "button primary", href: "#/new" }, "New project"),
    ),
    me !== null && me.account.queued_fires > 0 && waiting(me.account),
    projects.length === 0
      ? empty(
          "No projects yet.",
          "A project has one repository. Agents work on branches of it.",
          h(
            "span",
            { class: "empty-action" },
            h("a", { class: "button primary", href: "#/new" }, "Connect a repository"),
          ),
        )
      : h("ul", { class: "cards", "data-key": "projects" }, projects.map(card)),
    more && h("p", { class: "quiet" }, "Only the newest 200 projects are shown."),
  ],
};

/** @param {Overview["asking"]} asking @param {Project[]} projects */
const askingView = (asking, projects) =>
  h(
    "section",
    { class: "asking", "data-key": "asking", id: "asking" },
    h(
      "header",
      { class: "head with-action" },
      h("h2", {}, asking.length === 1 ? "1 session waits for you" : `${asking.length} sessions wait for you`),
      notificationButton(),
    ),
    h(
      "ul",
      { class: "rows" },
      asking.map((session) =>
        row(session, projects.find(({ id }) => id === session.project_id)?.name ?? "Another project"),
      ),
    ),
  );

/** The browser asks only after a click. */
const notificationButton = () => {
  const state = notificationState();
  if (state === "off") return button("allow-notifications", "Notify me", { class: "plain" });
  if (state === "on") return button("stop-notifications", "Stop notifications", { class: "plain" });
  return state === "denied" && h("span", { class: "quiet" }, "This browser blocks notifications.");
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
      " · created ",
      time(project.created_at),
    ),
    h(
      "p",
      { class: "tags" },
      project.status === "archived" && tag("archived"),
      project.triggers_paused && tag("triggers paused", "warn"),
    ),
    project.manifest.error && callout("bad", prose(project.manifest.error)),
  );

/** @param {Me["account"]} account */
const waiting = ({ queued_fires: count, active_sessions: active, session_cap: cap }) =>
  h(
    "div",
    { class: "callout", "data-tone": "warn", "data-key": "waiting" },
    h("strong", {}, `${counted(count, "run")} ${count === 1 ? "waits" : "wait"} for a free session.`),
    active >= cap && ` All ${counted(cap, "session")} of the account are in use.`,
    " ",
    h("a", { href: "#/queue" }, "Show the queue"),
  );

/**
 * The header's text about the account.
 *
 * @param {Me} me
 * @param {boolean | null} live
 * @param {number} asking how many sessions wait for a person
 */
export const accountView = ({ user, account }, live, asking) => [
  asking > 0 &&
    h(
      "a",
      { class: "asks", href: "#/", "data-key": "asks" },
      asking === 1 ? "1 needs your answer" : `${asking} need your answer`,
    ),
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
    h(
      "span",
      {},
      `${account.active_sessions} of ${counted(account.session_cap, "session")}, `,
      h(
        "a",
        { href: "#/queue", title: "Runs of triggers that wait for a free session" },
        `${counted(account.queued_fires, "run")} queued`,
      ),
    ),
  ),
  account.operator === true && h("a", { href: "#/operator", "data-key": "operator" }, "Operator"),
  h("a", { class: "who", href: "#/account" }, user.name),
  h("button", { type: "button", class: "plain sign-out", "data-action": "sign-out" }, "Sign out"),
];
