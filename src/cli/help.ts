/** Help, generated from the commands themselves. */
import type { Command, Options } from "./command.ts";

const OVERVIEW = `platform: manage sessions of coding agents, their triggers and their change requests.

The command calls the service of PLATFORM_API_URL with the token of PLATFORM_CLI_TOKEN. Every sandbox has both. Elsewhere, run
\`platform login\` once.`;

const ENDS = `Exit codes: 0 success; 1 the service refused or failed; 2 invalid command line, no request was sent; 3 missing, invalid or
insufficient token; 4 not found; 5 conflict; 6 the service cannot be reached or is busy, try again later; 7 and 8 how \`sessions wait\` ended. With --json, the
command prints the API's response as JSON, and errors as JSON on standard error.`;

const EVERYWHERE: Options = {
  json: { about: "Print JSON" },
  help: { about: "Print this" },
};
const PROJECT: Options = {
  project: { value: "ID", about: "The project (PLATFORM_PROJECT_ID, or the only project)" },
};

const aligned = (rows: readonly (readonly [string, string])[]): string => {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`).join("\n");
};

const commandHelp = (command: Command): string => {
  const { name, about, takes, rest, notes, inProject } = command;
  const options = { ...command.options, ...(inProject && PROJECT), ...EVERYWHERE };
  const rows = Object.entries(options).map(
    ([option, { value, about: meaning }]) =>
      [`--${option}${value === undefined ? "" : ` ${value}`}`, meaning] as const,
  );
  const parts = [
    `${about}.`,
    `Usage: platform ${[name, ...takes, "[options]", ...(rest === null ? [] : [`[-- ${rest}...]`])].join(" ")}`,
    `Options:\n${aligned(rows)}`,
    ...(notes === null ? [] : [notes]),
  ];
  return parts.join("\n\n");
};

const listed = (commands: readonly Command[]): string =>
  aligned(commands.map(({ name, takes, about }) => [[name, ...takes].join(" "), about] as const));

/** @param of a command's name, a group's, or "" for all */
export const helpText = (of: string, commands: readonly Command[]): string => {
  const command = commands.find(({ name }) => name === of);
  if (command !== undefined) return commandHelp(command);
  if (of === "")
    return [
      OVERVIEW,
      `Commands:\n${listed(commands)}`,
      "Run `platform COMMAND --help` for details.",
      ENDS,
    ].join("\n\n");
  const group = commands.filter(({ name }) => name.startsWith(`${of} `));
  return [
    `Commands of platform ${of}:\n${listed(group)}`,
    `Run \`platform ${of} COMMAND --help\` for details.`,
  ].join("\n\n");
};
