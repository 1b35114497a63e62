/**
 * How PID 1 of a sandbox is started, in the two forms and for the two kinds of owner, and how the daemon inside then
 * starts the agent.
 *
 *                 | the service is root                    | the service is an ordinary user
 *   --------------+----------------------------------------+---------------------------------------------------
 *   user          | three unprivileged host uids of its    | the service's uid; the agent sits in a user, pid
 *                 | own: set-up, daemon, agent             | and mount namespace below the daemon's
 *   agent starts  | setpriv: changes uid, drops the rest   | a second bubblewrap, or unshare and setpriv
 *   daemon keeps  | SETUID, SETGID, KILL, SETPCAP in its   | no capability
 *                 | own user namespace                     |
 *
 * Real root maps to nothing inside, in no form. A seccomp filter covers all that the agent runs. bubblewrap installs it
 * itself; in the `namespaces` form the gate does (gate.ts), as the last program before PID 1 and before the agent. In both
 * forms the launcher starts behind a gate that closes every descriptor but its own.
 */
import {
  AGENT_UID,
  DAEMON_UID,
  LIBRARY,
  SANDBOX_HOSTNAME,
  bubblewrapArguments,
  namespaceScript,
} from "./layout.ts";
import type { MountStep } from "./layout.ts";
import type { Tools } from "./tools.ts";

export type Form = "bubblewrap" | "namespaces";

/** Host uids (and gids of the same numbers) that one sandbox of a root service takes, from its base on. */
export const UIDS_PER_SANDBOX = 3;
export const setupUid = (base: number): number => base;
export const daemonUid = (base: number): number => base + 1;
export const agentUid = (base: number): number => base + 2;

/** Content of uid_map and gid_map: inside 0 sets up and is left, 1000 and 1001 are daemon and agent. */
export const identityMap = (base: number): string => `0 ${base} 1\n${DAEMON_UID} ${base + 1} 2\n`;

/** Descriptors of the launcher: where it says how far it is, and the filter's program. */
export const SIGNAL_FD = 3;
export const FILTER_FD = 4;

/** Kernel limits on each process, set as resource limits inside the sandbox. */
export interface ProcessLimits {
  readonly processes: number | null;
  readonly openFiles: number;
  readonly fileBytes: number;
}

export interface LaunchRequest {
  readonly form: Form;
  /** First host uid, null where the service is an ordinary user. */
  readonly uidBase: number | null;
  readonly tools: Tools;
  readonly layout: readonly MountStep[];
  /** An empty directory over which the `namespaces` form builds the new root. */
  readonly newRoot: string;
  readonly limits: ProcessLimits;
  /** The gate before the launcher, null where this machine's processor has none. */
  readonly gate: string | null;
}

/** Names of the gates inside, below LIBRARY: before PID 1, and before an ordinary user's agent. */
export const INNER_GATE = "gate";
export const AGENT_GATE = "agent-gate";

/** The first descriptor that the launcher does not get. Only bubblewrap reads the filter from one. */
export const launcherCloseFrom = (form: Form): number => (form === "bubblewrap" ? FILTER_FD : SIGNAL_FD) + 1;
/** PID 1 says over SIGNAL_FD that it runs. */
export const INNER_CLOSE_FROM = SIGNAL_FD + 1;

/** User namespaces below an ordinary user's sandbox: the daemon's, and one for each command that runs as the agent. */
const NESTED_MAX = 128;

/** Capabilities the daemon keeps where it starts the agent under another uid. */
const DAEMON_CAPABILITIES = ["setuid", "setgid", "kill", "setpcap"].map((name) => `+${name}`).join(",");

const DROP_ALL = ["--no-new-privs", "--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all", "--"];

const keepOnly = (capabilities: string): string[] => [
  "--no-new-privs",
  `--inh-caps=-all,${capabilities}`,
  `--ambient-caps=-all,${capabilities}`,
  `--bounding-set=-all,${capabilities}`,
  "--",
];

/** Arguments of `unshare`: seen as `uid` in the new user namespace, capabilities kept for the next program. */
const mapTo = (uid: number): string[] => [`--map-user=${uid}`, `--map-group=${uid}`, "--keep-caps"];

const become = (uid: number): string[] => ["--reuid", String(uid), "--regid", String(uid), "--clear-groups"];

/** The last steps before PID 1, already inside: resource limits, then the daemon's user and capabilities. */
const innerChain = (request: LaunchRequest): string[] => [
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
  "/usr/local/bin/platform-entrypoint",
];

/**
 * The launcher: says that its user namespace stands, waits for the service to map uids, set limits and record it,
 * and ends if the service dies before that.
 */
