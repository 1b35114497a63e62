/**
 * How a sandbox's PID 1 is started, for the two forms and the two kinds of owner, and how the daemon inside starts the
 * agent.
 *
 *                 | the service is root                    | the service is an ordinary user
 *   --------------+----------------------------------------+---------------------------------------------------
 *   user          | three unprivileged host uids of its    | the service's uid; the agent sits in a user, pid
 *                 | own: set-up, daemon, agent             | and mount namespace below the daemon's
 *   agent starts  | setpriv: changes uid, drops the rest   | a second bubblewrap, or unshare and setpriv
 *   daemon keeps  | SETUID, SETGID, KILL, SETPCAP in its   | no capability
 *                 | own user namespace                     |
 *
 * Real root is never mapped into a sandbox. A seccomp filter covers everything that the agent runs. bubblewrap installs
 * it itself. In the `namespaces` form the gate installs it (gate.ts), as the last program before PID 1 and before the
 * agent. In both forms the launcher starts behind a gate that closes every descriptor except the launcher's own.
 */
import type { SandboxUsers } from "../machine/isolation/isolation.ts";
import {
  AGENT_GATE,
  DROP_ALL,
  FILTER_FD,
  INNER_GATE,
  AGENT_INIT,
  NO_USER_NAMESPACES,
  OWN_NAMESPACES,
  SIGNAL_FD,
  become,
  shell,
  waiting,
} from "../machine/boot/launcher.ts";
import {
  AGENT_UID,
  DAEMON_UID,
  LIBRARY,
  SANDBOX_HOSTNAME,
  bubblewrapArguments,
} from "../machine/boot/layout.ts";
import type { MountStep } from "../machine/boot/layout.ts";
import type { Tools } from "../machine/tools.ts";
import { namespaceScript } from "./layout-script.ts";

export type Form = "bubblewrap" | "namespaces";

/** Inside, 0 is used for set-up only; 1000 and 1001 are daemon and agent. */
export const localUsers = (base: number): SandboxUsers => ({
  setup: base,
  daemon: base + 1,
  agent: base + 2,
  map: `0 ${base} 1\n${DAEMON_UID} ${base + 1} 2\n`,
});

/** Kernel limits on each process, set as resource limits inside the sandbox. */
export interface ProcessLimits {
  readonly processes: number | null;
  readonly openFiles: number;
  readonly fileBytes: number;
}

export interface LaunchPlan {
  readonly form: Form;
  /** The first host uid. Null if the service is an ordinary user. */
  readonly uidBase: number | null;
  readonly tools: Tools;
  readonly layout: readonly MountStep[];
  /** The shell that runs PID 1. Null means the one that the entrypoint names. */
  readonly shell: string | null;
  /** An empty directory. The `namespaces` form mounts the new root over it. */
  readonly newRoot: string;
  readonly limits: ProcessLimits;
  /** The gate before the launcher. Null if it does not support this machine's processor. */
  readonly gate: string | null;
}

/** The first descriptor that the launcher does not inherit. Only bubblewrap reads the filter from one. */
export const launcherCloseFrom = (form: Form): number => (form === "bubblewrap" ? FILTER_FD : SIGNAL_FD) + 1;

/**
 * How many user namespaces an ordinary user's sandbox may create: the daemon's, and one for each command that runs as
 * the agent.
 */
const NESTED_MAX = 128;

/** Capabilities that the daemon keeps if it starts the agent under another uid. */
const DAEMON_CAPABILITIES = ["setuid", "setgid", "kill", "setpcap"].map((name) => `+${name}`).join(",");

const keepOnly = (capabilities: string): string[] => [
  "--no-new-privs",
  `--inh-caps=-all,${capabilities}`,
  `--ambient-caps=-all,${capabilities}`,
  `--bounding-set=-all,${capabilities}`,
  "--",
];

/**
 * Arguments of `unshare`: the caller becomes `uid` in the new user namespace, and the next program keeps its
 * capabilities.
 */
const mapTo = (uid: number): string[] => [`--map-user=${uid}`, `--map-group=${uid}`, "--keep-caps"];

/** The last steps before PID 1, already inside: resource limits, then the daemon's user and capabilities. */
const innerChain = (request: LaunchPlan): string[] => [
  "prlimit",
  ...(request.limits.processes === null ? [] : [`--nproc=${request.limits.processes}`]),
  `--nofile=${request.limits.openFiles}`,
  `--fsize=${request.limits.fileBytes}`,
  "--core=0",
  ...(request.uidBase === null ? [] : ["setpriv", ...become(DAEMON_UID), ...keepOnly(DAEMON_CAPABILITIES)]),
  ...(request.uidBase === null && request.form === "namespaces"
    ? ["unshare", "--user", ...mapTo(DAEMON_UID), "setpriv", ...DROP_ALL]
    : []),
  ...(request.gate !== null && request.form === "namespaces" ? [`${LIBRARY}/${INNER_GATE}`] : []),
  ...(request.shell === null ? [] : [request.shell]),
  "/usr/local/bin/platform-entrypoint",
];

