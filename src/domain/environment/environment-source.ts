/** The environment of a project: `[environment]` of platform.toml, and the key of a build. */
import { createHash } from "node:crypto";
import * as Result from "effect/Result";
import { IMAGE_REFERENCE_RULE, isImageReference } from "./image.ts";
import { checkSecretName } from "../secret/secret.ts";

/** The Dockerfile that a project has without naming one. */
export const DEFAULT_DOCKERFILE = ".platform/Dockerfile";
/** Longer paths are refused, in characters. */
const PATH_MAX = 1024;
/** Build arguments: how many, and all names and values together, in characters. */
const ARGS_MAX = 100;
const ARGS_TEXT_MAX = 32 * 1024;
/** How many secrets a build can have. */
const SECRETS_MAX = 20;

/** What `[environment]` and devcontainer.json say about a Dockerfile of the repository. */
export interface DockerfileFields {
  /** Its path in the repository. It is in the context. */
  readonly dockerfile: string;
  /** The directory that the build sees. Empty: the whole repository. */
  readonly context: string;
  /** The stage. Null means the last one. */
  readonly target: string | null;
  readonly args: Readonly<Record<string, string>>;
}

/** A Dockerfile of the project's repository, and how it is built. */
export interface DockerfileSource extends DockerfileFields {
  /** Names of the project's secrets that the build can mount. Absent: none. */
  readonly secrets?: readonly string[];
  /** The devcontainer.json that says so. Absent: `platform.toml` does. */
  readonly devcontainer?: DevcontainerSource;
}

/** What a devcontainer.json at one commit says (devcontainer.ts). */
export interface DevcontainerSource {
  /** Its path in the repository. The build does not see the file. */
  readonly path: string;
  /** The registry's image that is used as it is. Null if a Dockerfile is built. Then `dockerfile` is this file's path. */
  readonly image: string | null;
  readonly variables: Readonly<Record<string, string>>;
  readonly commands: readonly string[];
  readonly setup: string | null;
  readonly ignored: readonly string[];
}

/** What a manifest says. */
export type ManifestEnvironment =
  | { readonly kind: "image"; readonly image: string }
  /** The path of a devcontainer.json, and the secrets that its build can mount. */
  | { readonly kind: "devcontainer"; readonly path: string; readonly secrets?: readonly string[] }
  /** `isNamed` is false if the manifest says nothing: then the default Dockerfile counts only if it exists. */
  | ({ readonly kind: "dockerfile"; readonly isNamed: boolean } & DockerfileSource);

/** A Dockerfile, or a devcontainer.json, at one commit. Equal keys build equal images. */
export interface BuildSource extends DockerfileSource {
  readonly commit: string;
  /** 64 hexadecimal digits. */
  readonly key: string;
}

export const DEFAULT_ENVIRONMENT: ManifestEnvironment = {
  kind: "dockerfile",
  isNamed: false,
  dockerfile: DEFAULT_DOCKERFILE,
  context: ".platform",
  target: null,
  args: {},
};

/** A field that is wrong: its path in the manifest, and a sentence. */
export interface EnvironmentFault {
  readonly path: string;
  readonly message: string;
}

const FIELDS = [
  "image",
  "devcontainer",
  "dockerfile",
  "context",
  "target",
  "args",
  "secrets",
  "setup",
  "warm",
] as const;

/** A value, or everything that is wrong with it. */
type Read<A> = Result.Result<A, readonly EnvironmentFault[]>;

const fault = (path: string, message: string) =>
  Result.fail<readonly EnvironmentFault[]>([{ path, message }]);

/** The faults of several values. */
export const faultsIn = (...values: readonly Read<unknown>[]): readonly EnvironmentFault[] =>
  values.flatMap((value) => (Result.isFailure(value) ? value.failure : []));

// eslint-disable-next-line no-control-regex -- the point
const REFUSED = /[\0-\x1f\x7f\\]/;

/**
 * A path in the repository in its plain form. The root is the empty text.
 * @returns null if it is absolute, leads out of the repository, or has characters that no path needs
 */
const repositoryPath = (value: unknown): string | null => {
  if (typeof value !== "string" || value.length > PATH_MAX || REFUSED.test(value)) return null;
  if (value.startsWith("/")) return null;
  const parts = value.split("/").filter((part) => part !== "" && part !== ".");
  return parts.some((part) => part === ".." || part.toLowerCase() === ".git") ? null : parts.join("/");
};

const PATH_RULE = "Give a path in the repository, without `..`.";
const ARG_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
const TARGET = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/;

