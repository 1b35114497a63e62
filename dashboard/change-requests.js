/** Change requests: a project's list, and a single one with its diff and its actions. */
import { getJson, getJsonOrNull, getText } from "./api.js";
import { changesIn, commitRows, diffView, followDiffKeys, listed } from "./diff-view.js";
import { h, outside } from "./dom.js";
import {
  badge,
  button,
  callout,
  code,
  commandBlock,
  commandLine,
  empty,
  facts,
  projectLink,
  prose,
  time,
  trail,
} from "./parts.js";
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
      ? empty(
          "No change requests yet.",
          "Open one from a session that has pushed commits. ",
          h("a", { href: projectLink(project.id) }, "Show the sessions"),
        )
      : changeRows(project.id, changes),
    more && h("p", { class: "quiet" }, "Only the newest 200 change requests are shown."),
  ],
};

/** @typedef {{project: Project, change: ChangeRequestDetail, diff: string, session: import("./wire.d.ts").Session | null}} ChangePage */

export const changeRequest = {
  /** @param {string[]} params @returns {Promise<ChangePage>} */
  load: async ([id = "", number = ""]) => {
    const path = `${projectPath(id)}/change-requests/${number}`;
    const [project, change, diff] = await Promise.all([
      getJson(projectPath(id)),
      getJson(path),
      getText(`${path}/diff`),
    ]);
    const session =
      change.session_id && (await getJsonOrNull(`${projectPath(id)}/sessions/${change.session_id}`));
    return { project, change, diff, session };
  },

  /** @param {string[]} _params @param {() => void} changed */
  follow: (_params, changed) => ({ end: followDiffKeys(changed) }),

  /** @param {ChangePage} data */
  title: ({ change }) => `#${change.number} ${change.title}`,

  /** @param {ChangePage} data */
  view: ({ project, change, diff, session }) => [
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
    change.status === "open" && !change.mergeable && conflicts(project, change),
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
          (session
            ? h("a", { href: projectLink(project.id, `/sessions/${change.session_id}`) }, "Show the session")
            : "The session was deleted."),
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
    change.description ? h("p", { class: "text" }, prose(change.description)) : null,
    h(
      "section",
      { "data-key": "commits" },
      h("h2", {}, listed("Commits", change.commits.length, change.commits_total)),
      commitRows(change.commits),
    ),
    h(
      "section",
      { "data-key": "diff" },
      h("h2", {}, changesIn(change.files_changed_total)),
      diffView(diff, { keys: true }),
    ),
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

/** As many paths as a page shows. The API has them all. */
const CONFLICTS_SHOWN = 50;

/** @param {Project} project @param {ChangeRequestDetail} change */
const conflicts = (project, { base_ref: base, head_ref: head, conflicts: paths, session_id: session }) => {
  const told = paths.length === 0 ? "" : ` in ${paths.slice(0, 5).join(", ")}`;
  return callout(
    "warn",
    h("strong", {}, "This change request cannot be merged."),
    h(
      "p",
      {},
      paths.length === 0
        ? ["The branch and ", code(base), " have no common history."]
        : ["The branch and ", code(base), " both changed these files:"],
    ),
    paths.length > 0 &&
      h(
        "ul",
        { class: "dots" },
        paths.slice(0, CONFLICTS_SHOWN).map((path) => h("li", { "data-key": path }, code(path))),
        paths.length > CONFLICTS_SHOWN && h("li", {}, `and ${paths.length - CONFLICTS_SHOWN} more`),
      ),
    paths.length > 0 && [
      h(
        "p",
        {},
        session === null
          ? ["Merge ", code(base), " into the branch, resolve the conflicts and push:"]
          : [
              "Ask the agent in ",
              h("a", { href: projectLink(project.id, `/sessions/${session}`) }, "its session"),
              ":",
            ],
      ),
      session !== null &&
        h(
          "p",
          {},
          commandLine(`Merge origin/${base} into your branch, resolve the conflicts${told}, and push.`),
        ),
      session !== null && h("p", {}, "Or do it in a clone of the repository:"),
      commandBlock(mergeLines(base, head), "the commands"),
    ],
  );
};

/** Names of branches may hold what a shell obeys. @param {string} name */
const word = (name) => (/^[\w./-]+$/.test(name) ? name : `'${name.replaceAll("'", String.raw`'\''`)}'`);

/** @param {string} base @param {string} head */
const mergeLines = (base, head) =>
  [
    "git fetch origin",
    `git switch ${word(head)}`,
    `git merge ${word(`origin/${base}`)}`,
    "# resolve the conflicts in the files above, then:",
    "git commit --all --no-edit",
    `git push origin ${word(head)}`,
  ].join("\n");
