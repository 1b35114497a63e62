/**
 * The launcher's protocol: how a process waits until the service has mapped its users, set its limits and recorded it,
 * before it becomes a sandbox. It also has the parts of a launcher that several isolations use.
 */
import type { Tools } from "../tools.ts";

/** Descriptors of the launcher: for its progress lines, and for the filter's program. */
export const SIGNAL_FD = 3;
export const FILTER_FD = 4;

/**
 * It reports that its user namespace exists, waits for the service, and ends if the service dies before it answers.
 */
const WAIT = `echo waiting >&${SIGNAL_FD}; read -r _ || exit 1; exec "$@" </dev/null`;

/** A command that runs a script of the machine's shell. The script's arguments follow. */
export const shell = (tools: Tools, script: string): string[] => [tools.sh, "-c", script, "sandbox"];

/** The first part of a launcher that runs in the new user namespace. */
export const waiting = (tools: Tools): string[] => shell(tools, WAIT);

/** Root in the new user namespace gets its capabilities only with the next program. */
export const NO_USER_NAMESPACES = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"';

/** Arguments of bubblewrap. */
export const OWN_NAMESPACES = [
  "--unshare-ipc",
  "--unshare-pid",
  "--unshare-net",
  "--unshare-uts",
  "--unshare-cgroup-try",
  "--new-session",
  "--as-pid-1",
];

/** Names of the gates inside, below LIBRARY: before PID 1, and before an agent in namespaces of its own. */
export const INNER_GATE = "gate";
export const AGENT_GATE = "agent-gate";
/** PID 1 reports over SIGNAL_FD that it runs. */
export const INNER_CLOSE_FROM = SIGNAL_FD + 1;

/** Arguments of setpriv: another user, and no right that the caller had. */
export const become = (uid: number): string[] => [
  "--reuid",
  String(uid),
  "--regid",
  String(uid),
  "--clear-groups",
];
export const DROP_ALL = [
  "--no-new-privs",
  "--inh-caps=-all",
  "--ambient-caps=-all",
  "--bounding-set=-all",
  "--",
];

/**
 * A script for PID 1 of a pid namespace: it runs the command in its arguments, reaps what that leaves, and exits with
 * the command's code. The input is moved first: dash and busybox give a background command /dev/null as descriptor 0
 * before they read its redirections.
 * @param terminate what it does on SIGTERM; `$child` is the command's pid
 */
export const init = (terminate: string): string =>
  [
    'exec 9<&0; "$@" <&9 9<&- & child=$!',
    `trap '${terminate}' TERM`,
    'wait "$child"; code=$?',
    'while kill -0 "$child" 2>/dev/null; do wait "$child"; code=$?; done',
    "exit $code",
  ].join("\n");

/** PID 1 of the agent's own pid namespace. */
export const AGENT_INIT = init('kill -TERM "$child" 2>/dev/null');
