/**
 * Git on the agent's repository after the first checkout (api.md 7, threats.md G06). The agent owns `.git/config`,
 * where filters, hooks and fsmonitor can name programs. So git runs as the agent, behind the launch prefix, without the
 * daemon's environment, and its output is untrusted.
 */
import { gitEnvironment } from "./checkout.ts";
import type { Launch } from "../agent/process.ts";
import type { Settings } from "../settings.ts";

export interface AgentScript {
  /** Its name in process listings. */
  readonly name: string;
  readonly script: string;
  /** Positional parameters, from $1 on. */
  readonly parameters?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: Uint8Array;
  /**
   * The root of its work tree. Absent: the workspace; null: no work tree. The script itself starts in the workspace.
   */
  readonly tree?: string | null;
}

/** A connection without any traffic for this long has failed. */
const STALL_S = 20;

/**
 * Overrides the agent's own configuration: no background process remains, and the agent's hooks do not run for our
 * commits and checkouts.
 */
const CONFIG: Readonly<Record<string, string>> = {
  "core.hooksPath": "/dev/null",
  "core.fsmonitor": "false",
  "core.untrackedCache": "false",
  "core.splitIndex": "false",
  // Reads the file system as it is on Linux, and overlooks no change.
  "core.fileMode": "true",
  "core.ignoreCase": "false",
  "core.trustctime": "true",
  "core.checkStat": "default",
  // A file with mixed line ends is stored anyway.
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

/** This work tree applies, whatever `core.worktree` and `core.bare` in the agent's configuration say. */
const placeVariables = (tree: string | null): Record<string, string> =>
  tree === null ? {} : { GIT_DIR: `${tree}/.git`, GIT_WORK_TREE: tree };

/** The environment of git on the agent's repository, and of programs that run it. */
export const agentGitEnvironment = (settings: Settings): Record<string, string> => ({
  ...settings.launch.commonEnv,
  ...gitEnvironment(settings),
  ...CONFIG_ENV,
  GIT_OPTIONAL_LOCKS: "0",
  GIT_NO_REPLACE_OBJECTS: "1",
  LC_ALL: "C",
});

/** A shell script in the workspace, run as the agent. */
export const agentScript = (
  settings: Settings,
  { name, script, parameters, env, input, tree = settings.layout.workspace }: AgentScript,
): Launch => ({
  prefix: settings.launch.prefix,
  command: ["sh", "-c", script, name, ...(parameters ?? [])],
  env: { ...agentGitEnvironment(settings), ...placeVariables(tree), ...env },
  cwd: settings.layout.workspace,
  ...(input === undefined ? {} : { input }),
});

/** Why a script failed, in git's own words: untrusted, complete and not yet redacted. */
export const lastWords = ({
  code,
  signal,
  stderr,
}: {
  readonly code: number | null;
  readonly signal: string | null;
  readonly stderr: string;
}): string => stderr.trim() || `git ended with ${code ?? signal ?? "a signal"}`;
