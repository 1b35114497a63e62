/** The first steps of a project: its code, a model, a session, and the merge of the agent's work. */
import { getJson, getJsonOrNull, put } from "../api/api.js";
import { h } from "../elements/dom.js";
import { formView } from "../elements/forms.js";
import { promptField, startSession } from "./new-session.js";
import { badge, sessionBadge, button, code, commandLine, projectLink } from "../elements/parts.js";
import { isArchived, projectHead, projectPath, sessionName } from "./project.js";
import { checkView, followConnection } from "./repository-check.js";

/** @typedef {import("../wire.d.ts").Project} Project */
/** @typedef {import("../wire.d.ts").ProjectSetup} ProjectSetup */
/** @typedef {import("../elements/dom.js").Child} Child */

/**
 * @typedef {object} SetupPage
 * @property {Project} project
 * @property {ProjectSetup | null} setup null: the repository cannot be read now
 * @property {import("../wire.d.ts").Session | null} session the newest
 * @property {import("../wire.d.ts").ChangeRequest | null} change the newest
 */

/** @typedef {"done" | "now" | "later"} StepState */

export const setup = {
  /** @param {string[]} params @returns {Promise<SetupPage>} */
  load: async ([id = ""]) => {
    const path = projectPath(id);
    const [project, found, { sessions }, { change_requests: changes }] = await Promise.all([
      getJson(path),
      getJsonOrNull(`${path}/setup`, [409, 503]),
      getJson(`${path}/sessions?limit=1`),
      getJson(`${path}/change-requests?limit=1`),
    ]);
    return { project, setup: found, session: sessions[0] ?? null, change: changes[0] ?? null };
  },

  /** No event says that somebody pushed. */
  isPolled: true,

  /** @param {SetupPage} data */
  title: ({ project }) => `Set up ${project.name}`,

  /** @param {string[]} params @param {() => void} changed */
  follow: ([id = ""], changed) => followConnection(id, changed),

  /** @param {SetupPage} page @param {unknown} _me @param {import("./repository-check.js").Checking | null} live */
  view: (page, _me, live) => [
    ...projectHead(page.project, null),
    h("h2", { "data-key": "setup" }, "Set up the project"),
    h(
      "ol",
      { class: "steps", "data-key": "steps" },
      page.setup === null ? unreadable(page.project, live) : stepsOf({ ...page, setup: page.setup }, live),
    ),
  ],
};

/** @param {Project} project @param {import("./repository-check.js").Checking | null} live */
const unreadable = (project, live) =>
  step({
    title: "Connect a repository",
    state: "now",
    content: [
      h("p", {}, "The repository cannot be read now. This page tries again by itself."),
      project.repository.kind !== "hosted" &&
        checkView(live, { heading: "h4", before: "The connection is checked.", projectId: project.id }),
      project.repository.kind !== "hosted" &&
        h(
          "p",
          {},
          h("a", { href: projectLink(project.id, "/settings") }, "Replace the credential in the settings"),
        ),
    ],
  });

/** @typedef {SetupPage & {setup: ProjectSetup}} ReadPage */

/** @param {ReadPage} page @param {import("./repository-check.js").Checking | null} live */
const stepsOf = (page, live) => {
  const { project, setup: found, session, change } = page;
  const hasModel = !found.model.required || found.model.source !== null;
  const canStart = hasModel && !isArchived(project);
  return [
    step({
      title: "Connect a repository",
      state: found.repository.empty ? "now" : "done",
      content: [
        ...(found.repository.empty ? pushSteps(found.repository) : repositoryText(found.repository)),
        project.repository.kind === "hosted"
          ? null
          : checkView(live, { heading: "h4", before: "The connection is checked.", projectId: project.id }),
      ],
    }),
    step({
      title: "Name a model",
      state: hasModel ? "done" : "now",
      content: hasModel ? [h("p", {}, modelText(found)), tryKey(project, found)] : modelForm(project, found),
    }),
    step({
      title: "Start a session",
      state: session !== null ? "done" : canStart ? "now" : "later",
      content:
        session === null
          ? firstSession(project, canStart)
          : [
              h(
                "p",
                {},
                h("a", { href: projectLink(project.id, `/sessions/${session.id}`) }, sessionName(session)),
                " ",
                sessionBadge(session),
              ),
            ],
    }),
    step({
      title: "Merge the agent's work",
      state: change?.status === "merged" ? "done" : session === null ? "later" : "now",
      content: mergeText(page),
    }),
  ];
};

