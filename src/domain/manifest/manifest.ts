/**
 * The manifest `platform.toml` (spec.md 2.4, 7.2; api.md 4): triggers, their filters, connectors, the agent's config
 * directory and the names of the secrets that a project uses. Reading it never throws: an unreadable file is one fatal error with its
 * line, and a bad part is an error beside the good parts.
 *
 * This file knows neither which agents have a file nor which runtimes the installation offers. The caller that reads the
 * repository looks up `agentFile(configDir, agent)` for each trigger's agent that needs one, and `withAgents` completes the errors.
 */
import * as Result from "effect/Result";
import { agentNamed, needsNoFile } from "../agents/agents.ts";
import type { OfferedRuntimes } from "../runtimes/runtimes.ts";
import { agentFile } from "../sandbox/agent.ts";
import { DEFAULT_CONFIG_DIR, parseConfigDir } from "./config-dir.ts";
import {
  DEFAULT_ENVIRONMENT,
  faultsIn,
  readEnvironment,
  readSetup,
  readWarm,
  type ManifestEnvironment,
} from "../environment/environment-source.ts";
import { NO_CONNECTORS, type Executor } from "../connector/connector.ts";
import { NO_AGENTS, offeredAgents, readAgents, type ManifestAgents } from "./manifest-agents.ts";
import { readExecutor } from "./manifest-connectors.ts";
import { headerLines, lineMatching, type EntryPlace, type ManifestError } from "./manifest-error.ts";
import { withFilters } from "./manifest-filters.ts";
import { mistypedNames } from "./mistyped.ts";
import { checkSecretName } from "../secret/secret.ts";
import { parseToml, type Table } from "./toml.ts";
import { readTriggerEntry } from "../trigger/trigger.ts";
import type { EntryFault, TriggerDefinition } from "../trigger/trigger.ts";
import { quantity } from "../counted.ts";

/** The manifest's path in a repository. */
export const MANIFEST_FILE = "platform.toml";
/** Larger files are not parsed: the parser overflows on hostile ones (threats.md M07). */
export const MANIFEST_LIMIT_BYTES = 1024 * 1024;
/** The most entries in one manifest (threats.md M08). */
export const TRIGGER_LIMIT = 1000;
/** The most names in each list of `[env]`. */
const ENV_LIMIT = 1000;

export interface Manifest {
  readonly triggers: readonly TriggerDefinition[];
  /** Where each slug is first used in the file, by a valid or an invalid entry. */
  readonly places: ReadonlyMap<string, EntryPlace>;
  readonly errors: readonly ManifestError[];
  /** The secrets that the project names. `errors` lists the invalid names. */
  readonly env: { readonly required: readonly string[]; readonly optional: readonly string[] };
  /** The root file system of the project's sandboxes. A wrong `[environment]` is fatal. */
  readonly environment: ManifestEnvironment;
  /** The tables of agents. */
  readonly agents: ManifestAgents;
  /** The remote servers whose tools the agents may use. */
  readonly executor: Executor;
  /** The shell command that prepares the checkout in each new sandbox. */
  readonly setup: string | null;
  /** How many sandboxes wait for a session on each node. */
  readonly warm: number;
  /** Relative to the checkout, normalised. The default if the setting is missing or invalid. */
  readonly configDir: string;
  /** The whole file was refused: the triggers of the last good manifest stay in force (api.md 4). */
  readonly fatal: boolean;
}

/**
 * Reads a manifest.
 *
 * @param bytes the file. Empty bytes, also used for a missing file, are a manifest without triggers.
 */
