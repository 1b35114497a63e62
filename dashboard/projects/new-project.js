/** A new project: where its repository is, and how the service reaches it. */
import { getJson, post } from "../api/api.ts";
import { ask } from "../frame/dialog.ts";
import { h, outside } from "../elements/dom.ts";
import { formView, given } from "../elements/forms.js";
import { projectLink, trail } from "../elements/parts.ts";
import { checkView, followRepositoryForm } from "./repository-check.js";

/** @typedef {import("../elements/forms.js").FieldView} FieldView */
/** @typedef {"hosted" | "import" | "git" | "github"} Origin */

/** A large repository takes its time to arrive. The service ends a slower one. */
const CREATE_TIMEOUT_MS = 600_000;

/** @type {[Origin, string, string][]} */
const ORIGINS = [
  [
    "hosted",
    "New repository",
    "The service keeps the repository. You push your code to it, or start with nothing.",
  ],
  ["import", "Copy", "The service copies a public repository once, and keeps the copy."],
  ["git", "Git server", "The repository stays on its server. The service pushes the agents' work there."],
  ["github", "GitHub", "The repository stays on GitHub. A change request can have a pull request."],
];

/** @type {FieldView} */
const NAME = {
  name: "name",
  label: "Project name",
  hint: "Optional. Without one, the project gets the repository's name.",
};
/** @type {FieldView} */
const BRANCH = {
  name: "default_branch",
  label: "Default branch",
  hint: "Optional. Without one, the repository decides.",
};

/** A GitHub App in place of a token. @param {string} prefix of its fields' names in the API @returns {FieldView[]} */
export const appFields = (prefix) => [
  {
    name: "app_id",
    path: `${prefix}app.app_id`,
    label: "App id",
    hint: "On the page of the app's settings, below its name.",
  },
  {
    name: "installation_id",
    path: `${prefix}app.installation_id`,
    label: "Installation id",
    hint: "Install the app on the repository. The number is the end of the address of the installation's page.",
  },
  {
    name: "private_key",
    path: `${prefix}app.private_key`,
    label: "Private key of the app",
    hint: "The content of the `.pem` file that GitHub makes under “Private keys”.",
    lines: 3,
    mono: true,
  },
];

/** @type {Record<Origin, import("../elements/forms.js").FormView["fields"]>} */
const FIELDS = {
  hosted: [
    { name: "name", label: "Project name", required: true },
    { ...BRANCH, hint: "Optional. Without one, it is `main`.", placeholder: "main" },
  ],
  import: [
    {
      name: "import_from",
      path: "repository.import_from",
      label: "Address",
      hint: "An `https://` address that can be read without a password.",
      placeholder: "https://github.com/acme/greeter.git",
      required: true,
      mono: true,
    },
    NAME,
    BRANCH,
  ],
  git: [
    {
      name: "url",
      path: "repository.url",
      label: "Address",
      placeholder: "https://git.example.org/team/greeter.git",
      required: true,
      mono: true,
    },
    {
      name: "username",
      path: "repository.username",
      label: "User name",
      hint: "For `https://`. Many servers take any name with an access token.",
    },
    { name: "password", path: "repository.password", label: "Password or access token", type: "password" },
    {
      group: "Use an SSH key instead of a password",
      fields: [
        {
          name: "ssh_private_key",
          path: "repository.ssh_private_key",
          label: "Private key",
          hint: "For an address with `ssh://`. The key must have no passphrase.",
          lines: 3,
          mono: true,
        },
        {
          name: "known_hosts",
          path: "repository.known_hosts",
          label: "The server's line of known_hosts",
          hint: "`ssh-keyscan git.example.org` prints it. Compare it with the fingerprint that the server publishes.",
          lines: 2,
          mono: true,
        },
      ],
    },
    NAME,
    BRANCH,
  ],
  github: [
    {
      name: "repository",
      path: "repository.owner",
      label: "Repository",
      placeholder: "acme/greeter",
      required: true,
      mono: true,
    },
    {
      name: "token",
      path: "repository.token",
      label: "Access token",
      hint: "A fine-grained token for this repository, with read and write access to Contents, and to Pull requests if you want them.",
      type: "password",
    },
    {
      name: "pull_requests",
      label: "Open a pull request for each change request",
      type: "checkbox",
      value: "yes",
    },
    { group: "Use a GitHub App instead of a token", fields: appFields("repository.") },
    {
      group: "GitHub Enterprise Server",
      fields: [
        {
          name: "api_url",
          path: "repository.api_url",
          label: "Address of its API",
          placeholder: "https://github.example.org/api/v3",
          mono: true,
        },
      ],
    },
    NAME,
  ],
};

export const newProject = {
  /** @param {string[]} _params @param {import("../frame/page.ts").Extent} extent @returns {Promise<{origin: Origin}>} */
  load: async (_params, { query }) => {
    const asked = query.get("from");
    return { origin: ORIGINS.find(([origin]) => origin === asked)?.[0] ?? "hosted" };
  },

  title: () => "New project",

  /** @param {string[]} _params @param {() => void} changed */
  follow: (_params, changed) => followRepositoryForm(checkOf, changed),

  /** @param {{origin: Origin}} data @param {unknown} _me @param {import("./repository-check.js").Checking | null} live */
  view: ({ origin }, _me, live) => [
    trail([
      ["Projects", "#/projects"],
      ["New project", null],
    ]),
    h("h1", { "data-key": "heading" }, "New project"),
    h(
      "nav",
      { class: "tabs", "aria-label": "Where the repository is", "data-key": "origins" },
      ORIGINS.map(([value, label]) =>
        h("a", { href: `#/new?from=${value}`, "aria-current": value === origin ? "true" : null }, label),
      ),
    ),
    h("p", { class: "quiet", "data-key": "about" }, ORIGINS.find(([value]) => value === origin)?.[2] ?? ""),
    h(
      "div",
      { class: "beside", "data-key": origin },
      h(
        "div",
        {},
        origin === "github" && gitHubHelp(),
        formView({
          action: `create-project-${origin}`,
          submit: "Create project",
          sending: origin === "hosted" ? "Creating…" : "Reaching the repository…",
          fields: FIELDS[origin],
        }),
      ),
      origin !== "hosted" && checkView(live, { heading: "h2", before: BEFORE[origin] }),
    ),
  ],
};