/** @param {{title: string, state: StepState, content: Child[]}} step */
const step = ({ title, state, content }) =>
  h(
    "li",
    { class: "setup-step", "data-state": state, "data-key": title },
    h("h3", {}, title, state === "done" && h("span", { class: "unseen" }, " (done)")),
    h("div", { class: "setup-content" }, content),
  );

/** @param {ProjectSetup["repository"]} repository */
const pushSteps = ({ url, branch }) => {
  const command = `git push --force ${url} HEAD:${branch}`;
  return [
    h("p", {}, "The repository is empty. Push your code from a clone that you have:"),
    commandLine(command),
    h(
      "p",
      { class: "quiet" },
      "When git asks, enter any user name, and an access token as the password. ",
      button("make-git-token", "Make an access token", { class: "plain" }),
    ),
    h(
      "p",
      { class: "quiet" },
      "You can also leave the repository empty and let the first session write the code. This page notices a push by itself.",
    ),
  ];
};

/** @param {ProjectSetup["repository"]} repository */
const repositoryText = ({ branch, commit }) => [
  h("p", {}, "The branch ", code(branch), " is at ", code((commit ?? "").slice(0, 10)), "."),
];

/** @param {ProjectSetup} setup @returns {Child[]} */
const modelText = ({ model }) => {
  if (model.source === "repository") return ["The repository's configuration names the model."];
  if (model.model === null) return ["The agent runtime of this installation needs no model."];
  const by = {
    gateway: "The operator's gateway provides it.",
    account: "A model provider of the account provides it. The key stays outside of sandboxes.",
    secret: "Its key is a secret of the project.",
  }[model.source ?? "secret"];
  return ["Sessions use ", code(model.model), ". ", by];
};

/** @param {Project} project @param {ProjectSetup} setup */
const tryKey = (project, { model, providers }) => {
  const provider = providers.find(({ id }) => model.model?.startsWith(`${id}/`));
  return model.source === "secret" && provider !== undefined
    ? h(
        "p",
        {},
        button("try-key", "Try the key", {
          class: "plain",
          "data-project": project.id,
          "data-secrets": provider.secrets.join(" "),
        }),
      )
    : null;
};

/** @param {Project} project @param {ProjectSetup} setup */
const modelForm = (project, { providers }) => [
  h(
    "p",
    {},
    "The agent needs a language model. An owner of the account can add a ",
    h("a", { href: "#/models" }, "provider of models"),
    " for all projects: its key stays outside of sandboxes. A key that is saved here becomes a secret of the project, which every session's agent gets.",
  ),
  formView({
    action: "set-model-key",
    submit: "Save the key",
    sending: "Saving…",
    input: { project: project.id },
    fields: [
      {
        name: "secret",
        label: "Provider",
        options: providers.map(({ id, secrets, model }) => [
          secrets[0] ?? "",
          `${id} (${model.slice(id.length + 1)})`,
        ]),
      },
      { name: "value", label: "Key", type: "password", required: true },
    ],
  }),
];

/** @param {Project} project @param {boolean} canStart */
const firstSession = (project, canStart) =>
  canStart
    ? [
        formView({
          action: "start-first-session",
          submit: "Start the session",
          sending: "Starting…",
          input: { project: project.id },
          fields: [
            {
              ...promptField,
              required: true,
              value: "Read the repository and describe it in README.md. Commit and push.",
            },
          ],
        }),
      ]
    : [
        h(
          "p",
          { class: "quiet" },
          isArchived(project)
            ? `The project is ${project.status}, and starts no sessions.`
            : "A session needs a model first.",
        ),
      ];

/** @param {SetupPage} page @returns {Child[]} */
const mergeText = ({ project, session, change }) => {
  if (change !== null)
    return [
      h(
        "p",
        {},
        h(
          "a",
          { href: projectLink(project.id, `/change-requests/${change.number}`) },
          `#${change.number} ${change.title}`,
        ),
        " ",
        badge(change.status),
      ),
      change.status === "open" &&
        h("p", { class: "quiet" }, "Open it, look at what the agent changed, and merge it."),
    ];
  return [
    h(
      "p",
      { class: "quiet" },
      session === null
        ? "The agent works on a branch of its own. A change request proposes it to the default branch."
        : "When the agent has pushed its commits, open a change request on the session's page, and merge it.",
    ),
  ];
};

/** @type {Record<string, import("../elements/forms.js").Submit>} */
export const setupForms = {
  "set-model-key": async ({ secret = "", value = "" }, { project = "" }, page) => {
    await put(`${projectPath(project)}/secrets/${encodeURIComponent(secret)}`, { value: value.trim() });
    page.refresh();
  },
  "start-first-session": startSession,
};
