/** What all builds of one service share on this machine. */
import { createHash } from "node:crypto";
import { chmod, lstat, mkdir, readdir, rm, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Network } from "../../ground/net/dial.ts";
import {
  findGroupParents,
  groupControls,
  groupDirectories,
  type GroupParent,
  removeGroups,
} from "../../sandbox/machine/limits/cgroup.ts";
import { gateProgram } from "../../sandbox/machine/isolation/gate.ts";
import { machineArchitecture, seccompProgram } from "../../sandbox/machine/isolation/seccomp.ts";
import { FILTER_FD } from "./launch.ts";
import type { StoreBounds } from "./layer-stores.ts";
import { killPhase } from "./phase.ts";
import { buildPlaces, removePlaces } from "./places.ts";

export interface BuildahOptions extends StoreBounds {
  /** For layers and temporary files: on a disk with space, on a file system that an overlay can use. Created if missing. */
  readonly directory: string;
  /** For sockets and mount points: its path is short, and other users can traverse it. Created if missing. */
  readonly runDir: string;
  readonly installationId: string;
  /** The Node that runs the programs in a build's sandbox. It runs TypeScript. */
  readonly nodePath: string;
  /** The service's PATH, to find buildah and other programs. */
  readonly path: string;
  readonly network?: Network;
  /** The names by which others reach this service. They are closed to builds. */
  readonly serviceHosts?: readonly string[];
}

export interface Installation {
  readonly directory: string;
  readonly runDir: string;
  readonly nodePath: string;
  readonly network: Network;
  readonly serviceHosts: readonly string[];
  /** The file with the seccomp program. */
  readonly filter: string;
  readonly gate: string;
  readonly groupParents: readonly GroupParent[];
  /** Limits that no control group enforces here: the watcher does. */
  readonly unenforced: ReadonlySet<"memory" | "processes">;
}

/** sun_path holds 108 bytes; a socket is at `<run directory>/<id>/proxy/egress.sock`. */
const RUN_DIRECTORY_MAX = 45;

const groupName = (installationId: string): string =>
  `platform-${createHash("sha256").update(`builder ${installationId}`).digest("hex").slice(0, 12)}`;

/** Creates the directories. @throws Error if others can write the run directory, or if its path is too long */
const openDirectories = async ({ directory, runDir }: BuildahOptions): Promise<void> => {
  if (Buffer.byteLength(runDir) > RUN_DIRECTORY_MAX)
    throw new Error(`the run directory ${runDir} is too long: at most ${RUN_DIRECTORY_MAX} bytes`);
  await mkdir(join(directory, "builds"), { recursive: true, mode: 0o700 });
  await mkdir(runDir, { recursive: true });
  const stats = await lstat(runDir);
  if (!stats.isDirectory() || stats.uid !== process.geteuid?.() || (stats.mode & 0o022) !== 0)
    throw new Error(`the run directory ${runDir} is not a directory that this user alone can write`);
  await chmod(runDir, (stats.mode & 0o777) | 0o111);
};

const FILTER = "builder.bpf";
const GATE = "gate";

/** Removes what builds of a former service left. The caller owns both directories, and builds nothing yet. */
const removeLeftovers = async ({ directory, runDir }: BuildahOptions, parents: readonly GroupParent[]) => {
  const ids = new Set([...(await readdir(join(directory, "builds"))), ...(await readdir(runDir))]);
  ids.delete(FILTER);
  ids.delete(GATE);
  await Promise.all(
    [...ids].map(async (id) => {
      const places = buildPlaces(directory, runDir, id);
      await killPhase(null, places.run);
      await removeGroups(groupDirectories(parents, id));
      await removePlaces(places);
    }),
  );
};

/** Removes the run directory. It stays if a build could not be removed from it: the next start removes that. */
export const closeInstallation = async ({ runDir, filter, gate }: Installation): Promise<void> => {
  await Promise.all([filter, gate].map((file) => rm(file, { force: true })));
  await rmdir(runDir).catch(() => undefined);
};

const writeProgram = async (path: string, content: Buffer): Promise<string> => {
  await writeFile(path, content);
  await chmod(path, 0o755);
  return path;
};

/**
 * Prepares the directories, and removes what a former service left.
 * @throws Error if a directory cannot be used, or on a processor without a seccomp filter
 */
export const openInstallation = async (options: BuildahOptions): Promise<Installation> => {
  const architecture = machineArchitecture();
  await openDirectories(options);
  const groupParents = await findGroupParents(groupName(options.installationId));
  await removeLeftovers(options, groupParents);
  const controls = groupControls(groupParents);
  const gate = gateProgram({ closeFrom: FILTER_FD + 1, filter: null }, architecture);
  return {
    directory: options.directory,
    runDir: options.runDir,
    nodePath: options.nodePath,
    network: options.network ?? {},
    serviceHosts: options.serviceHosts ?? [],
    filter: await writeProgram(join(options.runDir, FILTER), seccompProgram("builder", architecture)),
    gate: await writeProgram(join(options.runDir, GATE), gate),
    groupParents,
    unenforced: new Set((["memory", "processes"] as const).filter((limit) => !controls.has(limit))),
  };
};
