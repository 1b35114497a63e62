/**
 * devcontainer.json as a project's environment: a stated subset of the format (docs/use/devcontainer.md). A field that
 * would change the sandbox and is not supported is refused by name. Fields of editors are ignored, and so are unknown fields:
 * the format grows.
 */
import { posix } from "node:path";
import * as Result from "effect/Result";
import { readCommands } from "./devcontainer-commands.ts";
import {
  type DevcontainerIssue,
  readVariables,
  resolveReferences,
  unresolvedReason,
  WORKSPACE_FOLDER,
} from "./devcontainer-variables.ts";
import { type DockerfileFields, type EnvironmentFault, readDockerfileFields } from "./environment-source.ts";
import { type Jsonc, type JsoncField, type JsoncObject, parseJsonc } from "./jsonc.ts";
import { fullReference } from "./registry-reference.ts";

/** Where most repositories have it. */
export const DEFAULT_DEVCONTAINER = ".devcontainer/devcontainer.json";
/** Larger files are not read, in bytes. */
export const DEVCONTAINER_LIMIT_BYTES = 256 * 1024;

/** The source of the image. */
export type DevcontainerBuild =
  /** A reference to an image in a registry, with the registry's name. */
  { readonly kind: "image"; readonly image: string } | ({ readonly kind: "dockerfile" } & DockerfileFields);

export interface Devcontainer {
  readonly build: DevcontainerBuild;
  /** The agent gets them. */
  readonly variables: Readonly<Record<string, string>>;
  /** The names of the lifecycle commands that prepare the checkout, in their order. */
  readonly commands: readonly string[];
  /** These commands as a script for `sh -e`. Null without commands. */
  readonly setup: string | null;
  /** Fields that a person may miss: they have no effect. */
  readonly ignored: readonly string[];
}

type Fallible<A> = Result.Result<A, DevcontainerIssue>;

/** Fields that would change the sandbox. Each with what to do. */
const REFUSED: Readonly<Record<string, string>> = {
  features: "Features are not installed. Install the same programs in a Dockerfile, and name it in `build`.",
  dockerComposeFile: "Compose is not supported: a sandbox is one container. Use `image` or `build`.",
  service: "Compose is not supported: a sandbox is one container. Use `image` or `build`.",
  runServices: "Compose is not supported: a sandbox is one container. Use `image` or `build`.",
  mounts: "A sandbox has no mounts of its own. Copy the files in a Dockerfile, or get them in a command.",
  workspaceMount: "The checkout is always mounted at /workspace. Remove it.",
  privileged: "Sandboxes are never privileged. Remove it.",
  capAdd: "Sandboxes get no capabilities. Remove it.",
  securityOpt: "The sandbox's security options are fixed. Remove it.",
  runArgs: "No container engine runs the sandbox, so it takes no arguments. Remove it.",
  initializeCommand: "It would run on the machine of the service. Move it to `onCreateCommand`.",
};
/** Fields without an effect that a person may expect to have one. */
const IGNORED = ["remoteUser", "containerUser", "postAttachCommand"] as const;

/** Nothing is wished: `false`, `null`, an empty text, list or object. */
const isEmpty = (value: Jsonc): boolean =>
  value === null ||
  value === false ||
  value === "" ||
  (Array.isArray(value) && value.length === 0) ||
  (value instanceof Map && value.size === 0);

const issue = ({ place }: JsoncField, reason: string) => Result.fail<DevcontainerIssue>({ reason, place });

const refusedField = (document: JsoncObject): Fallible<null> => {
  for (const [name, field] of document) {
    const remedy = Object.hasOwn(REFUSED, name) ? REFUSED[name] : undefined;
    if (remedy !== undefined && !isEmpty(field.value))
      return issue(field, `\`${name}\` is not supported. ${remedy}`);
  }
  const folder = document.get("workspaceFolder");
  if (folder === undefined) return Result.succeed(null);
  const folderPath = typeof folder.value === "string" ? resolveReferences(folder.value) : Result.fail("");
  return Result.isSuccess(folderPath) && posix.resolve("/", folderPath.success) === WORKSPACE_FOLDER
    ? Result.succeed(null)
    : issue(folder, "`workspaceFolder` can only be /workspace, where the checkout is. Remove it.");
};

/** A text with its references resolved. Null without the field. */
const readText = (fields: JsoncObject, name: string, label: string): Fallible<string | null> => {
  const field = fields.get(name);
  if (field === undefined || field.value === null) return Result.succeed(null);
  if (typeof field.value !== "string" || field.value === "")
    return issue(field, `\`${label}\` must be a text, in quotes.`);
  const expansion = resolveReferences(field.value);
  return Result.isSuccess(expansion)
    ? Result.succeed(expansion.success)
    : issue(field, unresolvedReason(label, expansion.failure));
};

const readImage = (document: JsoncObject, field: JsoncField): Fallible<DevcontainerBuild> => {
  const text = readText(document, "image", "image");
  if (Result.isFailure(text)) return Result.fail(text.failure);
  const image = fullReference(text.success ?? "");
  return image === null
    ? issue(field, "`image` must name an image in a registry, e.g. docker.io/library/node:24.")
    : Result.succeed({ kind: "image", image });
};

const readArgs = (field: JsoncField | undefined): Fallible<Record<string, string>> => {
  if (field === undefined || field.value === null) return Result.succeed({});
  if (!(field.value instanceof Map)) return issue(field, "`build.args` must be an object of texts.");
  const args = new Map<string, string>();
  for (const [name, arg] of field.value as JsoncObject) {
    if (typeof arg.value !== "string") return issue(arg, `\`build.args.${name}\` must be a text, in quotes.`);
    const expansion = resolveReferences(arg.value);
    if (Result.isFailure(expansion))
      return issue(arg, unresolvedReason(`build.args.${name}`, expansion.failure));
    args.set(name, expansion.success);
  }
  return Result.succeed(Object.fromEntries(args));
};

