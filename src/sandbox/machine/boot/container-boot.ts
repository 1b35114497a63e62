/** Starts a sandbox's container through an engine, and reports its end. boot.ts has the order of a start. */
import { chown, readFile, rm, writeFile } from "node:fs/promises";
import { poll } from "../../../ground/poll.ts";
import { engineAt } from "../../containers/engine.ts";
import { groupsOfProcess } from "../limits/cgroup.ts";
import type { EngineStart, LaunchRequest, SandboxUsers } from "../isolation/isolation.ts";
import { earlyEnd } from "../disk/log-tail.ts";
import { type ProcessIdentity, identify, isAlive, processesSeeing } from "../processes.ts";
import { type SandboxPaths, type SandboxRecord, writeRecord } from "../disk/run-directory.ts";

/** A sandbox that has its record, and no process yet. */
export interface PlannedBoot {
  readonly record: SandboxRecord;
  readonly users: SandboxUsers | null;
  readonly request: LaunchRequest;
}

/** Time limit for PID 1 to run once the container has started, in milliseconds. */
const UP_MS = 20_000;
const POLL_MS = 5;
/** Time limit for its processes to be seen. Each look passes over all processes of the machine. */
const HERE_MS = 5_000;
const HERE_POLL_MS = 50;

/**
 * @returns the record of the running sandbox
 * @throws Error with the sandbox's output, or the engine's message
 */
export const bootContainer = async (
  start: EngineStart,
  { record: planned, users, request }: PlannedBoot,
): Promise<SandboxRecord> => {
  const { paths } = request;
  if (users === null || planned.container === undefined) throw new Error("a container has users of its own");
  await writeFile(paths.log, "", { mode: 0o600, flag: "a" });
  await chown(paths.log, users.daemon, users.daemon);
  const pid = await start.start(request);
  const launcher = pid === 0 ? null : identify(pid);
  if (launcher === null) throw await earlyEnd(paths.log);
  // An engine in a virtual machine answers with a pid that is another process here. On a busy machine the container gets its files later.
  const isHere = () => processesSeeing(paths.root).length > 0 || !isAlive(launcher);
  if ((await poll(isHere, { everyMs: HERE_POLL_MS, withinMs: HERE_MS })) === null) {
    throw new Error(
      "the container engine runs elsewhere: its processes are not visible here. It must be on this machine, not in a virtual machine or another container",
    );
  }
  const container = { ...planned.container, cgroups: groupsOfProcess(pid) };
  const record = { ...planned, launcher, container };
  await writeRecord(paths, record);
  await untilUp(paths, launcher);
  await rm(paths.up, { force: true });
  return record;
};

const untilUp = async ({ up, log }: SandboxPaths, launcher: ProcessIdentity): Promise<void> => {
  const look = async (): Promise<boolean> => {
    if (await isUp(up)) return true;
    if (!isAlive(launcher)) throw await earlyEnd(log);
    return false;
  };
  const result = await poll(look, { everyMs: POLL_MS, withinMs: UP_MS });
  if (result === null) throw new Error(`no answer within ${UP_MS / 1000} s`);
};

const isUp = async (file: string): Promise<boolean> =>
  (await readFile(file, "utf8").catch(() => "")).includes("up\n");

/** Calls back once a sandbox's container has ended. Not if the engine stops before: the watcher sees that end. */
export const reportContainer = ({ container }: SandboxRecord, report: (message: string) => void): void => {
  if (container === undefined) return;
  void engineAt(container.socket)
    .ended(container.name)
    .then((code) => {
      if (code !== null) report(`its PID 1 ended with code ${code}`);
    });
};
