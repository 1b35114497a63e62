/**
 * What devcontainer.json says about variables: references in its texts (`${containerWorkspaceFolder}`), and `containerEnv`
 * and `remoteEnv`, which the agent gets.
 */
import * as Result from "effect/Result";
import type { Jsonc, JsoncObject, JsoncPlace } from "./jsonc.ts";
import { checkSecretName } from "../secret/secret.ts";

/** A part of the file that cannot be used: why, and where. */
export interface DevcontainerIssue {
  readonly reason: string;
  readonly place: JsoncPlace;
}

/** Where the checkout is in each sandbox. */
export const WORKSPACE_FOLDER = "/workspace";
const BASENAME = "workspace";

/** Variables: how many, and all names and values together, in characters. */
const VARIABLES_MAX = 100;
const VARIABLES_TEXT_MAX = 32 * 1024;
const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;

const FOLDERS: ReadonlyMap<string, string> = new Map([
  ["localWorkspaceFolder", WORKSPACE_FOLDER],
  ["containerWorkspaceFolder", WORKSPACE_FOLDER],
  ["localWorkspaceFolderBasename", BASENAME],
  ["containerWorkspaceFolderBasename", BASENAME],
]);
/** References that no sandbox can resolve. Others, e.g. `${HOME}`, are not ours: a shell may know them. */
const UNKNOWN = /^(?:env:|localEnv:|containerEnv:|devcontainerId$)/;
/** A variable of a person's computer, with a default. */
const WITH_DEFAULT = /^(?:env|localEnv):[^:]*:/;

/**
 * Puts values in the place of references. A sandbox has no variables of a person's computer, so `${localEnv:NAME:default}`
 * is its default.
 * @returns the text, or the first reference that has no value
 */
export const resolveReferences = (text: string): Result.Result<string, string> => {
  let unknownReference: string | null = null;
  const result = text.replaceAll(/\$\{([^{}]*)\}/g, (reference, name: string) => {
    const folder = FOLDERS.get(name);
    if (folder !== undefined) return folder;
    const [start] = WITH_DEFAULT.exec(name) ?? [];
    if (start !== undefined) return name.slice(start.length);
    if (UNKNOWN.test(name)) unknownReference ??= reference;
    return reference;
  });
  return unknownReference === null ? Result.succeed(result) : Result.fail(unknownReference);
};

/** Why a reference has no value. */
export const unresolvedReason = (field: string, reference: string): string =>
  `\`${field}\` refers to ${reference}, which has no value in a sandbox. Write the value itself.`;

export interface DevcontainerVariables {
  readonly variables: Readonly<Record<string, string>>;
  /** Fields that have no effect, e.g. `containerEnv.GITHUB_TOKEN`. */
  readonly ignored: readonly string[];
}

const checkVariableName = (field: string, name: string): string | null => {
  if (!NAME.test(name))
    return `\`${field}\` has a variable whose name is not usable. A name has at most 128 letters, digits and _, and does not begin with a digit.`;
  const issue = checkSecretName(name.toUpperCase());
  if (issue === null) return null;
  const remedy = /^path$/i.test(name) ? "Set it with ENV in a Dockerfile." : "Remove it.";
  return `\`${field}\` cannot set ${name}, because the sandbox or its programs use it. ${remedy}`;
};

/** Reads one value. Null if it has no effect. */
const readValue = (field: string, name: string, value: Jsonc): Result.Result<string | null, string> => {
  if (value === null && field === "remoteEnv") return Result.succeed(null);
  if (typeof value !== "string" || value.includes("\0"))
    return Result.fail(`The value of ${name} in \`${field}\` must be a text, in quotes.`);
  // A person's own key, for example. Here the project's secret of that name has the value.
  return Result.succeed(Result.getOrElse(resolveReferences(value), () => null));
};

/**
 * Reads `containerEnv` and `remoteEnv`. `remoteEnv` overrides `containerEnv`. A variable whose value refers to something
 * that a sandbox does not have is left out.
 */
export const readVariables = (
  document: JsoncObject,
): Result.Result<DevcontainerVariables, DevcontainerIssue> => {
  const variables = new Map<string, string>();
  const ignoredNames: string[] = [];
  for (const field of ["containerEnv", "remoteEnv"]) {
    const object = document.get(field);
    if (object === undefined || object.value === null) continue;
    if (!(object.value instanceof Map))
      return Result.fail({ reason: `\`${field}\` must be an object of texts.`, place: object.place });
    for (const [name, { value, place }] of object.value as JsoncObject) {
      const wrong = checkVariableName(field, name);
      if (wrong !== null) return Result.fail({ reason: wrong, place });
      const read = readValue(field, name, value);
      if (Result.isFailure(read)) return Result.fail({ reason: read.failure, place });
      if (read.success !== null) variables.set(name, read.success);
      else if (!variables.delete(name)) ignoredNames.push(`${field}.${name}`);
    }
    const length = [...variables].reduce((sum, [name, value]) => sum + name.length + value.length, 0);
    if (variables.size > VARIABLES_MAX || length > VARIABLES_TEXT_MAX)
      return Result.fail({
        reason: `\`${field}\` has too many variables. At most ${VARIABLES_MAX} variables with ${VARIABLES_TEXT_MAX} characters together are possible.`,
        place: object.place,
      });
  }
  return Result.succeed({ variables: Object.fromEntries(variables), ignored: ignoredNames });
};
