/**
 * Finds and removes leftovers of former services' sandboxes on this machine, of any installation. It never touches a
 * running service: either the caller owns the run directory, or the run directory is gone.
 */
import { readdirSync, rmdirSync, statSync } from "node:fs";
import { rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { processesSeeing, readIfThere, signal } from "../processes.ts";
import { leaveRunDirectory, readRecord, sandboxIds, sandboxPaths } from "./run-directory.ts";
import { tearDown } from "./teardown.ts";

const RUN_DIRECTORY = /^platform-[0-9a-f]{12}$/;
const ID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}";
/** A listener on a unix socket answers at once, or does not exist. */
const CONNECT_MS = 5000;
/** A younger control group without a process may be about to get one. */
const GROUP_AGE_MS = 60_000;

const entries = (directory: string): readonly string[] => {
  try {
    return readdirSync(directory);
  } catch {
    return []; // It is gone, or belongs to another user.
  }
};

const read = (path: string): string => readIfThere(path) ?? "";

/** The run directories on this machine that this user can read. */
export const runDirectories = (): readonly string[] =>
  entries(tmpdir())
    .filter((name) => RUN_DIRECTORY.test(name))
    .map((name) => join(tmpdir(), name))
    .filter((runDir) => {
      const uid = process.geteuid?.() ?? 0;
      return uid === 0 || statSync(runDir, { throwIfNoEntry: false })?.uid === uid;
    });

const takesConnections = (path: string): Promise<boolean> => {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect(path);
  const answerWith = (answer: boolean) => () => {
    socket.destroy();
    resolve(answer);
  };
  socket.setTimeout(CONNECT_MS, answerWith(true));
  socket.once("connect", answerWith(true)).on("error", answerWith(false));
  return promise;
};

/** Whether a service serves the sandboxes of this run directory, even one that this process cannot see. */
export const isServed = async (runDir: string): Promise<boolean> => {
  const ids = entries(join(runDir, "s"));
  const answers = await Promise.all(ids.map((id) => takesConnections(sandboxPaths(runDir, id).proxySocket)));
  return answers.includes(true);
};

export interface LeftSandbox {
  readonly id: string;
  readonly pids: readonly number[];
}

/** The sandboxes of a run directory. */
export const leftSandboxes = (runDir: string): readonly LeftSandbox[] =>
  entries(join(runDir, "s")).map((id) => ({ id, pids: processesSeeing(sandboxPaths(runDir, id).root) }));

/**
 * Ends all sandboxes of a run directory that this process owns, and removes the directory. @throws if something stays
 */
export const removeRunDirectory = async (runDir: string): Promise<void> => {
  const groups = new Set<string>();
  const ids = await sandboxIds(runDir).catch(() => []);
  await Promise.all(
    ids.map(async (id) => {
      const paths = sandboxPaths(runDir, id);
      const record = await readRecord(paths);
      for (const group of record?.cgroups ?? []) groups.add(dirname(group));
      await tearDown(paths, record);
    }),
  );
  for (const group of groups) removeIfEmpty(group);
  await (ids.length === 0 ? rm(runDir, { recursive: true, force: true }) : leaveRunDirectory(runDir));
};

const removeIfEmpty = (group: string): boolean => {
  try {
    rmdirSync(group);
    return true;
  } catch {
    return false;
  }
};

/** Running sandboxes whose directory was removed, by its path within its file system. */
export const homelessSandboxes = (): ReadonlyMap<string, readonly number[]> => {
  const leftovers = new Map<string, number[]>();
  const removedDirectory = new RegExp(`^\\S*/platform-[0-9a-f]{12}/s/${ID}(?=/run//deleted$)`);
  for (const pid of entries("/proc").map(Number).filter(Number.isInteger)) {
    const roots = read(`/proc/${pid}/mountinfo`)
      .split("\n")
      .map((line) => removedDirectory.exec(line.split(" ")[3] ?? "")?.[0]);
    for (const root of new Set(roots))
      if (root !== undefined) leftovers.set(root, [...(leftovers.get(root) ?? []), pid]);
  }
  return leftovers;
};

export const killAll = (pids: readonly number[]): void => {
  for (const pid of pids) signal(pid, "SIGKILL");
};

/** Control groups of sandboxes without a process whose sandbox is in no run directory. */
export const emptyGroups = (nowMs: number): readonly string[] => {
  const directories = new Set(runDirectories().flatMap((runDir) => entries(join(runDir, "s"))));
  const mounts = read("/proc/self/mounts")
    .split("\n")
    .map((line) => line.split(" "))
    .flatMap(([, point = "", type = ""]) => (type.startsWith("cgroup") ? [point] : []));
  const isLeft = (group: string): boolean =>
    read(join(group, "cgroup.procs")) === "" &&
    nowMs - (statSync(group, { throwIfNoEntry: false })?.mtimeMs ?? nowMs) > GROUP_AGE_MS;
  const groups = mounts
    .flatMap((point) => groupParentsIn(point, GROUP_DEPTH))
    .flatMap((parent) =>
      entries(parent)
        .filter((name) => new RegExp(`^${ID}$`).test(name) && !directories.has(name))
        .map((name) => join(parent, name)),
    );
  return [...new Set(groups)].filter(isLeft);
};

/** The deepest level of a service's own group below a mount: a slice, a user's, a service. */
const GROUP_DEPTH = 6;

const groupParentsIn = (directory: string, depth: number): readonly string[] =>
  depth === 0
    ? []
    : entries(directory).flatMap((name) => {
        const path = join(directory, name);
        if (RUN_DIRECTORY.test(name)) return [path];
        return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
          ? groupParentsIn(path, depth - 1)
          : [];
      });

export const removeGroups = (groups: readonly string[]): readonly string[] =>
  groups.filter((group) => !removeIfEmpty(group));
