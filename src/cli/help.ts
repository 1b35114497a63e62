/** Help, generated from the commands themselves. */
import type { Command, Options } from "./command.ts";

const OVERVIEW = `platform: sessions of coding agents, their change requests, and what starts them.

It asks the service that PLATFORM_API_URL and PLATFORM_CLI_TOKEN name, as they are set in a session's sandbox, or the one of
\`platform login\`.`;

const ENDS = `It ends with 0 when all went well; 1 when the service refused or failed; 2 when the command line is wrong, and nothing was
sent; 3 without a token that may do this; 4 when something is not there; 5 on a conflict; 6 when the service cannot be
reached or is busy, and trying again may help. --json prints the API's own answer as one JSON document, and what is
wrong as one on standard error.`;

const EVERYWHERE: Options = {
  json: { about: "Print one JSON document for programs" },
  help: { about: "Print this" },
};
const PROJECT: Options = {
  project: { value: "ID", about: "The project; PLATFORM_PROJECT_ID, or the only one there is, by default" },
};

const aligned = (rows: readonly (readonly [string, string])[]): string => {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`).join("\n");
};

const commandHelp = (command: Command): string => {
  const { name, about, takes, notes, inProject } = command;
  const options = { ...command.options, ...(inProject && PROJECT), ...EVERYWHERE };
  const rows = Object.entries(options).map(
    ([option, { value, about: meaning }]) =>
      [`--${option}${value === undefined ? "" : ` ${value}`}`, meaning] as const,
  );
  const parts = [
    `${about}.`,
    `Usage: platform ${[name, ...takes, "[options]"].join(" ")}`,
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
    return [OVERVIEW, `Commands:\n${listed(commands)}`, "`platform COMMAND --help` says more.", ENDS].join(
      "\n\n",
    );
  const group = commands.filter(({ name }) => name.startsWith(`${of} `));
  return [
    `Commands of platform ${of}:\n${listed(group)}`,
    `\`platform ${of} COMMAND --help\` says more.`,
  ].join("\n\n");
};
