/**
 * `platform doctor --orphans`: lists leftovers of stopped services on this machine, and removes those of one installation. A running service owns
 * its run directory and its data directory. This command owns both while it removes something of them, so that no
 * service starts meanwhile.
 */
import { readFile, rm } from "node:fs/promises";
import path from "node:path";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { thrownText } from "../../ground/thrown.ts";
import { readConfig } from "../../settings/config.ts";
import type { Environment } from "../../cli/configuration.ts";
import { socketPath } from "../../sandbox/docker/docker.ts";
import { removeStray, strayContainers } from "../../sandbox/docker/strays.ts";
import type { ClusterOptions } from "../../sandbox/kubernetes/cluster.ts";
import { strayPods } from "../../sandbox/kubernetes/strays.ts";
import {
  emptyGroups,
  homelessSandboxes,
  isServed,
  killAll,
  leftSandboxes,
  removeGroups,
  removeRunDirectory,
  runDirectories,
} from "../../sandbox/machine/disk/leftovers.ts";
import { runDirectoryPath } from "../../sandbox/machine/disk/run-directory.ts";
import { acquire, livingOwner } from "../../store/data-directory.ts";
import { endServer, leftLinks, leftServers, removeLink } from "../../store/postgres/embedded/leftovers.ts";
import { claimedHome } from "../../store/run-directory-claim.ts";

export interface Orphan {
  readonly kind: "sandbox" | "run_directory" | "postgres" | "control_group" | "link" | "container" | "pod";
  /** An id, a name, a path or a process id. */
  readonly what: string;
  /** The data directory to which it belonged, if it is known. */
  readonly data_dir: string | null;
  /** Only a Pod's: the installation to which it belonged. */
  readonly installation_id?: string;
  readonly pids: readonly number[];
  /** Null if removal was not requested, or succeeded. */
  readonly problem: string | null;
}

interface OrphanWish {
  readonly end: boolean;
  /** Only leftovers of this data directory or run directory, or Pods of this installation. Null for all. */
  readonly of: string | null;
  /** The socket of a container engine whose containers are listed as well. */
  readonly engine: string | null;
  /** A cluster whose Pods are listed as well. */
  readonly cluster: ClusterOptions | null;
}

/** Leftovers that are removed together or not at all. */
interface Group {
  /** Directories by which `of` selects it. */
  readonly places: readonly (string | null)[];
  readonly orphans: readonly Orphan[];
  readonly end: () => Promise<void>;
}

/** Runs the work while no service can start there. @throws DataDirectoryOwned if one is running after all */
const owning = async (directory: string | null, work: () => Promise<void>): Promise<void> => {
  const lock = directory === null ? null : await acquire(directory).catch(ifGone);
  try {
    await work();
  } finally {
    if (lock !== null) await rm(lock, { force: true });
  }
};

const ifGone = (error: unknown): null => {
  if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
  throw error;
};

const runDirectoryGroup = async (runDir: string): Promise<Group | null> => {
  // A directory that disappears meanwhile has no owner.
  if ((await livingOwner(runDir).catch(() => 0)) !== null || (await isServed(runDir))) return null;
  const home = await claimedHome(runDir);
  const sandboxes = leftSandboxes(runDir).map(({ id, pids }): Orphan => ({
    kind: "sandbox",
    what: id,
    data_dir: home,
    pids,
    problem: null,
  }));
  const itself: Orphan = { kind: "run_directory", what: runDir, data_dir: home, pids: [], problem: null };
  return {
    places: [runDir, home],
    orphans: [...sandboxes, itself],
    end: () =>
      owning(runDir, async () => {
        if (await isServed(runDir)) throw new Error("a running service uses it");
        await removeRunDirectory(runDir);
      }),
  };
};

const serverGroups = async (): Promise<readonly Group[]> =>
  (await leftServers()).map((server) => ({
    places: [server.dataDir],
    orphans: [
      {
        kind: "postgres",
        what: String(server.pid),
        data_dir: server.dataDir,
        pids: [server.pid],
        problem: null,
      },
    ],
    end: () => owning(server.isHomeless ? null : server.dataDir, () => endServer(server)),
  }));

