/** A project's settings: its name and default branch, its members, its triggers, its repository's credential, and its archive. */
import { getJson, getJsonOrNull, patch, put } from "./api.js";
import { h } from "./dom.js";
import { counted, size } from "./format.js";
import { formView, given } from "./forms.js";
import { badge, button, code, commandLine, facts, idTail, projectLink, prose, time } from "./parts.js";
import { actions, forms as memberForms, loadMembers, membersView } from "./members.js";
import { appFields } from "./new-project.js";
import { projectHead, projectPath, repositoryName } from "./project.js";
import { checkAgain, checkView } from "./repository-check.js";

/** @typedef {import("./wire.d.ts").Project} Project */
/** @typedef {import("./wire.d.ts").Saves} Saves */
/** @typedef {{project: Project, gitUrl: string | null, members: import("./members.js").Members, saves: Saves | null}} SettingsPage gitUrl, saves: null while the repository, or the node that has the saves, cannot be reached */

const settings = {
  /** @param {string[]} params @returns {Promise<SettingsPage>} */
  load: async ([id = ""]) => {
    const [project, setup, members, sizes] = await Promise.all([
      getJson(projectPath(id)),
      // The repository's server may be away.
      getJsonOrNull(`${projectPath(id)}/setup`, [403, 404, 409, 503]),
      loadMembers(id),
      getJsonOrNull(`${projectPath(id)}/saves`, [503]),
    ]);
    return { project, gitUrl: setup?.repository.url ?? null, members, saves: sizes };
  },

  /** @param {{project: Project}} data */
  title: ({ project }) => `Settings of ${project.name}`,

  /** @param {SettingsPage} data @param {import("./wire.d.ts").Me | null} me @param {import("./repository-check.js").Checking | null} live */
  view: ({ project, gitUrl, members, saves }, me, live) => [
    ...projectHead(project, "/settings"),
    section(
      "General",
      formView({
        action: "save-project",
        submit: "Save",
        sending: "Saving…",
        input: { project: project.id, name: project.name, branch: project.default_branch },
        fields: [
          { name: "name", label: "Name", value: project.name, required: true },
          {
            name: "default_branch",
            label: "Default branch",
            hint: "An existing branch. Sessions start from it, change requests merge into it, and its `platform.toml` has the triggers.",
            value: project.default_branch,
            required: true,
            mono: true,
          },
        ],
      }),
    ),
    section("Members", ...membersView(project, members, me)),
    section("Repository", ...repositoryPart(project, gitUrl, live)),
    section("Saved work", ...savesPart(project, saves)),
    ...elsewhere(project),
    section(
      "Triggers",
      h(
        "p",
        {},
        project.status === "archived"
          ? "The project is archived, so its triggers do not fire."
          : project.triggers_paused
            ? "All triggers are paused. Webhook deliveries get a 404 response, and schedules do not run."
            : "The triggers run. A pause stops all of them at once; waiting runs stay in the queue.",
      ),
      h("p", { class: "actions" }, pauseButton(project)),
    ),
    section(
      project.status === "archived" ? "Archived" : "Archive",
      h(
        "p",
        {},
        project.status === "archived"
          ? "The project is archived: it starts no sessions."
          : "An archived project starts no sessions. Its repository, its sessions and its change requests stay. You can reactivate it.",
      ),
      h("p", { class: "actions" }, archiveButton(project)),
    ),
  ],
};

/** How many sessions are listed. The API has them all. */
const SAVES_SHOWN = 10;

/** @param {Project} project @param {Saves | null} saves */
const savesPart = (project, saves) => {
  if (saves === null) return [h("p", {}, "The node that has the saved work cannot be reached now.")];
  const { sessions, bytes: total, away } = saves;
  const missing = away.map((node) => h("p", {}, `Not counted: node ${node} cannot be reached now.`));
  if (sessions.length === 0) return [h("p", {}, "No session has saved work."), ...missing];
  return [
    ...missing,
    h(
      "p",
      {},
      `The unpushed work of ${counted(sessions.length, "session")} takes ${size(total)}. Deleting a session deletes its saved work.`,
    ),
    h(
      "ul",
      { class: "rows" },
      sessions
        .slice(0, SAVES_SHOWN)
        .map(({ id, name, status, bytes }) =>
          h(
            "li",
            { class: "row", "data-key": id },
            h(
              "span",
              { class: "row-main" },
              h(
                "a",
                { class: "cover", href: projectLink(project.id, `/sessions/${id}`) },
                ...(name === null ? ["Session ", idTail(id)] : [name]),
              ),
            ),
            badge(status),
            h("span", { class: "row-side" }, size(bytes)),
          ),
        ),
    ),
    sessions.length > SAVES_SHOWN &&
      h("p", { class: "quiet" }, prose(`The ${SAVES_SHOWN} largest. \`platform sessions saves\` lists all.`)),
  ];
};

