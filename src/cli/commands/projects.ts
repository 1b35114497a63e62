/**
 * `platform projects`. Credentials of a repository come from files, because every program on the machine can see
 * arguments.
 */
import type { Answer, Request } from "../contract.ts";
import { command } from "../command.ts";
import { usage } from "../failure.ts";
import type { Input } from "../input.ts";
import { fields, table, time } from "../terminal.ts";
import { oneOf, projectId } from "../words.ts";
import { page, pageOptions, pageOutcome } from "./lists.ts";
import { projectUsage } from "./project-usage.ts";
import {
  gitCredential,
  gitCredentialOptions,
  oneLine,
  repositoryCredentialCommands,
} from "./repository-credentials.ts";
import { listed } from "./triggers.ts";

type Project = Answer<"GET /v1/projects/:pid">;
type Repository = Request<"POST /v1/projects">["payload"]["repository"];

const repository = ({ repository: kept }: Project): string =>
  kept.kind === "hosted" ? "hosted" : kept.kind === "git" ? kept.url : `github ${kept.owner}/${kept.name}`;

const shown = (project: Project): string =>
  fields([
    ["project", project.id],
    ["name", project.name],
    ["status", project.status],
    ["gone at", project.deletes_at === null ? null : time(project.deletes_at)],
    ["repository", repository(project)],
    ["default branch", project.default_branch],
    ["triggers", project.triggers_paused ? "paused" : "on"],
    ["manifest", project.manifest.error ?? project.manifest.commit ?? "none"],
    ["created", time(project.created_at)],
  ]);

const list = command({
  name: "projects list",
  about: "List projects, newest first",
  options: pageOptions,
  run: async ({ options, note, api }) => {
    const answered = await api().call("GET /v1/projects", { query: page(options) });
    const rows = answered.value.projects.map((project) => [
      project.id,
      project.status,
      repository(project),
      project.default_branch,
      project.name,
    ]);
    return pageOutcome(
      answered,
      table(["PROJECT", "STATUS", "REPOSITORY", "BRANCH", "NAME"], rows, "No projects."),
      note,
    );
  },
});

const OPTIONAL = "[PROJECT]";

const show = command({
  name: "projects show",
  about: "Show a project",
  takes: [OPTIONAL],
  inProject: true,
  run: async ({ given, api, project }) => {
    const pid = given.PROJECT === undefined ? await project() : projectId(given.PROJECT);
    const { value, text } = await api().call("GET /v1/projects/:pid", { params: { pid } });
    return { json: text, text: shown(value) };
  },
});

interface RepositoryOptions {
  readonly "import-from": string | undefined;
  readonly git: string | undefined;
  readonly github: string | undefined;
  readonly username: string | undefined;
  readonly "password-file": string | undefined;
  readonly "ssh-key-file": string | undefined;
  readonly "known-hosts-file": string | undefined;
  readonly "token-file": string | undefined;
  readonly "api-url": string | undefined;
  readonly "pull-requests": boolean;
}

const githubRepository = async (
  named: string,
  options: RepositoryOptions,
  input: Input,
): Promise<Repository> => {
  const [owner = "", name = "", more] = named.split("/");
  if (owner === "" || name === "" || more !== undefined)
    throw usage("--github must have the form OWNER/NAME.");
  const { "token-file": token, "api-url": url, "pull-requests": pullRequests } = options;
  return {
    kind: "github",
    owner,
    name,
    ...(token !== undefined && { token: await oneLine(input, token, "--token-file") }),
    ...(url !== undefined && { api_url: url }),
    ...(pullRequests && { pull_requests: true }),
  };
};

/** Which options belong to which kind of repository. An option of another kind is an error. */
const BELONGING = {
  git: ["username", "password-file", "ssh-key-file", "known-hosts-file"],
  github: ["token-file", "api-url", "pull-requests"],
} as const;

const repositoryOf = async (options: RepositoryOptions, input: Input): Promise<Repository> => {
  const { git, github, "import-from": source } = options;
  if ([git, github, source].filter((kind) => kind !== undefined).length > 1)
    throw usage("Give only one of --import-from, --git and --github.");
  for (const kind of ["git", "github"] as const) {
    const stray = BELONGING[kind].find((name) => options[name] !== undefined && options[name] !== false);
    if (options[kind] === undefined && stray !== undefined)
      throw usage(`Use --${stray} only with --${kind}.`);
  }
  if (git !== undefined) return { kind: "git", url: git, ...(await gitCredential(options, input)) };
  if (github !== undefined) return await githubRepository(github, options, input);
  return { kind: "hosted", ...(source !== undefined && { import_from: source }) };
};

