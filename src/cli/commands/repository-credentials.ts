/**
 * `platform projects credential`: the credential of an external repository. It comes from a file or standard input,
 * because every program on the machine can see arguments.
 */
import { command } from "../command.ts";
import type { Answer, Request } from "../contract.ts";
import { EXIT, Failure, usage } from "../failure.ts";
import type { Input } from "../input.ts";
import { visible } from "../terminal.ts";
import { projectId } from "../words.ts";

/** The options of `projects create` for a repository at any git server. */
export const gitCredentialOptions = {
  username: { value: "NAME", about: "with --git over http(s)" },
  "password-file": { value: "FILE", about: "with --git over http(s)" },
  "ssh-key-file": { value: "FILE", about: "with --git over ssh" },
  "known-hosts-file": { value: "FILE", about: "with --git over ssh" },
} as const;

type GitOptions = { readonly [Name in keyof typeof gitCredentialOptions]: string | undefined };

/** A password or token from its file, without the line break that editors add at the end. */
export const oneLine = async (input: Input, file: string, option: string): Promise<string> =>
  (await input.file(file, option)).replace(/\r?\n$/, "");

export const gitCredential = async (
  { username, "password-file": password, "ssh-key-file": key, "known-hosts-file": hosts }: GitOptions,
  input: Input,
) => ({
  ...(username !== undefined && { username }),
  ...(password !== undefined && { password: await oneLine(input, password, "--password-file") }),
  ...(key !== undefined && { ssh_private_key: await input.file(key, "--ssh-key-file") }),
  ...(hosts !== undefined && { known_hosts: await input.file(hosts, "--known-hosts-file") }),
});

type Credential = NonNullable<Request<"PUT /v1/projects/:pid/repository/credential">["payload"]>;

interface AppOptions {
  readonly "app-id": string | undefined;
  readonly "installation-id": string | undefined;
  readonly "app-key-file": string | undefined;
}

const appCredential = async (
  { "app-id": id, "installation-id": installation, "app-key-file": key }: AppOptions,
  input: Input,
): Promise<Pick<Credential, "app">> => {
  if (id === undefined && installation === undefined && key === undefined) return {};
  if (id === undefined || installation === undefined || key === undefined)
    throw usage("Give --app-id, --installation-id and --app-key-file together.");
  return {
    app: { app_id: id, installation_id: installation, private_key: await input.file(key, "--app-key-file") },
  };
};

const OPTIONAL = "[PROJECT]";

const set = command({
  name: "projects credential set",
  about: "Replace the credential of a project's repository on another server",
  takes: [OPTIONAL],
  inProject: true,
  options: {
    username: { value: "NAME", about: "of a git server over http(s)" },
    "password-file": { value: "FILE", about: "of a git server over http(s)" },
    "ssh-key-file": { value: "FILE", about: "of a git server over ssh" },
    "known-hosts-file": { value: "FILE", about: "of a git server over ssh" },
    "token-file": { value: "FILE", about: "of GitHub" },
    "app-id": { value: "ID", about: "of a GitHub App" },
    "installation-id": { value: "NUMBER", about: "of a GitHub App" },
    "app-key-file": { value: "FILE", about: "of a GitHub App" },
  },
  notes:
    "The service tries the new credential first. If the repository's server rejects it, the old one stays. The new\ncredential replaces the old one completely, including the username. A FILE of - is standard input.",
  run: async ({ given, options, input, api, project }) => {
    const { "token-file": token } = options;
    const payload: Credential = {
      ...(await gitCredential(options, input)),
      ...(token !== undefined && { token: await oneLine(input, token, "--token-file") }),
      ...(await appCredential(options, input)),
    };
    if (Object.keys(payload).length === 0)
      throw usage("Give a credential. See `platform projects credential set --help`.");
    const pid = given.PROJECT === undefined ? await project() : projectId(given.PROJECT);
    const { value, text } = await api().call("PUT /v1/projects/:pid/repository/credential", {
      params: { pid },
      payload,
    });
    return { json: text, text: visible(`the repository credential of ${value.name} was replaced`) };
  },
});

const remove = command({
  name: "projects credential delete",
  about: "Remove the credential of a project's repository, if the repository is public",
  asks: "Remove the credential?",
  takes: [OPTIONAL],
  inProject: true,
  run: async ({ given, api, project }) => {
    const pid = given.PROJECT === undefined ? await project() : projectId(given.PROJECT);
    const { text } = await api().call("DELETE /v1/projects/:pid/repository/credential", { params: { pid } });
    return { json: text, text: "the repository credential was removed" };
  },
});

type Step = Answer<"POST /v1/projects/:pid/repository/check">["steps"][number];

/** A line for the step, and one for what to do about it. */
const stepLines = ({ step, outcome, message, advice }: Step): readonly string[] => [
  visible(`${outcome.padEnd(8)} ${step.replaceAll("_", " ")}: ${message}`),
  ...(advice === null ? [] : [visible(`${" ".repeat(9)}${advice}`)]),
];

const check = command({
  name: "projects check",
  about: "Check the connection to a project's repository on another server",
  takes: [OPTIONAL],
  inProject: true,
  run: async ({ given, api, project, json, write }) => {
    const pid = given.PROJECT === undefined ? await project() : projectId(given.PROJECT);
    const { value, text } = await api().call("POST /v1/projects/:pid/repository/check", { params: { pid } });
    const failed = value.steps.find(({ outcome }) => outcome === "failed");
    const shown = value.steps.flatMap(stepLines).join("\n");
    if (failed === undefined) return { json: text, text: shown };
    write(`${json ? text : shown}\n`);
    throw new Failure(EXIT.refused, "check_failed", { message: `The step ${failed.step} failed.` });
  },
});

export const repositoryCredentialCommands = [check, set, remove];
