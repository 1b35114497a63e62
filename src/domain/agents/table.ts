/**
 * A table `[agents.<name>]` of a manifest: its fields, each checked by itself. Whether the runtime exists and can use them is for
 * `agents.ts`, because that differs between installations.
 */
import * as Result from "effect/Result";
import { isRecord } from "../../ground/record.ts";
import { parseInside } from "../manifest/config-dir.ts";
import { PERMISSIONS, type Permissions } from "../runtimes/runtime.ts";
import { AGENT_NAME_RULE, EFFORT_RULE, isAgentName, isEffort, isModelName } from "../sandbox/agent.ts";
import type { EntryFault } from "../trigger/trigger.ts";

/** A table as it is written. Null if the field is absent. */
export interface AgentTable {
  readonly name: string;
  readonly runtime: string | null;
  readonly model: string | null;
  readonly mode: string | null;
  readonly effort: string | null;
  readonly permissions: Permissions | null;
  /** Relative to the checkout, normalised. */
  readonly instructions: string | null;
  readonly command: readonly string[] | null;
  /** Names of other agents, the first to try first. */
  readonly fallback: readonly string[] | null;
}

/** How many words a command has, and how many characters each. */
const COMMAND_WORDS = 64;
const WORD_LENGTH = 4096;
/** How many agents a fallback names. */
const FALLBACKS_MAX = 10;
/** How many unknown fields of one table are named. */
const OTHERS_NAMED = 10;

type Read<A> = Result.Result<A, string>;

const readName =
  (field: string) =>
  (value: unknown): Read<string> =>
    isAgentName(value) ? Result.succeed(value) : Result.fail(`${field} ${AGENT_NAME_RULE}.`);

const readModel = (value: unknown): Read<string> =>
  isModelName(value)
    ? Result.succeed(value)
    : Result.fail(
        "model must have 1 to 200 characters without white space, such as anthropic/claude-sonnet-4-6.",
      );

const readEffort = (value: unknown): Read<string> =>
  isEffort(value) ? Result.succeed(value) : Result.fail(`effort ${EFFORT_RULE}.`);

const readPermissions = (value: unknown): Read<Permissions> => {
  const permissions = PERMISSIONS.find((one) => one === value);
  return permissions === undefined
    ? Result.fail(`permissions must be one of: ${PERMISSIONS.join(", ")}.`)
    : Result.succeed(permissions);
};

const readInstructions = (value: unknown): Read<string> =>
  parseInside(
    value,
    "instructions",
    "a file inside the repository, such as .platform/runtime/agents/reviewer.md",
  );

const isWord = (word: unknown): word is string =>
  typeof word === "string" && word !== "" && word.length <= WORD_LENGTH && !word.includes("\0");

const readCommand = (value: unknown): Read<readonly string[]> =>
  Array.isArray(value) && value.length > 0 && value.length <= COMMAND_WORDS && value.every(isWord)
    ? Result.succeed(value)
    : Result.fail(
        `command must be a list of 1 to ${COMMAND_WORDS} words, the program first, such as ["our-agent", "--acp"].`,
      );

const readFallback = (value: unknown): Read<readonly string[]> =>
  Array.isArray(value) &&
  value.length > 0 &&
  value.length <= FALLBACKS_MAX &&
  value.every(isAgentName) &&
  new Set(value).size === value.length
    ? Result.succeed(value)
    : Result.fail(
        `fallback must be a list of 1 to ${FALLBACKS_MAX} different agents of this file, such as ["second"].`,
      );

type Fields = Omit<AgentTable, "name">;

const READERS: { readonly [Field in keyof Fields]: (value: unknown) => Read<NonNullable<Fields[Field]>> } = {
  runtime: readName("runtime"),
  model: readModel,
  mode: readName("mode"),
  effort: readEffort,
  permissions: readPermissions,
  instructions: readInstructions,
  command: readCommand,
  fallback: readFallback,
};

/** The faults of fields that do not exist. */
const strayFaults = (table: Readonly<Record<string, unknown>>): readonly EntryFault[] => {
  const stray = Object.keys(table).filter((field) => !Object.hasOwn(READERS, field));
  return stray.slice(0, OTHERS_NAMED).map((field) => ({
    field,
    message: `There is no field ${field}. An agent has: ${Object.keys(READERS).join(", ")}.`,
  }));
};

/** Reads one table, a value of the TOML parser. It is accepted whole, or refused with every fault. */
export const readAgentTable = (
  name: string,
  table: unknown,
): Result.Result<AgentTable, readonly EntryFault[]> => {
  if (!isAgentName(name))
    return Result.fail([{ field: null, message: `agents.${name}: An agent's name ${AGENT_NAME_RULE}.` }]);
  if (!isRecord(table)) return Result.fail([{ field: null, message: `Write [agents.${name}] as a table.` }]);
  const faults: EntryFault[] = [...strayFaults(table)];
  const field = <Field extends keyof Fields>(key: Field): Fields[Field] | null => {
    const value = table[key];
    if (value === undefined) return null;
    const read: Read<NonNullable<Fields[Field]>> = READERS[key](value);
    if (Result.isSuccess(read)) return read.success;
    faults.push({ field: key, message: read.failure });
    return null;
  };
  const read: AgentTable = {
    name,
    runtime: field("runtime"),
    model: field("model"),
    mode: field("mode"),
    effort: field("effort"),
    permissions: field("permissions"),
    instructions: field("instructions"),
    command: field("command"),
    fallback: field("fallback"),
  };
  return faults.length > 0 ? Result.fail(faults) : Result.succeed(read);
};
