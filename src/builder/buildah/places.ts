/**
 * The files of one build.
 *
 *     <directory>/builds/<id>/scratch/  temporary files of the first phase, on disk (belongs to the build's block)
 *     <directory>/builds/<id>/export/   the same of the second phase
 *     <run directory>/<id>/             mount points, and what needs a short path
 *         proxy/        the egress proxy's socket
 *         etc/          files of /etc inside
 *         secrets/      the build's secrets, a file for each: only the build's block can read them
 *         request.json  what the programs inside are to do
 *
 * The launcher mounts what lies elsewhere over the mount points, in a mount namespace of its own. So the build's uids need
 * no access to the paths of the data directory.
 */
import { chmod, chown, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { removeTree } from "../../sandbox/machine/disk/run-directory.ts";

export interface BuildPlaces {
  readonly scratch: string;
  readonly exportScratch: string;
  readonly disk: string;
  readonly run: string;
  readonly proxy: string;
  readonly proxySocket: string;
  readonly etc: string;
  readonly secrets: string;
  readonly request: string;
  /** Where the launcher mounts something, by name. */
  readonly mountPoint: (name: MountName) => string;
}

const MOUNTED_DIRECTORIES = ["layers", "scratch", "output", "programs"] as const;
const MOUNTED_FILES = ["node", "forwarder.cjs"] as const;
export type MountName = (typeof MOUNTED_DIRECTORIES)[number] | (typeof MOUNTED_FILES)[number];

export const buildPlaces = (directory: string, runDir: string, id: string): BuildPlaces => {
  const disk = join(directory, "builds", id);
  const run = join(runDir, id);
  return {
    scratch: join(disk, "scratch"),
    exportScratch: join(disk, "export"),
    disk,
    run,
    proxy: join(run, "proxy"),
    proxySocket: join(run, "proxy", "egress.sock"),
    etc: join(run, "etc"),
    secrets: join(run, "secrets"),
    request: join(run, "request.json"),
    mountPoint: (name) => join(run, name),
  };
};

/**
 * Files of /etc inside. buildah needs root's entry, and refuses to run in a user namespace without subordinate ids; no name
 * server is reachable, because the egress proxy resolves names.
 */
export const ETC: Readonly<Record<string, string>> = {
  // plain-english: the name of a system user
  passwd: "root:x:0:0:root:/build/scratch/home:/bin/sh\nnobody:x:65534:65534::/nonexistent:/bin/false\n",
  group: "root:x:0:\nnogroup:x:65534:\n",
  subuid: "root:0:65536\n",
  subgid: "root:0:65536\n",
  hosts: "127.0.0.1 localhost\n::1 localhost\n",
  "resolv.conf": "",
  "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
  // The egress policy decides which images may be a base: they come from hosts that the project may reach.
  "policy.json": '{"default":[{"type":"insecureAcceptAnything"}]}\n',
  "registries.conf": 'unqualified-search-registries = ["docker.io"]\nshort-name-mode = "permissive"\n',
  // Named explicitly, so that no file in a home directory can name programs to run.
  "storage.conf":
    '[storage]\ndriver = "overlay"\ngraphroot = "/build/layers"\nrunroot = "/build/scratch/run"\n',
};

/** The build that has these directories. */
interface Occupant {
  /** The first of its block. */
  readonly uid: number;
  readonly request: unknown;
  readonly secrets: Readonly<Record<string, string>>;
}

/** Creates a build's directories. */
export const makePlaces = async (places: BuildPlaces, { uid, request, secrets }: Occupant): Promise<void> => {
  await mkdir(places.disk, { recursive: true, mode: 0o700 });
  for (const place of [places.scratch, places.exportScratch]) {
    for (const path of [place, ...["context", "home", "run", "tmp"].map((name) => join(place, name))]) {
      // eslint-disable-next-line no-await-in-loop -- one after its parent
      await mkdir(path, { mode: 0o700 });
      // eslint-disable-next-line no-await-in-loop
      await chown(path, uid, uid);
    }
  }
  const directories = [places.run, places.proxy, places.etc, ...MOUNTED_DIRECTORIES.map(places.mountPoint)];
  for (const path of directories) {
    // eslint-disable-next-line no-await-in-loop -- one after its parent
    await mkdir(path);
    // eslint-disable-next-line no-await-in-loop
    await chmod(path, 0o711);
  }
  const files = {
    ...Object.fromEntries(Object.entries(ETC).map(([name, text]) => [join(places.etc, name), text])),
    ...Object.fromEntries(MOUNTED_FILES.map((name) => [places.mountPoint(name), ""])),
    [places.request]: JSON.stringify(request),
  };
  await Promise.all(
    Object.entries(files).map(async ([path, text]) => {
      await writeFile(path, text);
      await chmod(path, 0o644);
    }),
  );
  await mkdir(places.secrets, { mode: 0o700 });
  for (const [name, value] of Object.entries(secrets)) {
    const path = join(places.secrets, name);
    // eslint-disable-next-line no-await-in-loop -- one after its file
    await writeFile(path, value, { mode: 0o400, flag: "wx" });
    // eslint-disable-next-line no-await-in-loop
    await chown(path, uid, uid);
  }
  await chown(places.secrets, uid, uid);
  // Build arguments are the project's own business.
  await chmod(places.request, 0o600);
  await chown(places.request, uid, uid);
};

/** Removes all files of a build. @throws Error if something stays */
export const removePlaces = async (places: BuildPlaces): Promise<void> => {
  await removeTree(places.disk);
  await rm(places.run, { recursive: true, force: true });
};