/** Links to further pages about the project. @param {Project} project */
const elsewhere = (project) => [
  section(
    "Connectors",
    h(
      "p",
      {},
      h("a", { href: projectLink(project.id, "/connectors") }, "Connectors"),
      " let agents use the tools of other servers, with credentials that agents never see.",
    ),
  ),
  section(
    "Notifications",
    h(
      "p",
      {},
      h("a", { href: projectLink(project.id, "/notifications") }, "Outbound webhooks"),
      " tell Slack, Discord or your own systems when a session waits, a run fails, or a change request is opened.",
    ),
  ),
  section(
    "Audit",
    h(
      "p",
      {},
      h("a", { href: projectLink(project.id, "/audit") }, "The audit record"),
      " says who did what in this project.",
    ),
  ),
];

/** @param {string} title @param {...import("./dom.js").Child} content */
const section = (title, ...content) => h("section", { "data-key": title }, h("h2", {}, title), content);

/** @param {Project} project */
const pauseButton = ({ id, triggers_paused: paused }) =>
  button(
    paused ? "resume-triggers" : "pause-triggers",
    paused ? "Resume all triggers" : "Pause all triggers",
    {
      "data-project": id,
    },
  );

/** @param {Project} project */
const archiveButton = ({ id, name, status }) =>
  status === "archived"
    ? button("reactivate-project", "Reactivate the project", { "data-project": id, "data-title": name })
    : button("archive-project", "Archive the project", { "data-project": id, "data-title": name });

/** @param {Project} project @param {string | null} gitUrl @param {import("./repository-check.js").Checking | null} live @returns {import("./dom.js").Child[]} */
const repositoryPart = (project, gitUrl, live) => [
  facts([
    ["Repository", repositoryName(project)],
    ["Git address here", gitUrl && commandLine(gitUrl)],
    ["Project id", commandLine(project.id)],
    ["Created", time(project.created_at)],
    [
      "Last read",
      project.manifest.synced_at &&
        h(
          "span",
          {},
          time(project.manifest.synced_at),
          " ",
          code((project.manifest.commit ?? "").slice(0, 10)),
        ),
    ],
  ]),
  h(
    "p",
    { class: "actions" },
    button("sync-project", "Read platform.toml now", { "data-project": project.id }),
  ),
  project.repository.kind !== "hosted" &&
    checkView(live, { heading: "h3", before: "The connection is checked.", projectId: project.id }),
  project.repository.kind !== "hosted" &&
    h(
      "details",
      { class: "group", "data-key": "credential" },
      h("summary", {}, "Replace the credential"),
      h(
        "p",
        { class: "quiet" },
        "The service tries the new credential first. If the server refuses it, the old one stays.",
      ),
      formView({
        action: "replace-credential",
        submit: "Use this credential",
        sending: "Trying the credential…",
        input: { project: project.id },
        fields: project.repository.kind === "github" ? GITHUB_CREDENTIAL : GIT_CREDENTIAL,
      }),
    ),
];

/** @type {import("./forms.js").FieldView[]} */
const GIT_CREDENTIAL = [
  { name: "username", label: "User name", hint: "For an `https://` address." },
  { name: "password", label: "Password or access token", type: "password" },
  { name: "ssh_private_key", label: "Private key", hint: "For an `ssh://` address.", lines: 3, mono: true },
  { name: "known_hosts", label: "The server's line of known_hosts", lines: 2, mono: true },
];

/** @type {import("./forms.js").FormView["fields"]} */
const GITHUB_CREDENTIAL = [
  {
    name: "token",
    label: "Access token",
    hint: "A fine-grained token for this repository, with read and write access to Contents, and to Pull requests if the project opens them.",
    type: "password",
  },
  { group: "Use a GitHub App instead of a token", fields: appFields("") },
];

/** @param {Record<string, string>} typed */
const credentialOf = ({ app_id, installation_id, private_key, ...rest }) => {
  const app = given({ app_id, installation_id, private_key });
  return { ...given(rest), ...(Object.keys(app).length > 0 && { app }) };
};

/** @type {Record<string, import("./forms.js").Submit>} */
export const forms = {
  ...memberForms,

  "save-project": async ({ name = "", default_branch = "" }, input, page) => {
    const changed = given({
      ...(name !== input["name"] && { name }),
      ...(default_branch !== input["branch"] && { default_branch }),
    });
    if (Object.keys(changed).length > 0) await patch(projectPath(input["project"] ?? ""), changed);
    page.notice("The project is saved.");
    page.refresh();
  },

  "replace-credential": async (typed, { project = "" }, page) => {
    await put(`${projectPath(project)}/repository/credential`, credentialOf(typed));
    page.notice("The repository's server accepted the new credential.");
    checkAgain();
  },
};

export { actions };
export const pages = { settings };