const argFault = ([name, value]: readonly [string, unknown]): Read<unknown> => {
  const path = `environment.args.${name}`;
  if (!ARG_NAME.test(name))
    return fault(
      path,
      "The name of an argument has only letters, digits and _, and does not begin with a digit.",
    );
  return typeof value !== "string" || value.includes("\0")
    ? fault(path, "The value of an argument must be a string, in quotes.")
    : Result.succeed(value);
};

const readArgs = (args: unknown): Read<Record<string, string>> => {
  if (typeof args !== "object" || args === null || Array.isArray(args))
    return fault("environment.args", "Write the arguments as a table, [environment.args].");
  const entries = Object.entries(args);
  if (entries.length > ARGS_MAX)
    return fault("environment.args", `A build can have at most ${ARGS_MAX} arguments.`);
  const faults = faultsIn(...entries.map(argFault));
  if (faults.length > 0) return Result.fail(faults);
  if (entries.flat().join("").length > ARGS_TEXT_MAX)
    return fault("environment.args", `All arguments together can have at most ${ARGS_TEXT_MAX} characters.`);
  return Result.succeed(Object.fromEntries(entries) as Record<string, string>);
};

const readSecrets = (value: unknown): Read<readonly string[]> => {
  const path = "environment.secrets";
  if (!Array.isArray(value) || value.length > SECRETS_MAX)
    return fault(path, `Give a list of at most ${SECRETS_MAX} names of secrets.`);
  const faults = value.flatMap((name: unknown, index): EnvironmentFault[] => {
    const message =
      typeof name === "string" ? checkSecretName(name)?.message : "Give the name of a secret, in quotes.";
    return message === undefined ? [] : [{ path: `${path}[${index}]`, message }];
  });
  return faults.length > 0
    ? Result.fail(faults)
    : Result.succeed([...new Set(value as readonly string[])].toSorted());
};

const parentDirectory = (path: string): string => path.split("/").slice(0, -1).join("/");

const isWithin = (path: string, directory: string): boolean =>
  directory === "" || path.startsWith(`${directory}/`);

type Fields = Readonly<Record<string, unknown>>;

const readFile = (value: unknown, path: string): Read<string> => {
  const file = repositoryPath(value);
  return file === null || file === "" ? fault(path, PATH_RULE) : Result.succeed(file);
};

/** @param dockerfile null if it is wrong itself */
const readContext = (value: unknown, dockerfile: string | null): Read<string> => {
  const context = repositoryPath(value ?? parentDirectory(dockerfile ?? ""));
  if (context === null) return fault("environment.context", PATH_RULE);
  return dockerfile === null || isWithin(dockerfile, context)
    ? Result.succeed(context)
    : fault(
        "environment.context",
        `The Dockerfile ${dockerfile} is not in the context. Choose a directory that has it, e.g. ".".`,
      );
};

const readTarget = (target: unknown): Read<string | null> =>
  target === null || (typeof target === "string" && TARGET.test(target))
    ? Result.succeed(target)
    : fault("environment.target", "Give the name of a stage of the Dockerfile.");

/**
 * Reads the fields of a Dockerfile. A fault's path begins with `environment.`.
 * @param fields `dockerfile`, `context`, `target` and `args`, as they are written
 */
export const readDockerfileFields = (fields: Fields): Read<DockerfileFields> => {
  const dockerfile = readFile(fields["dockerfile"] ?? DEFAULT_DOCKERFILE, "environment.dockerfile");
  const context = readContext(fields["context"], Result.getOrNull(dockerfile));
  const target = readTarget(fields["target"] ?? null);
  const args = readArgs(fields["args"] ?? {});
  return Result.all({ dockerfile, context, target, args }).pipe(
    Result.mapError(() => faultsIn(dockerfile, context, target, args)),
  );
};

/** How many unknown fields are told. */
const UNKNOWN_MAX = 10;

const unknownFaults = (fields: Fields): readonly EnvironmentFault[] => {
  const knownFields = FIELDS.map((name) => `\`${name}\``).join(", ");
  return Object.keys(fields)
    .filter((name) => !(FIELDS as readonly string[]).includes(name))
    .slice(0, UNKNOWN_MAX)
    .map((name) => ({
      path: `environment.${name}`,
      message: `Unknown field \`${name}\`. [environment] has ${knownFields}.`,
    }));
};

/** What cannot stand beside `image`, or beside `devcontainer`. */
const conflictFaults = ({
  image,
  setup: _setup,
  warm: _warm,
  devcontainer,
  secrets,
  ...fields
}: Fields): readonly EnvironmentFault[] => {
  const build = { ...(devcontainer !== undefined && { devcontainer }), ...fields };
  const others = image === undefined ? fields : { ...build, ...(secrets !== undefined && { secrets }) };
  if (image === undefined && devcontainer === undefined) return [];
  return Object.keys(others)
    .filter((name) => (FIELDS as readonly string[]).includes(name))
    .map((name) => ({
      path: `environment.${name}`,
      message:
        image === undefined
          ? `\`devcontainer\` cannot be combined with \`${name}\`. Remove one of them. The file says what is built.`
          : `\`image\` cannot be combined with what is built. Remove \`${name}\` or \`image\`.`,
    }));
};

