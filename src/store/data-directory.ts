/**
 * The service's data directory (api.md 9 PLATFORM_DATA_DIR): created on first start, and owned by one service at a
 * time.
 *
 *  O1 A service that wants the directory first writes a file of its own (`owner.<random>.json`: pid and start time) and
 *     then checks the others. If two services start together, at least one sees the other's file. A service that sees a
 *     living owner steps back.
 *  O2 A file is stale if its process is gone, or if its pid now belongs to another process. Stale files are removed.
 *     File names are never reused, so a removal cannot hit a living owner.
 *  O3 A file that came with a copy of another directory is stale too: it names the directory in which it was written.
 */
import { randomBytes } from "node:crypto";
import {
  access,
  chmod,
  constants,
  mkdir,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  statfs,
  writeFile,
} from "node:fs/promises";
import type { StatsFs } from "node:fs";
import { dirname, join } from "node:path";
import * as Effect from "effect/Effect";
import * as Schedule from "effect/Schedule";
import * as Schema from "effect/Schema";
import type * as Scope from "effect/Scope";
import { fileFault, isOutOfSpace } from "../domain/repository/file-fault.ts";
import { processStartedAt } from "./process.ts";
import { parseRecord } from "../ground/record.ts";

/** Another service runs on this data directory. */
export class DataDirectoryOwned extends Schema.TaggedError<DataDirectoryOwned>()("DataDirectoryOwned", {
  path: Schema.String,
  pid: Schema.Finite,
}) {
  override get message(): string {
    return `The data directory ${this.path} is in use by the service with process id ${this.pid}. Stop that service first.`;
  }
}

/** The data directory cannot be created or written. */
export class DataDirectoryUnusable extends Schema.TaggedError<DataDirectoryUnusable>()(
  "DataDirectoryUnusable",
  { path: Schema.String, cause: Schema.Defect() },
) {
  override get message(): string {
    return isOutOfSpace(this.cause)
      ? `The disk of ${this.path} (PLATFORM_DATA_DIR) is full. Free some space, then start again.`
      : `The data directory ${this.path} (PLATFORM_DATA_DIR) cannot be used: ${fileFault(this.cause)}. Set PLATFORM_DATA_DIR to a directory in which this user may write. A missing one is created.`;
  }
}

/** The directory itself, or its nearest existing parent. */
export const existingParent = async (directory: string): Promise<string> =>
  (await stat(directory).catch(() => null)) === null ? existingParent(dirname(directory)) : directory;

/** Why the service could not create or write the directory, which is not tried. Null if it could. */
export const directoryFault = async (path: string): Promise<DataDirectoryUnusable | null> =>
  access(await existingParent(path), constants.W_OK).then(
    () => null,
    (cause: unknown) => new DataDirectoryUnusable({ path, cause }),
  );

interface Owner {
  readonly pid: number;
  /** Clock ticks since boot, and the boot's id: a pid alone may now belong to another process. */
  readonly startedAt: string;
  /** The directory in which it was written, by device and inode (O3). Null in files of older versions. */
  readonly directory: string | null;
}

const LOCK_FILE = /^owner\.[0-9a-f]{16}\.json$/;
/** Services that start at the same moment may all step back. Each retries, at a different time. */
export const RETRIES = { times: 6, schedule: Schedule.jittered(Schedule.exponential("5 millis")) } as const;

const parseOwner = (text: string): Owner | null => {
  const { pid, startedAt, directory } = parseRecord(text) ?? {};
  return typeof pid === "number" && typeof startedAt === "string"
    ? { pid, startedAt, directory: typeof directory === "string" ? directory : null }
    : null;
};

const readIdentity = async (directory: string): Promise<string> => {
  const { dev, ino } = await stat(directory);
  return `${dev}:${ino}`;
};

const isAlive = async (owner: Owner | null, directory: string): Promise<boolean> =>
  owner !== null &&
  (owner.directory ?? directory) === directory &&
  (await processStartedAt(owner.pid)) === owner.startedAt;

