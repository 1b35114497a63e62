/** Change requests: a project's list, and a single one with its diff and its actions. */
import { getJson, getText } from "./api.js";
import { changesIn, commitRows, diffView, listed } from "./diff-view.js";
import { h, outside } from "./dom.js";
import { badge, button, callout, code, empty, facts, projectLink, time, trail } from "./parts.js";
import { projectHead, projectPath } from "./project.js";
import { changeRows, shortRef } from "./session.js";

/** @typedef {import("./wire.d.ts").Project} Project */
/** @typedef {import("./wire.d.ts").ChangeRequest} ChangeRequest */
/** @typedef {import("./wire.d.ts").ChangeRequestDetail} ChangeRequestDetail */

/** @typedef {{project: Project, changes: ChangeRequest[], more: boolean}} ChangesPage */

export const changeRequests = {
  /** @param {string[]} params @returns {Promise<ChangesPage>} */
  load: async ([id = ""]) => {
    const [project, { change_requests, next_cursor }] = await Promise.all([
      getJson(projectPath(id)),
      getJson(`${projectPath(id)}/change-requests?limit=200`),
    ]);
    return { project, changes: change_requests, more: next_cursor !== null };
  },

  /** @param {ChangesPage} data */
  title: ({ project }) => `Change requests of ${project.name}`,

  /** @param {ChangesPage} data */
  view: ({ project, changes, more }) => [
    ...projectHead(project, "/change-requests"),
    changes.length === 0
      ? empty("No change requests yet.", "Open one from a session that has pushed commits.")
      : changeRows(project.id, changes),
    more && h("p", { class: "quiet" }, "Only the newest 200 change requests are shown."),
  ],
};

/** @typedef {{project: Project, change: ChangeRequestDetail, diff: string}} ChangePage */

export const changeRequest = {
  /** @param {string[]} params @returns {Promise<ChangePage>} */
  load: async ([id = "", number = ""]) => {
    const path = `${projectPath(id)}/change-requests/${number}`;
    const [project, change, diff] = await Promise.all([
      getJson(projectPath(id)),
      getJson(path),
      getText(`${path}/diff`),
    ]);
    return { project, change, diff };
  },

  /** @param {ChangePage} data */
  title: ({ change }) => `#${change.number} ${change.title}`,

  /** @param {ChangePage} data */
  view: ({ project, change, diff }) => [
    trail([
      ["Projects", "#/"],
      [project.name, projectLink(project.id)],
      ["Change requests", projectLink(project.id, "/change-requests")],
      [`#${change.number}`, null],
    ]),
    h(
      "header",
      { class: "head", "data-key": "head" },
      h("h1", {}, change.title, " ", badge(change.status)),
      h("p", { class: "actions" }, actions(project, change)),
    ),
    change.status === "open" && !change.mergeable && conflicts(change),
    facts([
      ["From", shortRef(change.head_ref)],
      ["Into", code(change.base_ref)],
      ["Opened", time(change.created_at)],
      ["Closed", change.status === "closed" && time(change.updated_at)],
      [
        "Merged",
        change.merged_at &&
          h("span", {}, time(change.merged_at), " as ", code(shortCommit(change.merged_commit))),
      ],
      [
        "Pull request",
        change.pull_request && outside(change.pull_request.url, `#${change.pull_request.number}`),
      ],
      [
        "Session",
        change.session_id &&
          h("a", { href: projectLink(project.id, `/sessions/${change.session_id}`) }, "Show the session"),
      ],
      [
        "State",
        h(
          "a",
          { href: projectLink(project.id, `/change-requests/${change.number}/state`) },
          "Why this state?",
        ),
      ],
    ]),
    change.description ? h("p", { class: "text" }, change.description) : null,
    h(
      "section",
      { "data-key": "commits" },
      h("h2", {}, listed("Commits", change.commits.length, change.commits_total)),
      commitRows(change.commits),
    ),
    h("section", { "data-key": "diff" }, h("h2", {}, changesIn(change.files_changed_total)), diffView(diff)),
  ],
};

/** An ended one can be neither merged nor closed. @param {Project} project @param {ChangeRequestDetail} change */
const actions = (project, change) => {
  if (change.status !== "open") return [];
  const named = { "data-project": project.id, "data-number": String(change.number) };
  return [
    change.mergeable &&
      button("merge", "Merge", { ...named, class: "primary", "data-base": change.base_ref }),
    button("close-change-request", "Close", named),
  ];
};

/** @param {string | null} sha */
const shortCommit = (sha) => (sha ?? "").slice(0, 10);

/** @param {ChangeRequestDetail} change */
const conflicts = (change) =>
  callout(
    "warn",
    h("strong", {}, "This change request cannot be merged."),
    h(
      "p",
      { class: "text" },
      "Merge ",
      code(change.base_ref),
      " into the branch, resolve the conflicts and push.",
    ),
    change.conflicts.length > 0 &&
      h(
        "ul",
        {},
        change.conflicts.map((path) => h("li", {}, code(path))),
      ),
  );
