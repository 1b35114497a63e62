/**
 * Claims the run directory of an installation's sandboxes for one data directory. The run directory is named by the
 * installation's id. Two data directories with the same id would share it, and each would end the sandboxes of the
 * other.
 *
 *  R1 One service at a time owns a run directory (data-directory.ts has the lock).
 *  R2 The file `home.json` in it names the data directory. If another data directory with the same id starts and the
 *     named one is gone, the directory was moved. If the named one still exists, the other is a copy, and its start is
 *     refused.
 *  R3 `platform restore --take-over` states that the named directory is gone for good. It leaves the file `taken-over`.
 */
import { readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import { acquire, DataDirectoryOwned, RETRIES } from "./data-directory.ts";

/** A file in a restored data directory (R3). */
export const TAKEN_OVER = "taken-over";
const HOME = "home.json";

/** The data directory has the id of an installation elsewhere on this machine. */
export class InstallationCopied extends Schema.TaggedError<InstallationCopied>()("InstallationCopied", {
  dataDir: Schema.String,
  home: Schema.String,
}) {
  override get message(): string {
    return (
      `${this.dataDir} is a copy of ${this.home}: both have the same installation id, and the sandboxes belong to ${this.home}. ` +
      `To run the copy as an installation of its own, delete ${join(this.dataDir, "installation-id")} ` +
      `(with DATABASE_URL, delete node-id too). To move the installation, delete ${this.home} first.`
    );
  }
}

/** The run directory cannot be read or written. */
export class RunDirectoryUnusable extends Schema.TaggedError<RunDirectoryUnusable>()("RunDirectoryUnusable", {
  path: Schema.String,
  cause: Schema.Defect(),
}) {
  override get message(): string {
    return `The run directory ${this.path} of the sandboxes cannot be used: ${String(this.cause)}`;
  }
}

export interface RunDirectoryClaim {
  /** An existing directory. */
  readonly runDir: string;
  /** The real path of a data directory that this process owns. */
  readonly dataDir: string;
}

const decodeHome = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Struct({ dataDir: Schema.String })));

/** The data directory that owns the run directory. Null if no file names one. */
export const claimedHome = async (runDir: string): Promise<string | null> => {
  try {
    return decodeHome(await readFile(join(runDir, HOME), "utf8")).dataDir;
  } catch {
    return null;
  }
};

const readInstallationId = (dataDir: string): Promise<string | null> =>
  readFile(join(dataDir, "installation-id"), "utf8").catch(() => null);

const isSame = async (one: string, other: string): Promise<boolean> => {
  const [a, b] = await Promise.all([stat(one), stat(other)]);
  return a.dev === b.dev && a.ino === b.ino;
};

/** The other data directory, if this one is a copy of it. Null if the run directory belongs to this one (R2). */
const original = async ({ runDir, dataDir }: RunDirectoryClaim): Promise<string | null> => {
  const home = await claimedHome(runDir);
  if (home === null || home === dataDir) return null;
  const id = await readInstallationId(home);
  if (id === null || id !== (await readInstallationId(dataDir))) return null;
  return (await isSame(home, dataDir)) ? null : home;
};

const claim = async (request: RunDirectoryClaim): Promise<string> => {
  const { runDir, dataDir } = request;
  const lock = await acquire(runDir);
  const takenOver = join(dataDir, TAKEN_OVER);
  const isTakenOver = await stat(takenOver).then(
    () => true,
    () => false,
  );
  const home = isTakenOver ? null : await original(request);
  if (home !== null) {
    await rm(lock, { force: true });
    throw new InstallationCopied({ dataDir, home });
  }
  const draft = join(runDir, `${HOME}.next`);
  await writeFile(draft, JSON.stringify({ dataDir }), { mode: 0o600 });
  await rename(draft, join(runDir, HOME));
  await rm(takenOver, { force: true });
  return lock;
};

/** Owns the run directory for this data directory until the scope closes. */
export const claimRunDirectory = (request: RunDirectoryClaim) =>
  Effect.acquireRelease(
    Effect.tryPromise({
      try: () => claim(request),
      catch: (cause) =>
        cause instanceof DataDirectoryOwned || cause instanceof InstallationCopied
          ? cause
          : new RunDirectoryUnusable({ path: request.runDir, cause }),
    }).pipe(
      Effect.retry({ ...RETRIES, while: ({ _tag }) => _tag === "DataDirectoryOwned" }),
      Effect.catchTag("DataDirectoryOwned", (error) =>
        Effect.flatMap(
          Effect.promise(() => claimedHome(request.runDir)),
          (home) =>
            Effect.fail(
              home === null || home === request.dataDir
                ? error
                : new InstallationCopied({ dataDir: request.dataDir, home }),
            ),
        ),
      ),
    ),
    (lock) => Effect.promise(() => rm(lock, { force: true })),
  );
