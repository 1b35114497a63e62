/** The lifecycle commands of devcontainer.json as one shell script, which prepares the checkout as a setup command does. */
import * as Result from "effect/Result";
import { type DevcontainerIssue, resolveReferences, unresolvedReason } from "./devcontainer-variables.ts";
import type { Jsonc, JsoncObject } from "./jsonc.ts";

/** In the order in which they run. */
const COMMANDS = [
  "onCreateCommand",
  "updateContentCommand",
  "postCreateCommand",
  "postStartCommand",
] as const;
/** The longest script, in characters. */
const SCRIPT_MAX = 32 * 1024;
/** Commands of one field that run at the same time. */
const PARALLEL_MAX = 20;

export interface LifecycleCommands {
  /** Their names, in their order. Empty: the file has none. */
  readonly names: readonly string[];
  /** For `sh -e`. It ends with the first command that fails. Null without commands. */
  readonly script: string | null;
}

const quote = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;

const FORM =
  "must be a text, a list of texts, or an object of these: a command, or commands that run at the same time.";

const isTexts = (value: Jsonc): value is readonly string[] =>
  Array.isArray(value) && value.every((part) => typeof part === "string");

/** A command in a shell of its own, or without one. Null if there is nothing to do. */
const shellLine = (field: string, command: Jsonc): Result.Result<string | null, string> => {
  if (command === null || command === "") return Result.succeed(null);
  const isShell = typeof command === "string";
  if (!isShell && !isTexts(command)) return Result.fail(`\`${field}\` ${FORM}`);
  const texts: string[] = [];
  for (const text of isShell ? [command] : command) {
    const line = resolveReferences(text);
    if (Result.isFailure(line))
      return Result.fail(`${unresolvedReason(field, line.failure)} In a shell's command, use $NAME.`);
    if (text.includes("\0")) return Result.fail(`\`${field}\` has a NUL character.`);
    texts.push(quote(line.success));
  }
  if (texts.length === 0) return Result.succeed(null);
  return Result.succeed(isShell ? `sh -c ${texts.join("")}` : `sh -c 'exec "$@"' sh ${texts.join(" ")}`);
};

/** All run at the same time. When all have ended, the last failure counts. */
const inParallel = (lines: readonly string[]): readonly string[] => [
  ...lines.map((line, index) => `${line} & p${index}=$!`),
  "failed=0",
  ...lines.map((_line, index) => `wait "$p${index}" || failed=$?`),
  '[ "$failed" = 0 ] || exit "$failed"',
];

/** The lines of one field. */
const shellLines = (field: string, value: Jsonc): Result.Result<readonly string[], string> => {
  const commands = value instanceof Map ? [...value.values()].map((one) => one.value as Jsonc) : [value];
  const lines: string[] = [];
  for (const command of commands) {
    const line = shellLine(field, command);
    if (Result.isFailure(line)) return Result.fail(line.failure);
    if (line.success !== null) lines.push(line.success);
  }
  if (lines.length > PARALLEL_MAX)
    return Result.fail(`\`${field}\` can have at most ${PARALLEL_MAX} commands.`);
  return Result.succeed(lines.length > 1 ? inParallel(lines) : lines);
};

/** Reads the commands that run in a sandbox. */
export const readCommands = (document: JsoncObject): Result.Result<LifecycleCommands, DevcontainerIssue> => {
  const names: string[] = [];
  const script: string[] = [];
  for (const name of COMMANDS) {
    const field = document.get(name);
    if (field === undefined) continue;
    const lines = shellLines(name, field.value);
    if (Result.isFailure(lines)) return Result.fail({ reason: lines.failure, place: field.place });
    if (lines.success.length === 0) continue;
    names.push(name);
    script.push(`echo '# ${name}'`, ...lines.success);
    if (script.join("\n").length > SCRIPT_MAX)
      return Result.fail({
        reason: `\`${name}\` is too long: all commands together can have ${SCRIPT_MAX} characters. Move them into a script of the repository.`,
        place: field.place,
      });
  }
  return Result.succeed({ names, script: names.length === 0 ? null : `${script.join("\n")}\n` });
};
