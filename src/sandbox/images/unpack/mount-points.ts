/**
 * Prepares an image's root for the mounts of a sandbox. A file or directory can only be mounted over one that exists, and
 * the root is read-only by then. Every image gets the same places, whatever provider uses it.
 */
import { chmod, lstat, mkdir, readlink, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { UnpackFailure } from "./failure.ts";

const DIRECTORIES = [
  "/dev",
  "/etc",
  "/opt",
  "/opt/platform",
  "/proc",
  "/run",
  "/run/platform",
  "/tmp",
  "/usr",
  "/usr/bin",
  "/usr/local",
  "/usr/local/bin",
  "/var",
  "/var/tmp",
  "/workspace",
];
const FILES = [
  "/etc/passwd",
  "/etc/group",
  // Container engines mount a file here.
  "/etc/hostname",
  "/etc/hosts",
  "/etc/nsswitch.conf",
  "/etc/resolv.conf",
  "/usr/local/bin/platform",
  "/usr/local/bin/platform-agent",
  "/usr/local/bin/platform-entrypoint",
];
/** Directories that are often links, and hold nothing that an agent needs: they become directories. */
const REPLACED = new Set(["/run", "/run/platform", "/tmp", "/var/tmp"]);
/** Programs that scripts name by their path. An image without them gets ours. */
const PROGRAMS: readonly (readonly [place: readonly [directory: string, name: string], program: string])[] = [
  [["/bin", "sh"], "/opt/platform/lib/tools/sh"],
  [["/usr/bin", "env"], "/opt/platform/lib/tools/env"],
];
/** The usual target of a link at /bin. */
const USUAL = /^\/?usr\/bin\/?$/;

/**
 * Makes the places. It follows no link of the image, so `root` may be any directory that no other process writes meanwhile.
 * @throws UnpackFailure if the image has something else there
 */
export const prepareRoot = async (root: string): Promise<void> => {
  for (const path of DIRECTORIES) {
    // eslint-disable-next-line no-await-in-loop -- each is the parent of the next
    await makeDirectory(root, path);
  }
  for (const path of FILES) {
    const place = join(root, path);
    // eslint-disable-next-line no-await-in-loop -- few
    const stats = await lstat(place).catch(() => null);
    if (stats?.isDirectory() === true) throw new UnpackFailure(`the image's ${path} is a directory`);
    if (stats?.isFile() === true) continue;
    // Often a link that leads out of the image, such as /etc/resolv.conf.
    // eslint-disable-next-line no-await-in-loop -- few
    await rm(place, { force: true });
    // eslint-disable-next-line no-await-in-loop -- few
    await writeFile(place, "", { flag: "wx", mode: 0o644 });
  }
  for (const [path, program] of PROGRAMS) {
    // eslint-disable-next-line no-await-in-loop -- two
    await offer(root, path, program);
  }
};

const makeDirectory = async (root: string, path: string): Promise<void> => {
  const place = join(root, path);
  const stats = await lstat(place).catch(() => null);
  if (stats?.isDirectory() === true) {
    // The agent's user must be able to enter it.
    if ((stats.mode & 0o005) !== 0o005) await chmod(place, (stats.mode & 0o7777) | 0o005);
    return;
  }
  if (stats !== null) {
    if (!REPLACED.has(path)) throw new UnpackFailure(`the image's ${path} is not a directory`);
    await rm(place, { force: true });
  }
  await mkdir(place);
  await chmod(place, 0o755);
};

const offer = async (root: string, [directory, name]: readonly [string, string], program: string) => {
  const parent = join(root, directory);
  const stats = await lstat(parent).catch(() => null);
  // In most images /bin is a link to usr/bin.
  const isUsual = stats?.isSymbolicLink() === true && USUAL.test(await readlink(parent));
  if (stats !== null && !stats.isDirectory() && !isUsual) return;
  if (stats === null) await mkdir(parent, { mode: 0o755 });
  const place = join(root, isUsual ? `/usr${directory}` : directory, name);
  if ((await lstat(place).catch(() => null)) === null) await symlink(program, place);
};
