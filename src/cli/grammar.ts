/** Parses a command line. Its errors name options and never repeat a value, which may be a secret. */
import { parseArgs } from "node:util";
import type { Command } from "./command.ts";
import { usageFailure } from "./failure.ts";
import { nearest } from "../ground/nearest.ts";
import { safeLine } from "./terminal.ts";

/** The request of a command line. */
export type Wish =
  | { readonly kind: "help"; readonly about: string; readonly json: boolean }
  | { readonly kind: "version"; readonly json: boolean }
  | {
      readonly kind: "run";
      readonly command: Command;
      readonly given: Readonly<Record<string, string | undefined>>;
      /** What follows, of a command that takes further words. */
      readonly rest: readonly string[];
      readonly options: Readonly<Record<string, string | boolean | readonly string[] | undefined>>;
      readonly project: string | undefined;
      readonly json: boolean;
    };

const EVERYWHERE = new Set(["json", "help", "version"]);

/** Whether the line requests JSON, even if the rest of it is invalid: then its error must be JSON. */
export const wantsJson = (line: readonly string[]): boolean => {
  const end = line.indexOf("--");
  return line.slice(0, end === -1 ? undefined : end).includes("--json");
};

/** The words at the beginning that name a command or a group of them. Switches may be in between. */
const leadingWords = (line: readonly string[], commands: readonly Command[]) => {
  let name = "";
  const rest: string[] = [];
  for (const [index, word] of line.entries()) {
    if (EVERYWHERE.has(word.replace(/^--/, "")) || word === "-h") {
      rest.push(word);
      continue;
    }
    const longer = name === "" ? word : `${name} ${word}`;
    const isKnown = commands.some(
      (command) => command.name === longer || command.name.startsWith(`${longer} `),
    );
    if (!isKnown) return { name, rest: [...rest, ...line.slice(index)] };
    name = longer;
  }
  return { name, rest };
};

/** @throws Failure of usage, with a sentence */
export const readLine = (line: readonly string[], commands: readonly Command[]): Wish => {
  const [first, ...others] = line;
  if (first === "help") return { kind: "help", about: leadingWords(others, commands).name, json: false };
  const { name, rest } = leadingWords(line, commands);
  const json = wantsJson(rest);
  const command = commands.find((candidate) => candidate.name === name);
  if (command === undefined) {
    if (rest.some((word) => word === "--help" || word === "-h")) return { kind: "help", about: name, json };
    if (name === "" && rest.includes("--version")) return { kind: "version", json };
    throw unknownCommand(name, { rest, commands });
  }
  return readArguments(command, rest);
};

/** The spelling of commands. Any other word may be a token in the wrong place. */
const SPELLING = /^[a-z]{1,20}$/;

/** The word that a person probably meant: a third of its letters may be wrong. */
const nearestWord = (word: string, words: readonly string[]) =>
  nearest(word, words, Math.ceil(word.length / 3));