const create = command({
  name: "projects create",
  about: "Create a project with a hosted repository, or with one on another server",
  example: "projects create greeter --import-from https://example.org/greeter.git",
  takes: ["NAME"],
  options: {
    "default-branch": { value: "BRANCH", about: "The branch that work is merged into" },
    "import-from": { value: "URL", about: "Import this repository" },
    git: { value: "URL", about: "Use a repository on any git server" },
    ...gitCredentialOptions,
    github: { value: "OWNER/NAME", about: "Use a repository on GitHub" },
    "token-file": { value: "FILE", about: "with --github" },
    "api-url": { value: "URL", about: "with --github: the API of a GitHub Enterprise Server" },
    "pull-requests": { about: "with --github: open a pull request beside each change request" },
  },
  run: async ({ given, options, input, api }) => {
    const { "default-branch": branch } = options;
    const { value, text } = await api().call("POST /v1/projects", {
      payload: {
        name: given.NAME,
        repository: await repositoryOf(options, input),
        ...(branch !== undefined && { default_branch: branch }),
      },
    });
    return { json: text, text: shown(value) };
  },
});

const sync = command({
  name: "projects sync",
  about: "Read the manifest from the default branch now, and list the triggers",
  takes: [OPTIONAL],
  inProject: true,
  run: async ({ given, api, project }) => {
    const pid = given.PROJECT === undefined ? await project() : projectId(given.PROJECT);
    const { value, text } = await api().call("POST /v1/projects/:pid/sync", { params: { pid } });
    return { json: text, text: listed(value) };
  },
});

/** What `--approvals` takes. */
const APPROVALS = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"] as const;

const update = command({
  name: "projects update",
  about: "Change a project",
  takes: [OPTIONAL],
  inProject: true,
  options: {
    name: { value: "TEXT", about: "Display name" },
    "default-branch": { value: "BRANCH", about: "The new default branch, which must exist" },
    status: { value: "STATUS", about: "active or archived. An archived project does not start sessions" },
    triggers: { value: "STATE", about: "on or paused" },
    "default-role": { value: "ROLE", about: "Of the account's other people: none, viewer or member" },
    "merge-role": { value: "ROLE", about: "Who may merge: member or owner" },
    approvals: { value: "COUNT", about: "How many people must approve before a merge, 0 to 10" },
  },
  run: async ({ given, options, api, project }) => {
    const { name, "default-branch": branch } = options;
    const status = oneOf(options.status, ["active", "archived"], "--status");
    const triggers = oneOf(options.triggers, ["on", "paused"], "--triggers");
    const role = oneOf(options["default-role"], ["none", "viewer", "member"], "--default-role");
    const mergeRole = oneOf(options["merge-role"], ["member", "owner"], "--merge-role");
    const approvals = oneOf(options.approvals, APPROVALS, "--approvals");
    const payload = {
      ...(name !== undefined && { name }),
      ...(branch !== undefined && { default_branch: branch }),
      ...(status !== undefined && { status }),
      ...(triggers !== undefined && { triggers_paused: triggers === "paused" }),
      ...(role !== undefined && { default_role: role === "none" ? null : role }),
      ...(mergeRole !== undefined && { merge_role: mergeRole }),
      ...(approvals !== undefined && { approvals_required: Number(approvals) }),
    };
    if (Object.keys(payload).length === 0)
      throw usage("Give at least one option. See `platform projects update --help`.");
    const pid = given.PROJECT === undefined ? await project() : projectId(given.PROJECT);
    const { value, text } = await api().call("PATCH /v1/projects/:pid", { params: { pid }, payload });
    return { json: text, text: shown(value) };
  },
});

const remove = command({
  name: "projects delete",
  about: "Delete a project with everything in it; it can be restored for seven days",
  takes: ["PROJECT"],
  notes:
    "It starts nothing more, and its running sessions stop with their work saved. After seven days its sessions, repository, saved work, triggers, secrets and images are removed. A repository on another server stays there. `platform projects restore` undoes it until then.",
  asksName: async ({ given, api }) => {
    const { value } = await api().call("GET /v1/projects/:pid", {
      params: { pid: projectId(given.PROJECT) },
    });
    return { question: `Type the project's name, ${value.name}, to delete it:`, name: value.name };
  },
  run: async ({ given, api }) => {
    const pid = projectId(given.PROJECT);
    const { value, text } = await api().call("DELETE /v1/projects/:pid", { params: { pid } });
    return { json: text, text: shown(value) };
  },
});

const restore = command({
  name: "projects restore",
  about: "Undo the deletion of a project",
  takes: ["PROJECT"],
  run: async ({ given, api }) => {
    const pid = projectId(given.PROJECT);
    const { value, text } = await api().call("POST /v1/projects/:pid/restore", { params: { pid } });
    return { json: text, text: shown(value) };
  },
});

export const projectCommands = [
  list,
  show,
  projectUsage,
  create,
  sync,
  update,
  remove,
  restore,
  ...repositoryCredentialCommands,
];
