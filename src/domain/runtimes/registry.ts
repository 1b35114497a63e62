/**
 * An entry of a registry of agents, in the form of the Agent Client Protocol's own (`registry.json`): what `platform runtimes add` takes, or
 * why it cannot.
 *
 *  E1 Each file has a checksum. An archive has that of its entry, or the operator gives one. npm has one for each package.
 *  E2 An entry starts a program of its own files, and sets no variable that is the platform's.
 */
import { posix } from "node:path";
import * as Result from "effect/Result";
import * as Schema from "effect/Schema";
import { nearest } from "../../ground/nearest.ts";
import { isNpmName } from "../environment/packages.ts";
import { checkSecretName } from "../secret/secret.ts";
import { isExactVersion, isRuntimeName, machineName } from "./installed.ts";
import { hasRecord } from "./runtimes.ts";

const Start = {
  args: Schema.optionalKey(Schema.Array(Schema.String)),
  env: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
};
const Binary = Schema.Struct({
  archive: Schema.String,
  sha256: Schema.optionalKey(Schema.String),
  cmd: Schema.String,
  ...Start,
});
const Package = Schema.Struct({ package: Schema.String, cmd: Schema.optionalKey(Schema.String), ...Start });
const Entry = Schema.Struct({
  id: Schema.String,
  version: Schema.String,
  distribution: Schema.Struct({
    binary: Schema.optionalKey(Schema.Record(Schema.String, Binary)),
    npx: Schema.optionalKey(Package),
    uvx: Schema.optionalKey(Package),
  }),
});
/** Entries are read one by one, so that one of another form is no obstacle for the others. */
const Registry = Schema.Struct({ agents: Schema.Array(Schema.Unknown) });

const decodeRegistry = Schema.decodeUnknownOption(Schema.fromJsonString(Registry));
const decodeId = Schema.decodeUnknownOption(Schema.Struct({ id: Schema.String }));
const decodeEntry = Schema.decodeUnknownResult(Entry);

/** What follows the program in its command, and its variables. */
interface Started {
  readonly args: readonly string[];
  readonly variables: Readonly<Record<string, string>>;
}

/** An archive for this machine. */
export interface ArchiveSource extends Started {
  readonly kind: "archive";
  readonly url: URL;
  /** `sha256:…`, in hexadecimal digits. */
  readonly checksum: string | null;
  /** The program's path in the archive, normalised. */
  readonly program: string;
}

/** A package of npm. */
export interface PackageSource extends Started {
  readonly kind: "package";
  readonly name: string;
  readonly version: string;
  /** One of the package's commands. Null means the one that npm itself would choose. */
  readonly program: string | null;
}

export interface RegistryEntry {
  readonly id: string;
  readonly version: string;
  readonly source: ArchiveSource | PackageSource;
}

type Read<A> = Result.Result<A, string>;

const listNames = (names: readonly string[]): string => names.join(", ");

const readStart = ({ args = [], env = {} }: (typeof Package | typeof Binary)["Type"]): Read<Started> => {
  const refusedName = Object.keys(env).find((name) => checkSecretName(name) !== null);
  return refusedName === undefined
    ? Result.succeed({ args, variables: env })
    : Result.fail(`It sets the variable ${refusedName}, which an agent's start may not set.`);
};

/** A checksum in hexadecimal digits. */
const SHA256 = /^[0-9a-f]{64}$/;

const readArchive = ({ archive, sha256, cmd, ...start }: typeof Binary.Type): Read<ArchiveSource> => {
  const url = URL.parse(archive);
  if (url === null || !/^https?:$/.test(url.protocol))
    return Result.fail(`${archive} is no address of an archive: it must begin with https://.`);
  const digits = sha256?.toLowerCase();
  if (digits !== undefined && !SHA256.test(digits))
    return Result.fail(`Its sha256 is no checksum in 64 hexadecimal digits.`);
  const program = posix.normalize(cmd);
  if (posix.isAbsolute(program) || program === "." || program.startsWith(".."))
    return Result.fail(`Its program ${cmd} is not a file of its archive.`);
  const checksum = digits === undefined ? null : `sha256:${digits}`;
  return Result.map(readStart({ ...start, archive, cmd }), (ownStart) => ({
    kind: "archive",
    url,
    checksum,
    program,
    ...ownStart,
  }));
};