const unknownCommand = (
  group: string,
  { rest: [word], commands }: { readonly rest: readonly string[]; readonly commands: readonly Command[] },
) => {
  const prefix = group === "" ? "platform" : `platform ${group}`;
  const see = `See \`${prefix} --help\`.`;
  if (word === undefined || EVERYWHERE.has(word.replace(/^--/, "")))
    return usageFailure(`Missing ${group === "" ? "command" : `command after ${prefix}`}. ${see}`);
  if (word.startsWith("-")) return usageFailure(`Options come after the command. ${see}`);
  if (!SPELLING.test(word)) return usageFailure(`Unknown command. ${see}`);
  const place = group === "" ? 0 : group.split(" ").length;
  const near = nearestWord(
    word,
    commands.filter(({ name }) => name.startsWith(group)).map(({ name }) => name.split(" ")[place] ?? ""),
  );
  return usageFailure(
    `Unknown command ${prefix} ${word}. ${near === null ? "" : `Did you mean \`${prefix} ${near}\`? `}${see}`,
  );
};

const toParseOptions = ({ options, inProject }: Command) =>
  Object.fromEntries<{ type: "string" | "boolean"; short?: string }>([
    ["json", { type: "boolean" }],
    ["help", { type: "boolean", short: "h" }],
    ...(inProject ? [["project", { type: "string" }] as const] : []),
    ...Object.entries(options).map(
      ([name, { value }]) => [name, { type: value === undefined ? "boolean" : "string" }] as const,
    ),
  ]);

const unknownOption = (
  { name, rawName, see }: { readonly name: string; readonly rawName: string; readonly see: string },
  words: readonly string[],
) => {
  const near = nearestWord(name, words);
  const hint = near === null ? "" : `Did you mean --${near}? `;
  return usageFailure(`Unknown option ${safeLine(rawName.slice(0, 40))}. ${hint}${see}`);
};

const readArguments = (command: Command, line: readonly string[]): Wish => {
  const options = toParseOptions(command);
  const see = `See \`platform ${command.name} --help\`.`;
  // Not strict, because strict errors repeat the input.
  const { tokens } = parseArgs({
    args: [...line],
    options,
    allowPositionals: true,
    strict: false,
    tokens: true,
  });
  const values: Record<string, string | boolean> = {};
  const lists = emptyLists(command);
  const words: string[] = [];
  for (const token of tokens) {
    if (token.kind === "positional") words.push(token.value);
    if (token.kind !== "option") continue;
    const { name, rawName, value, inlineValue } = token;
    const type = Object.hasOwn(options, name) ? options[name]?.type : undefined;
    if (type === undefined) throw unknownOption({ name, rawName, see }, Object.keys(options));
    if (type === "boolean" && value !== undefined) throw usageFailure(`--${name} takes no value. ${see}`);
    if (type === "string" && value === undefined) throw usageFailure(`--${name} needs a value. ${see}`);
    if (type === "string" && inlineValue === false && /^-./.test(value ?? ""))
      throw usageFailure(
        `--${name} needs a value. Write a value that begins with - as --${name}=VALUE. ${see}`,
      );
    const list = lists[name];
    if (list !== undefined) {
      list.push(value ?? "");
      continue;
    }
    if (type === "string" && values[name] !== undefined)
      throw usageFailure(`--${name} is given twice. ${see}`);
    values[name] = value ?? true;
  }
  const { json = false, help = false, project, ...own } = values;
  if (help === true) return { kind: "help", about: command.name, json: json === true };
  return {
    kind: "run",
    command,
    given: namedWords(command, command.rest === null ? words : words.slice(0, command.takes.length), see),
    rest: command.rest === null ? [] : words.slice(command.takes.length),
    // A command that works elsewhere without a project has an option of this name.
    options: {
      ...switchesOff(command),
      ...lists,
      ...own,
      ...("project" in command.options && project !== undefined && { project }),
    },
    project: typeof project === "string" ? project : undefined,
    json: json === true,
  };
};

/** Empty lists for the options that may be given several times. */
const emptyLists = ({ options }: Command): Record<string, string[]> =>
  Object.fromEntries(
    Object.entries(options).flatMap(([name, { many }]): [string, string[]][] =>
      many === true ? [[name, []]] : [],
    ),
  );

const switchesOff = ({ options }: Command): Record<string, boolean> =>
  Object.fromEntries(
    Object.entries(options).flatMap(([name, { value }]) => (value === undefined ? [[name, false]] : [])),
  );

const namedWords = ({ takes }: Command, words: readonly string[], see: string) => {
  const missing = takes.slice(words.length).find((name) => !name.startsWith("["));
  if (missing !== undefined) throw usageFailure(`${missing} is missing. ${see}`);
  if (words.length > takes.length)
    throw usageFailure(`Unexpected argument after ${takes.at(-1) ?? "the command"}. ${see}`);
  return Object.fromEntries(takes.map((name, index) => [name.replaceAll(/[[\]]/g, ""), words[index]]));
};
