/**
 * Ends a sandbox and removes its leftovers. It needs only the sandbox's record and directory, because the
 * process that created it may be long gone (sandbox/port.ts P2, P4).
 */
import { poll } from "../../../ground/poll.ts";
import { engineAt } from "../../containers/engine.ts";
import { removeGroup } from "../limits/cgroup.ts";
import { initAtOrBelow, isAlive, processesSeeing, signal } from "../processes.ts";
import { type SandboxPaths, type SandboxRecord, removeTree } from "./run-directory.ts";

/** Milliseconds between SIGTERM and SIGKILL (api.md 3, "Saving"). */
const GRACE_MS = 5000;
const ASK_AGAIN_MS = 1000;
/** Milliseconds after which killed processes count as stuck in the kernel. */
const BURIAL_MS = 10_000;
const POLL_MS = 10;
/** While the launcher lives, so many polls come to one sweep of all processes. */
const SWEEP_POLLS = 10;

const launcherAlive = (record: SandboxRecord | null): boolean =>
  record !== null && record.launcher !== null && isAlive(record.launcher);

/**
 * PID 1 of the sandbox: the launcher or a process below it, the first one in a pid namespace of its own. An engine's
 * container has no other launcher.
 */
const findInit = ({ launcher }: SandboxRecord): number | null =>
  launcher === null ? null : initAtOrBelow(launcher.pid);

/** @returns false if it is not done within `withinMs` */
const waitFor = async (isDone: () => boolean | Promise<boolean>, withinMs: number): Promise<boolean> =>
  (await poll(isDone, { everyMs: POLL_MS, withinMs })) !== null;

/**
 * Kills every process of the sandbox at once.
 * @throws Error if some processes do not end
 */
export const killSandbox = async (paths: SandboxPaths, record: SandboxRecord | null): Promise<void> => {
  let polls = 0;
  const isGone = (): boolean => {
    const isLive = launcherAlive(record);
    // Killing PID 1 first ends its pid namespace.
    if (record?.launcher && isLive) signal(findInit(record) ?? record.launcher.pid, "SIGKILL");
    // The sweep finds processes that lost their parents. It reads much, so it waits for the launcher's end, at most a while.
    polls += 1;
    if (isLive && polls % SWEEP_POLLS !== 0) return false;
    const left = processesSeeing(paths.root);
    for (const pid of left) signal(pid, "SIGKILL");
    return left.length === 0 && !launcherAlive(record);
  };
  if (!(await waitFor(isGone, BURIAL_MS))) throw new Error("processes of the sandbox cannot be stopped");
};

/** A container's runtime may have the signals of its own kernel. If the engine does not answer, this kernel passes it. */
const terminate = async ({ container }: SandboxRecord, init: number | null): Promise<void> => {
  const directly = (): void => {
    if (init !== null) signal(init, "SIGTERM");
  };
  if (container === undefined) return directly();
  await engineAt(container.socket).signal(container.name, "SIGTERM").catch(directly);
};

/**
 * Asks PID 1 to end, and waits for a while. If PID 1 is dead, `killSandbox` does the work. The request is repeated: if
 * PID 1 forwards a signal at the instant when it starts its daemon, the signal can be lost.
 */
const askToEnd = async (record: SandboxRecord): Promise<void> => {
  for (let waitedMs = 0; waitedMs < GRACE_MS; waitedMs += ASK_AGAIN_MS) {
    const init = findInit(record);
    // Of a container under another kernel, this one sees no PID 1.
    if (init === null && record.container === undefined) return;
    // eslint-disable-next-line no-await-in-loop -- asking again is for when the first did not help
    await terminate(record, init);
    // eslint-disable-next-line no-await-in-loop -- asking again is for when the first did not help
    if (await waitFor(() => !launcherAlive(record), ASK_AGAIN_MS)) return;
  }
};

/**
 * Ends the sandbox's processes, and leaves its control groups and directory. Idempotent.
 * @throws Error if some processes do not end
 */
export const endSandbox = async (paths: SandboxPaths, record: SandboxRecord | null): Promise<void> => {
  if (record !== null && launcherAlive(record)) await askToEnd(record);
  await killSandbox(paths, record);
};

/**
 * Ends the sandbox and removes its processes, control groups and directory. Idempotent.
 * @throws Error if something stays
 */
export const tearDown = async (paths: SandboxPaths, record: SandboxRecord | null): Promise<void> => {
  await endSandbox(paths, record);
  if (record?.container !== undefined) {
    await engineAt(record.container.socket).remove(record.container.name);
  }
  const groups = record?.cgroups ?? [];
  const areRemoved = await waitFor(
    async () => (await Promise.all(groups.map(removeGroup))).every(Boolean),
    BURIAL_MS,
  );
  await removeTree(paths.root);
  if (!areRemoved) throw new Error("a control group of the sandbox cannot be removed");
};