const NO_FIELDS: JsoncObject = new Map();

/** The fields that say how to build: of `build`, and of the document where the format had some of them formerly. */
interface BuildFields {
  /** The one that names the Dockerfile. */
  readonly field: JsoncField;
  /** `dockerfile` and `context`. Their names begin with this prefix, or are those of the former format. */
  readonly places: JsoncObject;
  readonly prefix: string;
  readonly dockerfile: "dockerfile" | "dockerFile";
  /** `target`, `args` and `options`. */
  readonly options: JsoncObject;
}

/** The faults that `[environment]` would have, in this file's words. */
const shownFaults = (
  { prefix, dockerfile: name }: BuildFields,
  faults: readonly EnvironmentFault[],
): string =>
  faults
    .map((fault) => {
      const [part = "", ...below] = fault.path.split(".").slice(1);
      const [first, shown] = part === "dockerfile" || part === "context" ? [prefix, part] : ["build.", part];
      return `\`${[first + (shown === "dockerfile" ? name : shown), ...below].join(".")}\`: ${fault.message}`;
    })
    .join(" ");

const readBuild = (build: BuildFields, directory: string): Fallible<DevcontainerBuild> => {
  const { field, places, prefix, dockerfile: name, options } = build;
  const more = options.get("options");
  if (more !== undefined && !isEmpty(more.value))
    return issue(more, "`build.options` is not supported: no container engine runs the build. Remove it.");
  const dockerfile = readText(places, name, prefix + name);
  if (Result.isFailure(dockerfile)) return Result.fail(dockerfile.failure);
  if (dockerfile.success === null)
    return issue(field, "`build` must name a Dockerfile in `build.dockerfile`.");
  const context = readText(places, "context", `${prefix}context`);
  if (Result.isFailure(context)) return Result.fail(context.failure);
  const target = readText(options, "target", "build.target");
  if (Result.isFailure(target)) return Result.fail(target.failure);
  const args = readArgs(options.get("args"));
  if (Result.isFailure(args)) return Result.fail(args.failure);
  const inRepository = (path: string) => (path.startsWith("/") ? path : posix.join(directory, path));
  const read = readDockerfileFields({
    dockerfile: inRepository(dockerfile.success),
    context: inRepository(context.success ?? "."),
    ...(target.success !== null && { target: target.success }),
    args: args.success,
  });
  return Result.isSuccess(read)
    ? Result.succeed({ kind: "dockerfile", ...read.success })
    : issue(field, shownFaults(build, read.failure));
};

const readSource = (document: JsoncObject, directory: string): Fallible<DevcontainerBuild> => {
  const [image, build, former] = ["image", "build", "dockerFile"].map((name) => document.get(name));
  const options = build === undefined || build.value === null ? NO_FIELDS : build.value;
  if (build !== undefined && !(options instanceof Map))
    return issue(build, "`build` must be an object with a `dockerfile`.");
  const fields = options as JsoncObject;
  if (image !== undefined) {
    const other = former ?? (fields.size > 0 ? build : undefined);
    return other === undefined
      ? readImage(document, image)
      : issue(other, "`image` cannot be combined with `build` and `dockerFile`. Keep one of them.");
  }
  if (former !== undefined) {
    const twice = fields.get("dockerfile") ?? fields.get("context");
    return twice === undefined
      ? readBuild(
          { field: former, places: document, prefix: "", dockerfile: "dockerFile", options: fields },
          directory,
        )
      : issue(twice, "`build.dockerfile` and `dockerFile` cannot be combined. Keep one of them.");
  }
  if (build !== undefined)
    return readBuild(
      { field: build, places: fields, prefix: "build.", dockerfile: "dockerfile", options: fields },
      directory,
    );
  return Result.fail({
    reason: "The file names neither an `image` nor a Dockerfile in `build`. Add one of them.",
    place: { line: 1, column: 1 },
  });
};

const readDocument = (document: JsoncObject, directory: string): Fallible<Devcontainer> => {
  const refusal = refusedField(document);
  if (Result.isFailure(refusal)) return Result.fail(refusal.failure);
  const build = readSource(document, directory);
  if (Result.isFailure(build)) return Result.fail(build.failure);
  const variables = readVariables(document);
  if (Result.isFailure(variables)) return Result.fail(variables.failure);
  const commands = readCommands(document);
  if (Result.isFailure(commands)) return Result.fail(commands.failure);
  const ignoredFields = IGNORED.filter((name) => !isEmpty(document.get(name)?.value ?? null));
  return Result.succeed({
    build: build.success,
    variables: variables.success.variables,
    commands: commands.success.names,
    setup: commands.success.script,
    ignored: [...ignoredFields, ...variables.success.ignored],
  });
};

/**
 * Reads a devcontainer.json. Never throws.
 * @param path the file's path in the repository. Paths in the file are relative to its directory.
 * @returns what it says, or a sentence with the file, the line and the column
 */
export const readDevcontainer = (bytes: Uint8Array, path: string): Result.Result<Devcontainer, string> => {
  if (bytes.length > DEVCONTAINER_LIMIT_BYTES)
    return Result.fail(`${path}: The file is larger than ${DEVCONTAINER_LIMIT_BYTES} bytes.`);
  const document = parseJsonc(bytes);
  const read = Result.isSuccess(document)
    ? readDocument(document.success, posix.dirname(path))
    : Result.fail(document.failure);
  return Result.mapError(read, ({ reason, place }) =>
    place === null ? `${path}: ${reason}` : `${path}, line ${place.line}, column ${place.column}: ${reason}`,
  );
};