const readPackage = (record: typeof Package.Type): Read<PackageSource> => {
  const at = record.package.lastIndexOf("@");
  const [name, version] = [record.package.slice(0, at), record.package.slice(at + 1)];
  if (at < 1 || !isExactVersion(version))
    return Result.fail(`Its package ${record.package} names no exact version of npm.`);
  // npm takes such names for options and for files.
  if (!isNpmName(name) || /^[-.]/.test(name))
    return Result.fail(`Its package ${record.package} has no name of npm.`);
  return Result.map(readStart(record), (ownStart) => ({
    kind: "package",
    name,
    version,
    program: record.cmd ?? null,
    ...ownStart,
  }));
};

const PYTHON =
  "It comes from packages of Python only (uvx). The entry names no checksums of them, so they cannot be taken by integrity, and they need a Python that not every sandbox has. " +
  "Install the program in the Dockerfile of the project's environment, and name it in command of an agent with the runtime acp.";

/** npm before an archive: npm has a checksum of each file, and a program in JavaScript runs in more images. */
const readSource = (
  { npx, binary, uvx }: (typeof Entry.Type)["distribution"],
  machine: string,
): Read<RegistryEntry["source"]> => {
  if (npx !== undefined) return readPackage(npx);
  const archive = binary?.[machine];
  if (archive !== undefined) return readArchive(archive);
  if (binary !== undefined)
    return Result.fail(
      `It is for other machines: ${listNames(Object.keys(binary))}. This machine is ${machine}.`,
    );
  return Result.fail(uvx === undefined ? "It has no distribution that can be added." : PYTHON);
};

export interface EntryWish {
  readonly id: string;
  /** Null means the one that the registry has. */
  readonly version: string | null;
  /** The processor, as Node names it. */
  readonly arch: string;
}

/**
 * Reads one entry of a registry.
 * @returns or the reason why it cannot be added to this machine, as sentences
 */
export const readEntry = (text: string, { id, version, arch }: EntryWish): Read<RegistryEntry> => {
  if (hasRecord(id))
    return Result.fail(`${id} is a runtime that the platform knows by itself. Add it without --registry.`);
  const registry = decodeRegistry(text.replace(/^\uFEFF/, ""));
  if (registry._tag === "None")
    return Result.fail("It is no registry of agents: it must be JSON with a list agents.");
  const entries = new Map(
    registry.value.agents.flatMap((agent) => {
      const idField = decodeId(agent);
      return idField._tag === "None" ? [] : [[idField.value.id, agent] as const];
    }),
  );
  const listing = entries.get(id);
  if (listing === undefined) {
    const near = nearest(id, [...entries.keys()]);
    return Result.fail(`It has no agent ${id}.${near === null ? "" : ` Did you mean ${near}?`}`);
  }
  const entry = decodeEntry(listing);
  if (Result.isFailure(entry))
    return Result.fail(`Its entry ${id} does not have the registry's form: ${entry.failure.message}`);
  const { version: present, distribution } = entry.success;
  if (!isRuntimeName(id) || !isExactVersion(present))
    return Result.fail(`Its entry ${id} has no name and exact version that a directory can have: ${present}`);
  if (version !== null && version !== present) return Result.fail(`It has ${id} ${present}, not ${version}.`);
  const source = readSource(distribution, `linux-${machineName(arch)}`);
  return Result.isFailure(source)
    ? Result.fail(`${id} ${present} cannot be added. ${source.failure}`)
    : Result.succeed({ id, version: present, source: source.success });
};