const linkGroups = async (): Promise<readonly Group[]> =>
  (await leftLinks()).map(({ path: link, dataDir }) => ({
    places: [dataDir],
    orphans: [{ kind: "link", what: link, data_dir: dataDir, pids: [], problem: null }],
    end: async () => removeLink(link),
  }));

const homelessGroups = (): readonly Group[] =>
  [...homelessSandboxes()].map(([root, pids]) => ({
    places: [path.dirname(path.dirname(root))],
    orphans: [{ kind: "sandbox", what: path.basename(root), data_dir: null, pids, problem: null }],
    end: async () => killAll(pids),
  }));

const controlGroups = (nowMs: number): readonly Group[] =>
  emptyGroups(nowMs).map((group) => ({
    places: [],
    orphans: [{ kind: "control_group", what: group, data_dir: null, pids: [], problem: null }],
    end: async () => {
      if (removeGroups([group]).length > 0) throw new Error("it cannot be removed");
    },
  }));

const containerGroups = async (engine: string): Promise<readonly Group[]> =>
  (await strayContainers(engine)).map(({ name, runDir }) => ({
    places: [runDir],
    orphans: [{ kind: "container", what: name, data_dir: null, pids: [], problem: null }],
    end: () => removeStray(engine, name),
  }));

const podGroups = async (cluster: ClusterOptions, nowMs: number): Promise<readonly Group[]> =>
  (await strayPods(cluster, nowMs)).map(({ name, installationId, remove }) => ({
    places: [installationId],
    orphans: [
      {
        kind: "pod",
        what: name,
        data_dir: null,
        installation_id: installationId,
        pids: [],
        problem: null,
      },
    ],
    end: remove,
  }));

const endGroup = async ({ orphans, end }: Group): Promise<readonly Orphan[]> => {
  try {
    await end();
    return orphans;
  } catch (error) {
    const problem = thrownText(error);
    return orphans.map((orphan) => Object.assign({}, orphan, { problem }));
  }
};

/** The engine of these settings, if sandboxes are containers there. */
export const containerEngine = (environment: Environment): string | null =>
  environment["PLATFORM_SANDBOX_PROVIDER"] === "docker"
    ? socketPath(readConfig(environment, process.cwd()).docker.socket)
    : null;

/** The cluster of these settings, if sandboxes are Pods there. */
export const podCluster = (environment: Environment): ClusterOptions | null => {
  if (environment["PLATFORM_SANDBOX_PROVIDER"] !== "kubernetes") return null;
  const { kubernetes } = readConfig(environment, process.cwd());
  return kubernetes && { kubeconfig: kubernetes.kubeconfig, namespace: kubernetes.namespace };
};

/** What `of` selects: a directory, and an installation by its id or by its data directory, with its run directory. */
const selectors = async (of: string): Promise<readonly string[]> => {
  const directory = path.resolve(of);
  const id = (await readFile(path.join(directory, "installation-id"), "utf8").catch(() => "")).trim();
  return [directory, of, ...(id === "" ? [] : [id, runDirectoryPath(id)])];
};

/** The data directory of these settings: other installations' leftovers are theirs to end. */
export const ownDataDirectory = (environment: Environment): string =>
  readConfig(environment, process.cwd()).dataDir;

/** Lists the leftovers, and removes them if requested. */
export const findOrphans = Effect.fnUntraced(function* ({ end, of, engine, cluster }: OrphanWish) {
  const nowMs = yield* Clock.currentTimeMillis;
  return yield* Effect.tryPromise({
    try: async () => {
      const selection = of === null ? null : await selectors(of);
      const inRunDirectories = await Promise.all(runDirectories().map(runDirectoryGroup));
      const groups = [
        ...inRunDirectories.filter((group) => group !== null),
        ...homelessGroups(),
        ...(await serverGroups()),
        ...(await linkGroups()),
        ...controlGroups(nowMs),
        ...(engine === null ? [] : await containerGroups(engine)),
        ...(cluster === null ? [] : await podGroups(cluster, nowMs)),
      ].filter(
        ({ places }) =>
          selection === null || places.some((place) => place !== null && selection.includes(place)),
      );
      const orphans = end ? await Promise.all(groups.map(endGroup)) : groups.map((group) => group.orphans);
      return orphans.flat();
    },
    catch: (error) => error,
  });
});