const SESSION = ["--hostname", SANDBOX_HOSTNAME, "--chdir", "/workspace"];

const bubblewrap = (request: LaunchPlan): string[] => {
  const { tools } = request;
  const run = [
    tools.bwrap ?? "bwrap",
    ...(request.uidBase === null
      ? ["--unshare-user", "--uid", String(DAEMON_UID), "--gid", String(DAEMON_UID)]
      : []),
    ...OWN_NAMESPACES,
    ...SESSION,
    ...bubblewrapArguments(request.layout),
    "--seccomp",
    String(FILTER_FD),
    "--",
    ...innerChain(request),
  ];
  return request.uidBase === null
    ? [...waiting(tools), ...run]
    : [tools.unshare, "--user", "--", ...waiting(tools), ...shell(tools, NO_USER_NAMESPACES), ...run];
};

const namespaces = (request: LaunchPlan): string[] => {
  const { tools } = request;
  const ordinary = request.uidBase === null;
  // Mounting requires uid 0. Outside, that uid has no power, and PID 1 gives it up (`innerChain`).
  const identity = ordinary ? ["--map-user=0", "--map-group=0"] : [];
  const script = namespaceScript(request.layout, request.newRoot, ordinary ? NESTED_MAX : 0);
  const outer = [tools.unshare, "--user", ...identity, "--", ...waiting(tools)];
  const inner = [tools.unshare, "--mount", "--pid", "--fork", "--net", "--ipc", "--uts", "--cgroup", "--"];
  return [...outer, ...inner, ...shell(tools, script), ...innerChain(request)];
};

/** The command that becomes the sandbox. It uses the launcher's protocol on stdin and SIGNAL_FD. */
export const launchCommand = (request: LaunchPlan): string[] => [
  ...(request.gate === null ? [] : [request.gate]),
  ...(request.form === "bubblewrap" ? bubblewrap(request) : namespaces(request)),
];

/** The agent's view of /run/platform: only the directory that it may read. */
const NESTED_BUBBLEWRAP = [
  `exec ${LIBRARY}/bwrap --unshare-user --disable-userns --uid ${AGENT_UID} --gid ${AGENT_UID}`,
  "--unshare-pid --die-with-parent --dev-bind / / --proc /proc",
  "--tmpfs /run/platform --ro-bind /run/platform/agent /run/platform/agent --remount-ro /run/platform",
  `--seccomp 9 -- "$@" 9<${LIBRARY}/agent.bpf`,
].join(" ");

const nestedNamespaces = (gate: readonly string[], shellPath: string): string =>
  [
    "set -e",
    "mount -t proc proc /proc",
    // While the new mount hides the directory's path, it is reached through the working directory.
    "cd /run/platform/agent",
    "mount -t tmpfs -o mode=755,size=64k tmpfs /run/platform",
    "mkdir /run/platform/agent",
    "mount --no-canonicalize --bind . /run/platform/agent",
    "mount -o remount,bind,ro /run/platform/agent",
    "mount -o remount,bind,ro /run/platform",
    "echo 0 > /proc/sys/user/max_user_namespaces",
    'cd "$here"',
    "unset OLDPWD",
    `exec ${["setpriv", ...DROP_ALL, ...gate].join(" ")} ${shellPath} -c "$init" agent "$@"`,
  ].join("\n");

/** How a sandbox's agent is started. */
interface AgentRequest {
  readonly form: Form;
  readonly uidBase: number | null;
  /** Whether the sandbox has gates. */
  readonly gated: boolean;
  readonly shell: string | null;
}

/** The daemon's prefix for each command that runs as the agent (domain/sandbox/launch.ts `prefix`). */
export const agentPrefix = ({ form, uidBase, gated, shell: shellPath }: AgentRequest): string[] => {
  if (uidBase !== null) return ["setpriv", ...become(AGENT_UID), ...DROP_ALL];
  if (form === "bubblewrap") return ["sh", "-c", NESTED_BUBBLEWRAP, "agent"];
  const own = ["--pid", "--fork", "--kill-child=KILL", "--mount", "--"];
  const nestedPrefix = nestedNamespaces(gated ? [`${LIBRARY}/${AGENT_GATE}`] : [], shellPath ?? "/bin/sh");
  const script = `here=$PWD init='${AGENT_INIT.replaceAll("'", `'\\''`)}'\n${nestedPrefix}`;
  return ["unshare", "--user", ...mapTo(AGENT_UID), ...own, "sh", "-c", script, "agent"];
};
