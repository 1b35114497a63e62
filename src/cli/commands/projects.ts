/**
 * `platform projects`. Credentials of a repository come from files, because every program on the machine can see
 * arguments.
 */
import type { Answer, Request } from "../contract.ts";
import type { OptionValues } from "../command.ts";
import { endpoint } from "../endpoint/endpoint.ts";
import { usageFailure } from "../failure.ts";
import type { Input } from "../input.ts";
import { fieldLines, time } from "../terminal.ts";
import { parseWord, projectId } from "../words.ts";
import { projectUsage } from "./project-usage.ts";
import { repositoryCredentialCommands } from "./repository-credentials.ts";
import { triggersText } from "./triggers.ts";

type Project = Answer<"GET /v1/projects/:pid">;
type Repository = Request<"POST /v1/projects">["payload"]["repository"];

const repository = ({ repository: kept }: Project): string =>
  kept.kind === "hosted" ? "hosted" : kept.kind === "git" ? kept.url : `github ${kept.owner}/${kept.name}`;

const projectText = (project: Project): string =>
  fieldLines([
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

const repositoryOptions = {
  "import-from": { value: "URL", about: "Import this repository", sets: null },
  git: { value: "URL", about: "Use a repository on any git server", sets: null },
  username: { value: "NAME", about: "with --git over http(s)", sets: null },
  "password-file": { value: "FILE", about: "with --git over http(s)", sets: null },
  "ssh-key-file": { value: "FILE", about: "with --git over ssh", sets: null },
  "known-hosts-file": { value: "FILE", about: "with --git over ssh", sets: null },
  github: { value: "OWNER/NAME", about: "Use a repository on GitHub", sets: null },
  "token-file": { value: "FILE", about: "with --github", sets: null },
  "api-url": {
    value: "URL",
    about: "with --github: the API of a GitHub Enterprise Server",
    sets: null,
  },
  "pull-requests": { about: "with --github: open a pull request beside each change request", sets: null },
} as const;
type RepositoryOptions = OptionValues<typeof repositoryOptions>;

/** A password or token from its file, without the line break that editors add at the end. */
const oneLine = async (input: Input, file: string, option: string): Promise<string> =>
  (await input.file(file, option)).replace(/\r?\n$/, "");

const gitCredential = async (
  { username, "password-file": password, "ssh-key-file": key, "known-hosts-file": hosts }: RepositoryOptions,
  input: Input,
) => ({
  ...(username !== undefined && { username }),
  ...(password !== undefined && { password: await oneLine(input, password, "--password-file") }),
  ...(key !== undefined && { ssh_private_key: await input.file(key, "--ssh-key-file") }),
  ...(hosts !== undefined && { known_hosts: await input.file(hosts, "--known-hosts-file") }),
});

const githubRepository = async (
  option: string,
  options: RepositoryOptions,
  input: Input,
): Promise<Repository> => {
  const [owner = "", name = "", more] = option.split("/");
  if (owner === "" || name === "" || more !== undefined)
    throw usageFailure("--github must have the form OWNER/NAME.");
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

const readRepository = async (options: RepositoryOptions, input: Input): Promise<Repository> => {
  const { git, github, "import-from": source } = options;
  if ([git, github, source].filter((kind) => kind !== undefined).length > 1)
    throw usageFailure("Give only one of --import-from, --git and --github.");
  for (const kind of ["git", "github"] as const) {
    const stray = BELONGING[kind].find((name) => options[name] !== undefined && options[name] !== false);
    if (options[kind] === undefined && stray !== undefined)
      throw usageFailure(`Use --${stray} only with --${kind}.`);
  }
  if (git !== undefined) return { kind: "git", url: git, ...(await gitCredential(options, input)) };
  if (github !== undefined) return await githubRepository(github, options, input);
  return { kind: "hosted", ...(source !== undefined && { import_from: source }) };
};

/** What `--approvals` takes. */
const APPROVALS = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"] as const;

export const projectCommands = [
  endpoint("GET /v1/projects", {
    name: "projects list",
    about: "List projects, newest first",
    rows: "projects",
    columns: {
      PROJECT: "id",
      STATUS: "status",
      REPOSITORY: repository,
      BRANCH: "default_branch",
      NAME: "name",
    },
    none: "No projects.",
  }),
  endpoint("GET /v1/projects/:pid", {
    name: "projects show",
    about: "Show a project",
    takes: ["[PROJECT]"],
    shows: projectText,
  }),
  projectUsage,
  endpoint("POST /v1/projects", {
    name: "projects create",
    about: "Create a project with a hosted repository, or with one on another server",
    example: "projects create greeter --import-from https://example.org/greeter.git",
    takes: ["NAME"],
    options: {
      "default-branch": { value: "BRANCH", about: "The branch that work is merged into" },
      ...repositoryOptions,
    },
    sends: async ({ options, input }) => ({ payload: { repository: await readRepository(options, input) } }),
    shows: projectText,
  }),
  endpoint("POST /v1/projects/:pid/sync", {
    name: "projects sync",
    about: "Read the manifest from the default branch now, and list the triggers",
    takes: ["[PROJECT]"],
    shows: triggersText,
  }),
  endpoint("PATCH /v1/projects/:pid", {
    name: "projects update",
    about: "Change a project",
    takes: ["[PROJECT]"],
    options: {
      name: { value: "TEXT", about: "Display name" },
      "default-branch": { value: "BRANCH", about: "The new default branch, which must exist" },
      status: { value: "STATUS", about: "active or archived. An archived project does not start sessions" },
      triggers: {
        value: "STATE",
        about: "on or paused",
        sets: "triggers_paused",
        reads: (text: string, label: string) => parseWord(text, ["on", "paused"], label) === "paused",
      },
      "default-role": {
        value: "ROLE",
        about: "Of the account's other people: none, viewer or member",
        reads: (text: string, label: string) =>
          text === "none" ? null : parseWord(text, ["none", "viewer", "member"], label),
      },
      "merge-role": { value: "ROLE", about: "Who may merge: member or owner" },
      approvals: {
        value: "COUNT",
        about: "How many people must approve before a merge, 0 to 10",
        sets: "approvals_required",
        reads: (text: string, label: string) => Number(parseWord(text, APPROVALS, label)),
      },
    },
    shows: projectText,
  }),
  endpoint("DELETE /v1/projects/:pid", {
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
    shows: projectText,
  }),
  endpoint("POST /v1/projects/:pid/restore", {
    name: "projects restore",
    about: "Undo the deletion of a project",
    takes: ["PROJECT"],
    shows: projectText,
  }),
  ...repositoryCredentialCommands,
];
