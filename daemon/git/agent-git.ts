/**
 * Git on the agent's repository after the first checkout (api.md 7, threats.md G06). The agent owns `.git/config`, where
 * filters, hooks and fsmonitor are programs: so git runs as the agent does, behind the launch prefix, with an environment
 * that has nothing of the daemon's, and what it writes is untrusted.
 */
import { gitEnvironment } from "./checkout.ts";
import type { Launch } from "../process.ts";
import type { Settings } from "../settings.ts";

export interface AgentScript {
  /** What a process listing names it. */
  readonly name: string;
  readonly script: string;
  /** From $1 on. */
  readonly parameters?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: Uint8Array;
  /** Root of the work tree it is for, the workspace where left out; null: of none. The script itself starts in the workspace. */
  readonly tree?: string | null;
}

/** A connection on which nothing moves for this long has failed. */
const STALL_S = 20;

/**
 * Wins over the agent's own configuration: nothing is left running behind our back, and what the agent wishes to run at
 * its own commits and checkouts (hooks) does not run at ours.
 */
const CONFIG: Readonly<Record<string, string>> = {
  "core.hooksPath": "/dev/null",
  "core.fsmonitor": "false",
  "core.untrackedCache": "false",
  "core.splitIndex": "false",
  // What a Linux file system has is looked at, and nothing overlooked.
  "core.fileMode": "true",
  "core.ignoreCase": "false",
  "core.trustctime": "true",
  "core.checkStat": "default",
  // A file with mixed line ends is stored all the same.
  "core.safecrlf": "false",
  "gc.auto": "0",
  "maintenance.auto": "false",
  "merge.autoStash": "false",
  "merge.verifySignatures": "false",
  "submodule.recurse": "false",
  "http.lowSpeedLimit": "1",
  "http.lowSpeedTime": String(STALL_S),
};

const CONFIG_ENV: Readonly<Record<string, string>> = Object.fromEntries([
  ["GIT_CONFIG_COUNT", String(Object.keys(CONFIG).length)],
  ...Object.entries(CONFIG).flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, key],
    [`GIT_CONFIG_VALUE_${index}`, value],
  ]),
]);

/** The work tree is where we say, whatever `core.worktree` and `core.bare` of the agent's configuration say. */
const placeOf = (tree: string | null): Record<string, string> =>
  tree === null ? {} : { GIT_DIR: `${tree}/.git`, GIT_WORK_TREE: tree };

/** A shell script in the workspace, run as the agent. */
export const agentScript = (
  settings: Settings,
  { name, script, parameters, env, input, tree = settings.layout.workspace }: AgentScript,
): Launch => ({
  prefix: settings.launch.prefix,
  command: ["sh", "-c", script, name, ...(parameters ?? [])],
  env: {
    ...settings.launch.commonEnv,
    ...gitEnvironment(settings),
    ...CONFIG_ENV,
    ...placeOf(tree),
    GIT_OPTIONAL_LOCKS: "0",
    GIT_NO_REPLACE_OBJECTS: "1",
    LC_ALL: "C",
    ...env,
  },
  cwd: settings.layout.workspace,
  ...(input === undefined ? {} : { input }),
});

/** Why a script ended as it did, in git's own words: untrusted, whole and not yet redacted. */
export const lastWords = ({
  code,
  signal,
  stderr,
}: {
  readonly code: number | null;
  readonly signal: string | null;
  readonly stderr: string;
}): string => stderr.trim() || `git ended with ${code ?? signal ?? "a signal"}`;