const readOwner = async (file: string): Promise<Owner | null> =>
  parseOwner(await readFile(file, "utf8").catch(() => ""));

/** Another living owner. Removes the files of dead ones. */
const livingOther = async (path: string, mine: string): Promise<Owner | null> => {
  const names = (await readdir(path)).filter((name) => LOCK_FILE.test(name) && name !== mine);
  const directory = await readIdentity(path);
  const others = await Promise.all(
    names.map(async (name) => {
      const owner = await readOwner(join(path, name));
      if (await isAlive(owner, directory)) return owner;
      await rm(join(path, name), { force: true });
      return null;
    }),
  );
  return others.find((owner) => owner !== null) ?? null;
};

/** The process id of the service that owns the directory now. Null if there is no owner. */
export const livingOwner = async (path: string): Promise<number | null> =>
  (await livingOther(path, ""))?.pid ?? null;

/**
 * Claims an existing directory for this process. Where a service owns it already, nothing is written: the operator's
 * commands work beside a service whose disk is full.
 *
 * @returns the path of the lock file. Removing it frees the directory.
 * @throws DataDirectoryOwned
 */
export const acquire = async (path: string): Promise<string> => {
  const before = await livingOther(path, "");
  if (before !== null) throw new DataDirectoryOwned({ path, pid: before.pid });
  const name = `owner.${randomBytes(8).toString("hex")}.json`;
  const lock = join(path, name);
  const owner: Owner = {
    pid: process.pid,
    startedAt: (await processStartedAt(process.pid)) ?? "",
    directory: await readIdentity(path),
  };
  // Renamed into place, so that no reader sees half a file and takes its owner for dead.
  try {
    await writeFile(`${lock}.new`, JSON.stringify(owner), { mode: 0o600 });
    await rename(`${lock}.new`, lock);
  } catch (error) {
    await rm(`${lock}.new`, { force: true });
    throw error;
  }
  const other = await livingOther(path, name);
  if (other === null) return lock;
  await rm(lock);
  throw new DataDirectoryOwned({ path, pid: other.pid });
};

/** Below this, a disk is full whatever its bytes are: each push and each save makes several files. */
const FREE_FILES_MIN = 1_000;

/** @returns the bytes of a disk for the service. Some file systems have no limit of files, and say 0 of 0. */
export const spaceOn = ({
  bavail,
  bsize,
  files,
  ffree,
}: Pick<StatsFs, "bavail" | "bsize" | "files" | "ffree">): number =>
  files > 0 && ffree < FREE_FILES_MIN ? 0 : bavail * bsize;

/**
 * Bytes that the directory's disk has for the service: 0 also if it has no room for files or takes no writes any more. Null if the system
 * does not say.
 */
export const freeBytes = (directory: string): Effect.Effect<number | null> =>
  Effect.promise(async () => {
    try {
      await access(directory, constants.W_OK);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EROFS") return 0;
    }
    return statfs(directory).then(spaceOn, () => null);
  });

/**
 * Creates the directory if it is missing (0700, with a `.gitignore` of `*`), and owns it until the scope closes.
 *
 * @returns its real path.
 */
export const claimDataDirectory = (
  directory: string,
): Effect.Effect<string, DataDirectoryOwned | DataDirectoryUnusable, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.tryPromise({
      try: async () => {
        const fault = await directoryFault(directory);
        if (fault !== null) throw fault;
        await mkdir(directory, { recursive: true, mode: 0o700 });
        const path = await realpath(directory);
        await chmod(path, 0o700);
        const lock = await acquire(path);
        await writeFile(join(path, ".gitignore"), "*\n");
        return { path, lock };
      },
      catch: (cause) =>
        cause instanceof DataDirectoryOwned || cause instanceof DataDirectoryUnusable
          ? cause
          : new DataDirectoryUnusable({ path: directory, cause }),
    }).pipe(Effect.retry({ ...RETRIES, while: ({ _tag }) => _tag === "DataDirectoryOwned" })),
    ({ lock }) => Effect.promise(() => rm(lock, { force: true })),
  ).pipe(Effect.map(({ path }) => path));