/** @type {Record<Exclude<Origin, "hosted">, string>} */
const BEFORE = {
  import: "The service tries the address as soon as you have filled it in.",
  git: "The service tries the address and the credential as soon as you have filled them in.",
  github: "The service tries each step as soon as you have named the repository and a token or an app.",
};

const gitHubHelp = () =>
  h(
    "p",
    { class: "quiet", "data-key": "help" },
    outside("https://github.com/settings/personal-access-tokens/new", "Make a token on GitHub"),
    " (opens a new tab), or use ",
    outside("https://github.com/settings/apps", "a GitHub App"),
    " that you own. The credential stays in this service, encrypted.",
  );

/** What the form names so far, for a check. Null: not enough. @param {HTMLFormElement} form */
const checkOf = (form) => {
  const typed = Object.fromEntries(
    [...new FormData(form)].map(([name, value]) => [name, String(value).trim()]),
  );
  const branch = given({ default_branch: typed["default_branch"] });
  try {
    switch (form.dataset["action"]) {
      case "create-project-import":
        return typed["import_from"]
          ? { repository: { kind: "hosted", import_from: typed["import_from"] }, ...branch }
          : null;
      case "create-project-git":
        return typed["url"] ? { repository: gitOf(typed), ...branch } : null;
      case "create-project-github":
        return hasGitHubCredential(typed) ? { repository: gitHubOf(typed) } : null;
      default:
        return null;
    }
  } catch {
    // The repository is not written as owner/name yet.
    return null;
  }
};

/** @param {Record<string, string>} typed */
const hasGitHubCredential = ({ token, app_id, installation_id, private_key }) =>
  Boolean(token) || (Boolean(app_id) && Boolean(installation_id) && Boolean(private_key));

/** The last part of an address or of `owner/name`. @param {string} address */
const nameOf = (address) =>
  address
    .replace(/\/+$/, "")
    .replace(/\.git$/, "")
    .split(/[/:]/)
    .at(-1) ?? "";

/** @param {Record<string, string>} typed @param {Record<string, unknown>} repository */
const wishOf = ({ name = "", default_branch = "" }, repository) => ({
  ...given({ name, default_branch }),
  repository,
});

/** Two projects may have one name, but people seldom want that. @param {string} name */
const isNameFine = async (name) => {
  const { projects } = await getJson("/v1/projects?limit=200");
  if (!projects.some((/** @type {{name: string}} */ project) => project.name === name)) return true;
  const answer = await ask({
    title: `Create another project named “${name}”?`,
    text: "There is already a project with this name. The lists would show both.",
    confirm: "Create it",
    decline: "Change the name",
  });
  return answer !== null;
};

/**
 * @param {(typed: Record<string, string>) => Record<string, unknown>} bodyOf
 * @returns {import("../elements/forms.js").Submit}
 */
const create = (bodyOf) => async (typed, _input, page) => {
  const body = bodyOf(typed);
  if (!(await isNameFine(String(body["name"] ?? "")))) return false;
  const project = await post("/v1/projects", body, CREATE_TIMEOUT_MS);
  page.go(projectLink(project.id, "/setup"));
  return true;
};

/** @param {Record<string, string>} typed */
const gitOf = ({ url = "", username, password, ssh_private_key, known_hosts }) => ({
  kind: "git",
  url,
  ...given({ username, password, ssh_private_key, known_hosts }),
});

/** @param {Record<string, string>} typed */
const gitHubOf = ({
  repository = "",
  pull_requests,
  app_id,
  installation_id,
  private_key,
  token,
  api_url,
}) => {
  const [owner = "", name = "", ...rest] = repository.split("/");
  if (owner === "" || name === "" || rest.length > 0)
    throw new Error("Write the repository as owner/name, for example acme/greeter.");
  const app = given({ app_id, installation_id, private_key });
  return {
    kind: "github",
    owner,
    name,
    pull_requests: pull_requests === "yes",
    ...given({ token, api_url }),
    ...(Object.keys(app).length > 0 && { app }),
  };
};

/** @type {Record<string, import("../elements/forms.js").Submit>} */
export const newProjectForms = {
  "create-project-hosted": create((typed) => wishOf(typed, { kind: "hosted" })),
  "create-project-import": create(({ import_from = "", ...typed }) =>
    wishOf({ ...typed, name: typed["name"] || nameOf(import_from) }, { kind: "hosted", import_from }),
  ),
  "create-project-git": create((typed) =>
    wishOf({ ...typed, name: typed["name"] || nameOf(typed["url"] ?? "") }, gitOf(typed)),
  ),
  "create-project-github": create((typed) =>
    wishOf({ ...typed, name: typed["name"] || nameOf(typed["repository"] ?? "") }, gitHubOf(typed)),
  ),
};
