/** Change requests: a project's list, and a single one with its diff and its actions. */
import { getJson, getJsonOrNull, getText } from "./api.js";
import { namesOf } from "./connector-access.js";
import { planFiles, sourceOf } from "./diff-files.js";
import { changesIn, commitRows, diffView, followDiffKeys, listed } from "./diff-view.js";
import { h, outside } from "./dom.js";
import { counted } from "./format.js";
import { markdown } from "./markdown-view.js";
import {
  badge,
  button,
  callout,
  code,
  commandBlock,
  commandLine,
  empty,
  facts,
  idTail,
  projectLink,
  prose,
  time,
  trail,
} from "./parts.js";
import { isLive, projectHead, projectPath } from "./project.js";
import { followLines, hasComments, reviewView } from "./review.js";
import { lackedRole } from "./roles.js";
import { lackedApprovals, talkView, verdictsText } from "./talk.js";

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

/**
 * @typedef {object} ChangePage
 * @property {Project} project
 * @property {ChangeRequestDetail} change
 * @property {string} diff
 * @property {import("./wire.d.ts").Session | null} session null: it was deleted, or a person pushed the branch
 * @property {Map<string, string>} names of the project's members, by id
 * @property {import("./wire.d.ts").Remark[]} remarks
 */

export const changeRequest = {
  /** @param {string[]} params @returns {Promise<ChangePage>} */
  load: async ([id = "", number = ""]) => {
    const path = `${projectPath(id)}/change-requests/${number}`;
    const [project, change, diff, { members }, { remarks }] = await Promise.all([
      getJson(projectPath(id)),
      getJson(path),
      getText(`${path}/diff`),
      // Without the names, the page is still of use.
      getJson(`${projectPath(id)}/members`).catch(() => ({ members: [] })),
      getJson(`${path}/remarks?limit=200`),
    ]);
    const session =
      change.session_id && (await getJsonOrNull(`${projectPath(id)}/sessions/${change.session_id}`));
    return { project, change, diff, session, names: namesOf(members), remarks };
  },

  /** @param {string[]} _params @param {() => void} changed */
  follow: (_params, changed) => {
    const ends = [followDiffKeys(changed), followLines(changed)];
    return {
      end: () => {
        for (const end of ends) end();
      },
    };
  },

  /** @param {ChangePage} data */
  title: ({ change }) => `#${change.number} ${change.title}`,

  /** @param {ChangePage} data */
  view: ({ project, change, diff, session, names, remarks }) => [
    trail([
      ["Projects", "#/projects"],
      [project.name, projectLink(project.id)],
      ["Change requests", projectLink(project.id, "/change-requests")],
      [`#${change.number}`, null],
    ]),
    h(
      "header",
      { class: "head", "data-key": "head" },
      h("h1", {}, change.title, " ", badge(change.status)),
      h("p", { class: "actions" }, actions(project, change, hiddenIn(project, change, diff))),
    ),
    change.status === "open" && !change.mergeable && conflicts(project, change, session),
    mistakes(change),
    facts([
      [
        "State",
        h(
          "span",
          {},
          `${change.status} `,
          h(
            "a",
            { href: projectLink(project.id, `/change-requests/${change.number}/state`) },
            "Why this state?",
          ),
        ),
      ],
      ["From", shortRef(change.head_ref)],
      ["Into", code(change.base_ref)],
      ["Opened", h("span", {}, time(change.created_at), by(names, change.created_by))],
      ["Closed", change.status === "closed" && time(change.updated_at)],
      [
        "Merged",
        change.merged_at &&
          h(
            "span",
            {},
            time(change.merged_at),
            " as ",
            code(shortCommit(change.merged_commit)),
            by(names, change.merged_by),
          ),
      ],
      ["Reviews", verdictsText(change)],
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
    ]),
    change.description ? markdown(change.description) : null,
    talkView({ project, change, remarks }),
    h(
      "section",
      { "data-key": "commits" },
      h("h2", {}, listed("Commits", change.commits.length, change.commits_total)),
      commitRows(change.commits),
    ),
    diffSection({ project, change, diff, session }),
  ],
};

/** @param {Pick<ChangePage, "project" | "change" | "diff" | "session">} page */
const diffSection = ({ project, change, diff, session }) => {
  // The agent's own changes can be commented on, while they are not merged.
  const author = lackedRole("ask-agent") === null ? session : null;
  const reviewed = change.status === "open" ? author : null;
  return h(
    "section",
    { "data-key": "diff" },
    h("h2", {}, changesIn(change.files_changed_total)),
    // Comments that were not sent before the merge are still there to be sent.
    author !== null &&
      (reviewed !== null || hasComments(author.id)) &&
      reviewView({ project: project.id, session: author.id, isLive: isLive(author.status) }),
    diffView(diff, {
      source: sourceOf(diffUrl(project, change), change),
      keys: true,
      review: reviewed?.id ?? null,
    }),
  );
};