const readImage = (image: unknown): Read<string> =>
  typeof image === "string" && isImageReference(image)
    ? Result.succeed(image)
    : fault("environment.image", IMAGE_REFERENCE_RULE);

/**
 * Reads `[environment]`.
 * @param table the parsed value. Undefined: the manifest has none.
 */
export const readEnvironment = (table: unknown): Read<ManifestEnvironment> => {
  if (table === undefined) return Result.succeed(DEFAULT_ENVIRONMENT);
  if (typeof table !== "object" || table === null || Array.isArray(table))
    return fault("environment", "Write the environment as a table, [environment].");
  const fields = table as Fields;
  const { image, devcontainer, setup: _setup, warm: _warm, ...built } = fields;
  const dockerfile = readDockerfileFields(built);
  const secrets = readSecrets(built["secrets"] ?? []);
  const imageRead = image === undefined ? Result.succeed(null) : readImage(image);
  const path =
    devcontainer === undefined ? Result.succeed(null) : readFile(devcontainer, "environment.devcontainer");
  const read = Result.all({ named: imageRead, path, dockerfile, secrets });
  const faults = [
    ...unknownFaults(fields),
    ...conflictFaults(fields),
    ...faultsIn(imageRead, path, dockerfile, secrets),
  ];
  if (Result.isFailure(read) || faults.length > 0) return Result.fail(faults);
  const mount = read.success.secrets.length > 0 && { secrets: read.success.secrets };
  if (read.success.named !== null) return Result.succeed({ kind: "image", image: read.success.named });
  if (read.success.path !== null)
    return Result.succeed({ kind: "devcontainer", path: read.success.path, ...mount });
  const isNamed = Object.keys(built).length > 0;
  return Result.succeed({ kind: "dockerfile", isNamed, ...read.success.dockerfile, ...mount });
};

/** The longest setup command, in characters. */
const SETUP_MAX = 8192;

/**
 * Reads `setup` of an `[environment]`: the command that prepares each new sandbox's checkout. It is not part of the image.
 *
 * @returns null without one
 */
export const readSetup = (table: unknown): Read<string | null> => {
  const { setup = null } = (table ?? {}) as Fields;
  if (setup === null) return Result.succeed(null);
  return typeof setup === "string" &&
    setup.trim() !== "" &&
    setup.length <= SETUP_MAX &&
    !setup.includes("\0")
    ? Result.succeed(setup)
    : fault(
        "environment.setup",
        `\`setup\` in [environment] must be a string of at most ${SETUP_MAX} characters.`,
      );
};

/** The most sandboxes of a project that wait for a session, on each node. */
export const WARM_MAX = 10;

/**
 * Reads `warm` of an `[environment]`: how many sandboxes are started before a session needs them.
 *
 * @returns 0 without one
 */
export const readWarm = (table: unknown): Read<number> => {
  const { warm = 0 } = (table ?? {}) as Fields;
  return typeof warm === "number" && Number.isInteger(warm) && warm >= 0 && warm <= WARM_MAX
    ? Result.succeed(warm)
    : fault("environment.warm", `\`warm\` in [environment] must be a whole number from 0 to ${WARM_MAX}.`);
};

/** Raise it if the same source must be built anew, because the builder makes something else of it. */
const BUILD_FORMAT = 1;

/** The objects of git that a build reads: of the Dockerfile, and of the whole context. */
export interface SourceObjects {
  readonly dockerfile: string | null;
  readonly context: string | null;
}

/**
 * The key of a build: whatever the build reads is part of it, and nothing else. Of a devcontainer.json the build reads only
 * what names its image or Dockerfile.
 * @param objects without the devcontainer.json, if the source has one
 */
export const buildKey = (
  { dockerfile, context, target, args, secrets, devcontainer }: DockerfileSource,
  objects: SourceObjects,
): string => {
  const sortedArgs = Object.entries(args).toSorted(([one], [other]) => (one < other ? -1 : 1));
  const image = devcontainer?.image ?? null;
  const parts: unknown[] =
    image === null
      ? [BUILD_FORMAT, dockerfile, objects.dockerfile, context, objects.context, target, sortedArgs]
      : [BUILD_FORMAT, "image", image];
  // Names of secrets, not values: a new value builds nothing.
  if (secrets !== undefined) parts.push(secrets);
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
};
