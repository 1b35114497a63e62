/** Help, generated from the commands themselves. */
import type { Command, Options } from "./command.ts";

const OVERVIEW = `platform: manage sessions of coding agents, their triggers and their change requests.

The command calls the service of PLATFORM_API_URL with the token of PLATFORM_CLI_TOKEN. Every sandbox has both. Elsewhere, run
\`platform login\` once.

Examples:
  platform sessions create --prompt "Fix the failing test" --watch
  platform sessions list --waiting
  platform sessions chat 1a2b3c4d
  platform cr merge 12`;

/** The groups of commands, by what a person is about to do. A group's name is the first word of its commands. */
const SECTIONS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "Work with agents": {
    sessions: "Start agents, talk to them, and see what they did",
    cr: "Review and merge what they propose",
    approvals: "Decide on calls that wait for a person",
    activity: "What happened in all projects",
    open: "Open the page",
    "ssh-config": "Work in sandboxes with OpenSSH and editors",
    "ssh-proxy": "What ssh calls for that",
    "git-credential": "What git calls in a clone with a session",
  },
  Automate: {
    triggers: "What starts sessions, and what it did",
    queue: "What waits for a free session",
    account: "Why the queue waits",
    webhooks: "Tell other programs of events",
  },
  "Set up a project": {
    init: "Make a project of this directory",
    projects: "Projects and their repositories",
    secrets: "Keys and passwords for agents",
    connectors: "Tools of other services",
    calls: "What agents called there",
    environment: "What sandboxes boot on",
    members: "Who may do what in a project",
  },
  Access: {
    login: "Log in to a service",
    logout: "Forget the service and its token",
    whoami: "Who you are, and what your account uses",
    tokens: "Tokens for programs",
    people: "The people of the account",
    models: "Providers of models for the account",
    notices: "Your notices by mail and in your chat",
    subscriptions: "Your own subscriptions at makers of agents",
    limits: "Limits of spend, and what was spent",
    audit: "Who did what",
    completion: "Let your shell complete commands",
  },
  "On the service's machine": {
    doctor: "Check this installation",
    backup: "Back up this installation",
    restore: "Restore a backup",
    images: "Images for sandboxes",
    runtimes: "Agent runtimes for sandboxes",
    branches: "Remove merged branches",
    admin: "Accounts, users, tokens, keys",
  },
};

const ENDS = `Exit codes: 0 success; 1 the service refused or failed; 2 invalid command line, no request was sent; 3 missing, invalid or
insufficient token; 4 not found; 5 conflict; 6 the service cannot be reached or is busy, try again later; 7 and 8 how \`sessions wait\` ended; 9 a session
was not stopped, because its work could not be saved. With --json, the
command prints the API's response as JSON, and errors as JSON on standard error.`;

const EVERYWHERE: Options = {
  json: { about: "Print JSON" },
  help: { about: "Print this" },
};
const PROJECT: Options = {
  project: {
    value: "PROJECT",
    about: "Name or id (PLATFORM_PROJECT_ID, the only project, or the one of this directory)",
  },
};

const align = (rows: readonly (readonly [string, string])[]): string => {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`).join("\n");
};

const commandHelp = (command: Command): string => {
  const { name, about, takes, rest, notes, example, inProject } = command;
  const options = { ...command.options, ...(inProject && PROJECT), ...EVERYWHERE };
  const rows = Object.entries(options).map(
    ([option, { value, about: meaning }]) =>
      [`--${option}${value === undefined ? "" : ` ${value}`}`, meaning] as const,
  );
  const parts = [
    `${about}.`,
    `Usage: platform ${[name, ...takes, "[options]", ...(rest === null ? [] : [`[-- ${rest}...]`])].join(" ")}`,
    `Options:\n${align(rows)}`,
    ...(notes === null ? [] : [notes]),
    ...(example === null ? [] : [`Example:\n  platform ${example}`]),
  ];
  return parts.join("\n\n");
};

const commandLines = (commands: readonly Command[]): string =>
  align(commands.map(({ name, takes, about }) => [[name, ...takes].join(" "), about] as const));

const sections = (commands: readonly Command[]): string => {
  const groups = new Set(commands.map(({ name }) => name.split(" ")[0]));
  const rows = Object.values(SECTIONS).flatMap((section) => Object.entries(section));
  const width = Math.max(...rows.map(([name]) => name.length));
  return Object.entries(SECTIONS)
    .map(([title, section]) => {
      const entries = Object.entries(section).filter(([name]) => groups.has(name));
      return entries.length === 0
        ? ""
        : `${title}:\n${entries.map(([name, about]) => `  ${name.padEnd(width)}  ${about}`).join("\n")}`;
    })
    .filter((section) => section !== "")
    .join("\n\n");
};

const REFERENCES =
  "An id may be written as its last eight digits, which lists show. A project, a session, a person and a token may be written by name.";

/** @param of a command's name, a group's, or "" for all */
export const helpText = (of: string, commands: readonly Command[]): string => {
  const command = commands.find(({ name }) => name === of);
  if (command !== undefined) return commandHelp(command);
  if (of === "")
    return [
      OVERVIEW,
      sections(commands),
      "`platform GROUP --help` lists a group's commands, `platform COMMAND --help` a command's options.",
      REFERENCES,
      ENDS,
    ].join("\n\n");
  const group = commands.filter(({ name }) => name.startsWith(`${of} `));
  return [
    `Commands of platform ${of}:\n${commandLines(group)}`,
    `Run \`platform ${of} COMMAND --help\` for details.`,
  ].join("\n\n");
};