export const parseManifest = (bytes: Uint8Array): Manifest => {
  if (bytes.length > MANIFEST_LIMIT_BYTES) {
    return unreadable(`${MANIFEST_FILE} is larger than ${MANIFEST_LIMIT_BYTES} bytes.`, null);
  }
  const document = parseToml(bytes);
  if (Result.isFailure(document)) {
    const { what, line } = document.failure;
    return unreadable(`${MANIFEST_FILE} ${what}.`, { path: null, line });
  }
  const text = new TextDecoder().decode(bytes);
  const entries = ownField(document.success, "triggers") ?? [];
  if (!Array.isArray(entries)) {
    return unreadable("Write each trigger as its own table with double brackets, [[triggers]].", {
      path: "triggers",
      line: lineMatching(text, /^[ \t]*(?:\[[ \t]*)?triggers\b/),
    });
  }
  const table = ownField(document.success, "environment");
  const [environment, setup, warm] = [readEnvironment(table), readSetup(table), readWarm(table)];
  if (Result.isFailure(environment) || Result.isFailure(setup) || Result.isFailure(warm)) {
    const line = lineMatching(text, /^[ \t]*(?:\[{1,2}[ \t]*)?environment\b/);
    const faults = faultsIn(environment, setup, warm);
    return refusedManifest(
      faults.map(({ path, message }) => ({ slug: null, index: null, path, message, line })),
    );
  }
  const read = readTriggers(entries, headerLines(text, "triggers", entries.length));
  const webhookTriggers = withFilters(read, ownField(document.success, "webhooks"), text);
  const configDir = readConfigDir(document.success, text);
  const env = readEnv(document.success, text);
  const agents = readAgents(ownField(document.success, "agents"), text);
  const { executor, errors: executorErrors } = readExecutor(
    {
      executor: ownField(document.success, "executor"),
      connectors: ownField(document.success, "connectors"),
    },
    text,
  );
  return {
    triggers: webhookTriggers.triggers,
    places: read.places,
    errors: [
      ...[configDir, env, agents, { errors: executorErrors }, read, webhookTriggers].flatMap(
        ({ errors }) => errors,
      ),
      ...mistypedNames(document.success, text),
    ],
    env: { required: env.required, optional: env.optional },
    environment: environment.success,
    agents: agents.agents,
    executor,
    setup: setup.success,
    warm: warm.success,
    configDir: configDir.path,
    fatal: false,
  };
};

/**
 * Adds the errors of agents that this installation cannot start, and moves triggers whose agent does not exist or has an error
 * to the errors.
 *
 * @param known the names of agents that have files, and the runtimes
 */
export const withAgents = (
  manifest: Manifest,
  { files, offered }: { readonly files: ReadonlySet<string>; readonly offered: OfferedRuntimes },
): Manifest => {
  const { agents, errors } = offeredAgents(manifest.agents, offered);
  const agentProblem = ({ agent }: TriggerDefinition): string | null => {
    if (!needsNoFile(agents, agent) && !files.has(agent))
      return `The agent ${agent} has no table [agents.${agent}] and no file ${agentFile(manifest.configDir, agent)}.`;
    const match = agentNamed(agents, agent, offered);
    return Result.isSuccess(match) ? null : `The agent ${agent} has an error: ${match.failure}`;
  };
  const problems = new Map(
    manifest.triggers.flatMap((trigger) => {
      const problem = agentProblem(trigger);
      return problem === null ? [] : [[trigger, problem] as const];
    }),
  );
  return {
    ...manifest,
    triggers: manifest.triggers.filter((trigger) => !problems.has(trigger)),
    errors: [
      ...manifest.errors,
      ...errors,
      ...[...problems].map(([{ slug }, message]) => {
        const { index = null, line = null } = manifest.places.get(slug) ?? {};
        return { slug, index, path: `triggers[${index}].agent`, message, line };
      }),
    ],
  };
};

const unreadable = (message: string, where: { path: string | null; line: number | null } | null): Manifest =>
  refusedManifest([
    { slug: null, index: null, path: where?.path ?? null, message, line: where?.line ?? null },
  ]);

const refusedManifest = (errors: readonly ManifestError[]): Manifest => ({
  triggers: [],
  places: new Map(),
  errors,
  env: { required: [], optional: [] },
  environment: DEFAULT_ENVIRONMENT,
  agents: NO_AGENTS,
  executor: NO_CONNECTORS,
  setup: null,
  warm: 0,
  configDir: DEFAULT_CONFIG_DIR,
  fatal: true,
});

/** Why the whole file is refused, as one error: it names each mistake. Null if it is not. */
export const fatalError = ({ fatal, errors }: Manifest): ManifestError | null => {
  const [first, ...others] = fatal ? errors : [];
  if (first === undefined) return null;
  if (others.length === 0) return first;
  const message = [first, ...others].map((error) => `${error.path}: ${error.message}`).join(" ");
  return { ...first, path: "environment", message };
};

const readTriggers = (
  entries: readonly unknown[],
  lines: readonly number[] | null,
): Pick<Manifest, "triggers" | "places" | "errors"> => {
  const triggers: TriggerDefinition[] = [];
  const errors: ManifestError[] = [];
  const places = new Map<string, EntryPlace>();
  for (const [index, entry] of entries.slice(0, TRIGGER_LIMIT).entries()) {
    const slug = writtenSlug(entry);
    const line = lines?.[index] ?? null;
    const place = slug === null ? undefined : places.get(slug);
    const read = readTriggerEntry(entry);
    const faults: EntryFault[] = Result.isFailure(read) ? [...read.failure] : [];
    if (slug !== null && place === undefined) places.set(slug, { index, line });
    if (place !== undefined) {
      faults.push({
        field: "slug",
        message: `slug ${slug} is already used by triggers[${place.index}]. Choose another slug.`,
      });
    }
    if (Result.isSuccess(read) && place === undefined) triggers.push(read.success);
    for (const { field, message } of faults) {
      const path = field === null ? `triggers[${index}]` : `triggers[${index}].${field}`;
      errors.push({ slug, index, path, message, line });
    }
  }
  if (entries.length > TRIGGER_LIMIT) {
    const message = `A manifest can have at most ${TRIGGER_LIMIT} triggers. The last ${quantity(entries.length - TRIGGER_LIMIT, "is", "are")} ignored.`;
    const line = lines?.[TRIGGER_LIMIT] ?? null;
    errors.push({ slug: null, index: TRIGGER_LIMIT, path: "triggers", message, line });
  }
  return { triggers, places, errors };
};

/** The slug as written in an entry, even an invalid one, for the listing. Null if the text is missing or too long. */
const writtenSlug = (entry: unknown): string | null => {
  const slug = ownField(entry, "slug");
  return typeof slug === "string" && slug !== "" && slug.length <= 128 ? slug : null;
};

const readConfigDir = (
  document: Table,
  text: string,
): { readonly path: string; readonly errors: readonly ManifestError[] } => {
  const value = ownField(ownField(document, "runtime"), "config_dir");
  if (value === undefined) return { path: DEFAULT_CONFIG_DIR, errors: [] };
  const path = parseConfigDir(value);
  if (Result.isSuccess(path)) return { path: path.success, errors: [] };
  const line = lineMatching(text, /^[ \t]*(?:runtime[ \t]*\.[ \t]*)?config_dir\b/);
  return {
    path: DEFAULT_CONFIG_DIR,
    errors: [{ slug: null, index: null, path: "runtime.config_dir", message: path.failure, line }],
  };
};

const readEnv = (document: Table, text: string) => {
  const errors: ManifestError[] = [];
  const secretNames = (list: "required" | "optional"): readonly string[] => {
    const value = ownField(ownField(document, "env"), list) ?? [];
    const line = lineMatching(text, new RegExp(String.raw`^[ \t]*(?:env[ \t]*\.[ \t]*)?${list}\b`));
    const refuse = (path: string, message: string): void => {
      errors.push({ slug: null, index: null, path, message, line });
    };
    if (!Array.isArray(value)) {
      refuse(`env.${list}`, `env.${list} must be a list of secret names.`);
      return [];
    }
    if (value.length > ENV_LIMIT) refuse(`env.${list}`, `env.${list} can have at most ${ENV_LIMIT} names.`);
    const names = value.slice(0, ENV_LIMIT).filter((name: unknown, at): name is string => {
      const issue =
        typeof name === "string"
          ? checkSecretName(name)
          : { message: "The name of a secret must be a string." };
      if (issue !== null) refuse(`env.${list}[${at}]`, issue.message);
      return issue === null;
    });
    return [...new Set(names)];
  };
  return { required: secretNames("required"), optional: secretNames("optional"), errors };
};

const ownField = (value: unknown, field: string): unknown =>
  typeof value === "object" && value !== null && Object.hasOwn(value, field)
    ? (value as Table)[field]
    : undefined;