/** @param {Project} project @param {ChangeRequestDetail} change */
const diffUrl = ({ id }, { number }) => `${projectPath(id)}/change-requests/${number}/diff`;

/** @param {Map<string, string>} names @param {string | null} id a person who is no member any more has no name here */
const by = (names, id) => {
  const name = names.get(id ?? "");
  return name !== undefined && ` by ${name}`;
};

/** How many files' lines the reader has not seen, as a sentence. @param {Project} project @param {ChangeRequestDetail} change @param {string} diff */
const hiddenIn = (project, change, diff) => {
  const { hidden } = planFiles(diff, sourceOf(diffUrl(project, change), change));
  return hidden === 0 ? "" : `${counted(hidden, "file")} ${hidden === 1 ? "is" : "are"} not shown.`;
};

/** @param {ChangeRequestDetail["warnings"][number]} warning */
const placeOf = ({ file, line }) => (line === null ? file : `${file}, line ${line}`);

/** What a merge would break. It stays possible: a later commit may correct it. @param {ChangeRequestDetail} change */
const mistakes = ({ warnings, base_ref: base }) =>
  warnings.length > 0 &&
  callout(
    "warn",
    h("strong", {}, "A merge brings mistakes into ", code(base), "."),
    h(
      "ul",
      { class: "dots" },
      warnings.map((warning) =>
        h(
          "li",
          { "data-key": JSON.stringify(warning) },
          code(placeOf(warning)),
          ": ",
          prose(warning.message),
        ),
      ),
    ),
  );

/** An ended one can be neither merged nor closed. @param {Project} project @param {ChangeRequestDetail} change @param {string} hidden */
const actions = (project, change, hidden) => {
  if (change.status !== "open") return [];
  const named = { "data-project": project.id, "data-number": String(change.number) };
  const warned = change.warnings.map((one) => `${placeOf(one)}: ${one.message}`).join("\n");
  return [
    change.mergeable && hidden !== "" && h("span", { class: "quiet", "data-key": "hidden" }, hidden),
    change.mergeable &&
      lackedApprovals(change) !== null &&
      h("span", { class: "quiet" }, lackedApprovals(change)),
    change.mergeable &&
      lackedApprovals(change) === null &&
      button("merge", "Merge", {
        ...named,
        class: "primary",
        "data-base": change.base_ref,
        "data-hidden": hidden,
        "data-warned": warned,
      }),
    change.mergeable &&
      lackedApprovals(change) === null &&
      button("merge", "Squash and merge", {
        ...named,
        "data-key": "squash",
        "data-squash": "true",
        "data-base": change.base_ref,
        "data-hidden": hidden,
        "data-warned": warned,
      }),
    button("close-change-request", "Close", named),
  ];
};

/** @param {string | null} sha */
const shortCommit = (sha) => (sha ?? "").slice(0, 10);

/** As many paths as a page shows. The API has them all. */
const CONFLICTS_SHOWN = 50;

/** @param {Project} project @param {ChangeRequestDetail} change @param {ChangePage["session"]} session */
const conflicts = (project, { base_ref: base, head_ref: head, conflicts: paths }, session) => {
  const told = paths.length === 0 ? "" : ` in ${paths.slice(0, 5).join(", ")}`;
  const asking = `Run git fetch origin, merge origin/${base} into your branch, resolve the conflicts${told}, commit, and push.`;
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
              h("a", { href: projectLink(project.id, `/sessions/${session.id}`) }, "its session"),
              ":",
            ],
      ),
      session !== null && h("p", {}, commandLine(asking), " ", askButton(project, session, asking)),
      session !== null && h("p", {}, "Or do it in a clone of the repository:"),
      commandBlock(mergeLines(base, head), "the commands"),
    ],
  );
};

/** @param {Project} project @param {import("./wire.d.ts").Session} session @param {string} text */
const askButton = (project, { id, status }, text) =>
  button("ask-agent", isLive(status) ? "Ask the agent" : "Restart and ask", {
    "data-project": project.id,
    "data-session": id,
    "data-text": text,
  });

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

/** @param {string} projectId @param {readonly ChangeRequest[]} changes */
export const changeRows = (projectId, changes) =>
  h(
    "ul",
    { class: "rows" },
    changes.map((change) =>
      h(
        "li",
        { class: "row", "data-key": String(change.number) },
        h(
          "span",
          { class: "row-main" },
          h(
            "a",
            { class: "cover", href: projectLink(projectId, `/change-requests/${change.number}`) },
            `#${change.number} ${change.title}`,
          ),
          h("span", { class: "quiet" }, shortRef(change.head_ref), " → ", change.base_ref),
        ),
        badge(change.status),
        h("span", { class: "row-side" }, time(change.created_at)),
      ),
    ),
  );

/** Session branches are named by a UUID. @param {string} ref */
const shortRef = (ref) => (/^[0-9a-f-]{36}$/.test(ref) ? idTail(ref) : code(ref));