const WAIT = `echo waiting >&${SIGNAL_FD}; read -r _ || exit 1; exec "$@" </dev/null`;
/** Root inside the new user namespace has its powers only from the next program on. */
const NO_USER_NAMESPACES = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"';

const sh = (tools: Tools, script: string): string[] => [tools.sh, "-c", script, "sandbox"];

const OWN_NAMESPACES = [
  "--unshare-ipc",
  "--unshare-pid",
  "--unshare-net",
  "--unshare-uts",
  "--unshare-cgroup-try",
];
const SESSION = ["--hostname", SANDBOX_HOSTNAME, "--new-session", "--as-pid-1", "--chdir", "/workspace"];

const bubblewrap = (request: LaunchRequest): string[] => {
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
    ? [...sh(tools, WAIT), ...run]
    : [tools.unshare, "--user", "--", ...sh(tools, WAIT), ...sh(tools, NO_USER_NAMESPACES), ...run];
};

const namespaces = (request: LaunchRequest): string[] => {
  const { tools } = request;
  const ordinary = request.uidBase === null;
  // Mounting wants uid 0; what it maps to has no power outside, and PID 1 leaves it (`innerChain`).
  const identity = ordinary ? ["--map-user=0", "--map-group=0"] : [];
  const script = namespaceScript(request.layout, request.newRoot, ordinary ? NESTED_MAX : 0);
  const outer = [tools.unshare, "--user", ...identity, "--", ...sh(tools, WAIT)];
  const inner = [tools.unshare, "--mount", "--pid", "--fork", "--net", "--ipc", "--uts", "--cgroup", "--"];
  return [...outer, ...inner, ...sh(tools, script), ...innerChain(request)];
};

/** The command that becomes the sandbox; started with the launcher's protocol on stdin and SIGNAL_FD. */
export const launchCommand = (request: LaunchRequest): string[] => [
  ...(request.gate === null ? [] : [request.gate]),
  ...(request.form === "bubblewrap" ? bubblewrap(request) : namespaces(request)),
];

/** Inside: the agent's view of /run/platform, which is the one directory made for it to read. */
const NESTED_BUBBLEWRAP = [
  `exec ${LIBRARY}/bwrap --unshare-user --disable-userns --uid ${AGENT_UID} --gid ${AGENT_UID}`,
  "--unshare-pid --die-with-parent --dev-bind / / --proc /proc",
  "--tmpfs /run/platform --ro-bind /run/platform/agent /run/platform/agent --remount-ro /run/platform",
  `--seccomp 9 -- "$@" 9<${LIBRARY}/agent.bpf`,
].join(" ");

/** Reaps, passes SIGTERM on, ends with the agent's code: PID 1 of the agent's own pid namespace. */
const NESTED_INIT = [
  '"$@" <&0 & child=$!',
  `trap 'kill -TERM "$child" 2>/dev/null' TERM`,
  'wait "$child"; code=$?',
  'while kill -0 "$child" 2>/dev/null; do wait "$child"; code=$?; done',
  "exit $code",
].join("\n");

const nestedNamespaces = (gate: readonly string[]): string =>
  [
    "set -e",
    "mount -t proc proc /proc",
    // The directory to keep is reached through the working directory while the new mount hides its path.
    "cd /run/platform/agent",
    "mount -t tmpfs -o mode=755,size=64k tmpfs /run/platform",
    "mkdir /run/platform/agent",
    "mount --no-canonicalize --bind . /run/platform/agent",
    "mount -o remount,bind,ro /run/platform/agent",
    "mount -o remount,bind,ro /run/platform",
    "echo 0 > /proc/sys/user/max_user_namespaces",
    'cd "$here"',
    "unset OLDPWD",
    `exec ${["setpriv", ...DROP_ALL, ...gate].join(" ")} /bin/sh -c "$init" agent "$@"`,
  ].join("\n");

/**
 * What the daemon puts before each command that runs as the agent (domain/launch.ts `prefix`).
 * @param gated whether the sandbox has gates
 */
export const agentPrefix = (form: Form, uidBase: number | null, gated: boolean): string[] => {
  if (uidBase !== null) return ["setpriv", ...become(AGENT_UID), ...DROP_ALL];
  if (form === "bubblewrap") return ["sh", "-c", NESTED_BUBBLEWRAP, "agent"];
  const own = ["--pid", "--fork", "--kill-child=KILL", "--mount", "--"];
  const script = `here=$PWD init='${NESTED_INIT.replaceAll("'", `'\\''`)}'\n${nestedNamespaces(gated ? [`${LIBRARY}/${AGENT_GATE}`] : [])}`;
  return ["unshare", "--user", ...mapTo(AGENT_UID), ...own, "sh", "-c", script, "agent"];
};
