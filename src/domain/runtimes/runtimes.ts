/** The runtimes that an installation offers. */
import { basename } from "node:path";
import * as Result from "effect/Result";
import type { AgentAdapter } from "./runtime.ts";
import { ACP } from "./acp.ts";
import { CLAUDE_CODE } from "./claude-code.ts";
import { CODEX } from "./codex.ts";
import { GEMINI } from "./gemini.ts";
import { isRuntimeName } from "./installed.ts";
import { OPENCODE } from "./opencode.ts";
import { PLAIN } from "./plain.ts";
import type { Runtime, RuntimePackage, StartableRuntime } from "./runtime.ts";

/** Those whose program the operator installs (PLATFORM_AGENT_RUNTIMES). */
const INSTALLED: readonly Runtime[] = [OPENCODE, CLAUDE_CODE, CODEX, GEMINI];
/** Those whose program a project may bring. */
const BROUGHT: readonly Runtime[] = [ACP, PLAIN];

export const INSTALLABLE_NAMES: readonly string[] = INSTALLED.map(({ name }) => name);

/** Stands before the id of an entry of a registry in PLATFORM_AGENT_RUNTIMES. So a misspelt name of ours is not taken for an id. */
export const ENTRY_PREFIX = "acp:";

/** What PLATFORM_AGENT_RUNTIMES may be, as it stands after "expected". */
export const INSTALLABLE_EXPECTED = `some of ${INSTALLABLE_NAMES.join(", ")}, and ${ENTRY_PREFIX}ID for entries of the Agent Client Protocol's registry, separated by commas`;

/** The runtime of an entry of a registry: an agent of the protocol of which no more is known. */
const entryRuntime = (id: string): StartableRuntime => ({
  ...ACP,
  name: id,
  command: [id],
  takesCommand: false,
  packaged: "entry",
});

/** The id of an entry in PLATFORM_AGENT_RUNTIMES. Null if it is another name. */
const entryId = (name: string): string | null =>
  name.startsWith(ENTRY_PREFIX) ? name.slice(ENTRY_PREFIX.length) : null;

/** Whether an id of a registry is the name of a record here, which knows the program better. */
export const hasRecord = (id: string): boolean => [...INSTALLED, ...BROUGHT].some(({ name }) => name === id);

const isInstallable = (name: string): boolean => {
  const id = entryId(name);
  return id === null ? INSTALLABLE_NAMES.includes(name) : isRuntimeName(id) && !hasRecord(id);
};

/** Reads PLATFORM_AGENT_RUNTIMES. @returns the names, or what is expected. */
export const parseInstallable = (text: string): Result.Result<readonly string[], string> => {
  const names = text.split(",").flatMap((name) => (name.trim() === "" ? [] : [name.trim()]));
  return names.every(isInstallable) ? Result.succeed(names) : Result.fail(INSTALLABLE_EXPECTED);
};

/** The packages of npm that can be added to a node, by the names of their runtimes. */
export const PACKAGED: ReadonlyMap<string, RuntimePackage> = new Map(
  INSTALLED.flatMap(({ name, packaged }) =>
    packaged === null || packaged === "entry" ? [] : [[name, packaged]],
  ),
);

/** The record of each value of PLATFORM_AGENT_ADAPTER. */
const BY_ADAPTER: Readonly<Record<AgentAdapter, Runtime>> = { opencode: OPENCODE, acp: ACP, plain: PLAIN };

/** What an installation offers. The first one is its own. */
export type OfferedRuntimes = readonly [StartableRuntime, ...Runtime[]];

/**
 * A runtime with the command that starts it. opencode reads the platform's settings whatever drives it, so its models are the
 * platform's and its tools are set up there. Every other program brings its own.
 */
export const withCommand = (runtime: Runtime, command: readonly string[]): StartableRuntime => {
  const isOpencode = basename(command[0] ?? "") === OPENCODE.name;
  const models = runtime.models === null ? null : isOpencode ? OPENCODE.models : "own";
  const history = isOpencode ? OPENCODE.history : runtime.history;
  return { ...runtime, command, models, history, takesServers: runtime.takesServers && !isOpencode };
};

/**
 * @param own PLATFORM_AGENT_ADAPTER and PLATFORM_AGENT_COMMAND
 * @param installable PLATFORM_AGENT_RUNTIMES: the names of further runtimes whose program is in sandboxes
 */
export const offeredRuntimes = (
  own: { readonly adapter: AgentAdapter; readonly command: readonly string[] },
  installable: readonly string[],
): OfferedRuntimes => {
  const first = withCommand(BY_ADAPTER[own.adapter], own.command);
  const entries = [...new Set(installable)].flatMap((name) => entryId(name) ?? []).map(entryRuntime);
  const others = [...INSTALLED.filter(({ name }) => installable.includes(name)), ...entries, ...BROUGHT];
  return [first, ...others.filter(({ name }) => name !== first.name)];
};
