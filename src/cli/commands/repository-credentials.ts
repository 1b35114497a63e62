/**
 * `platform projects credential`: the credential of an external repository. It comes from a file or standard input,
 * because every program on the machine can see arguments.
 */
import type { Answer } from "../contract.ts";
import { endpoint } from "../endpoint/endpoint.ts";
import { EXIT, Failure, usageFailure } from "../failure.ts";
import { safeLine } from "../terminal.ts";

type Step = Answer<"POST /v1/projects/:pid/repository/check">["steps"][number];

/** A line for the step, and one for what to do about it. */
const stepLines = ({ step, outcome, message, advice }: Step): readonly string[] => [
  safeLine(`${outcome.padEnd(8)} ${step.replaceAll("_", " ")}: ${message}`),
  ...(advice === null ? [] : [safeLine(`${" ".repeat(9)}${advice}`)]),
];

export const repositoryCredentialCommands = [
  endpoint("POST /v1/projects/:pid/repository/check", {
    name: "projects check",
    about: "Check the connection to a project's repository on another server",
    takes: ["[PROJECT]"],
    shows: ({ steps }) => steps.flatMap(stepLines).join("\n"),
    fails: ({ steps }) => {
      const failure = steps.find(({ outcome }) => outcome === "failed");
      if (failure === undefined) return null;
      return new Failure(EXIT.refused, "check_failed", { message: `The step ${failure.step} failed.` });
    },
  }),
  endpoint("PUT /v1/projects/:pid/repository/credential", {
    name: "projects credential set",
    about: "Replace the credential of a project's repository on another server",
    takes: ["[PROJECT]"],
    options: {
      username: { value: "NAME", about: "of a git server over http(s)" },
      "password-file": {
        value: "FILE",
        about: "of a git server over http(s)",
        sets: "password",
        from: "line",
      },
      "ssh-key-file": {
        value: "FILE",
        about: "of a git server over ssh",
        sets: "ssh_private_key",
        from: "file",
      },
      "known-hosts-file": {
        value: "FILE",
        about: "of a git server over ssh",
        sets: "known_hosts",
        from: "file",
      },
      "token-file": { value: "FILE", about: "of GitHub", sets: "token", from: "line" },
      "app-id": { value: "ID", about: "of a GitHub App", sets: null },
      "installation-id": { value: "NUMBER", about: "of a GitHub App", sets: null },
      "app-key-file": { value: "FILE", about: "of a GitHub App", sets: null },
    },
    notes:
      "The service tries the new credential first. If the repository's server rejects it, the old one stays. The new\ncredential replaces the old one completely, including the username. A FILE of - is standard input.",
    sends: async ({ options, input }) => {
      const { "app-id": id, "installation-id": installation, "app-key-file": key } = options;
      if (Object.values(options).every((one) => one === undefined))
        throw usageFailure("Give a credential. See `platform projects credential set --help`.");
      if (id === undefined && installation === undefined && key === undefined) return {};
      if (id === undefined || installation === undefined || key === undefined)
        throw usageFailure("Give --app-id, --installation-id and --app-key-file together.");
      const private_key = await input.file(key, "--app-key-file");
      return { payload: { app: { app_id: id, installation_id: installation, private_key } } };
    },
    shows: ({ name }) => safeLine(`the repository credential of ${name} was replaced`),
  }),
  endpoint("DELETE /v1/projects/:pid/repository/credential", {
    name: "projects credential delete",
    about: "Remove the credential of a project's repository, if the repository is public",
    asks: "Remove the credential?",
    takes: ["[PROJECT]"],
    shows: () => "the repository credential was removed",
  }),
];
