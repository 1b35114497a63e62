/**
 * The service's data directory (api.md 9 PLATFORM_DATA_DIR): made on first start, and owned by one service at a time.
 *
 * The owner writes its pid and start time into `owner.json`. A lock whose process is gone, or whose pid now belongs to
 * another process, is taken over. The file is made by link(2), so it is never seen half written.
 */
import { randomBytes } from "node:crypto";
import { chmod, link, mkdir, readFile, realpath, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import type * as Scope from "effect/Scope";
import { processStartedAt } from "./process.ts";

/** Another service runs on this data directory. */
export class DataDirectoryOwned extends Schema.TaggedError<DataDirectoryOwned>()("DataDirectoryOwned", {
  path: Schema.String,
  pid: Schema.Finite,
}) {
  override get message(): string {
    return `The data directory ${this.path} is in use by the service with process id ${this.pid}; stop it first.`;
  }
}

/** The data directory cannot be made or written. */
export class DataDirectoryUnusable extends Schema.TaggedError<DataDirectoryUnusable>()(
  "DataDirectoryUnusable",
  { path: Schema.String, cause: Schema.Defect() },
) {
  override get message(): string {
    return `The data directory ${this.path} cannot be used: ${String(this.cause)}`;
  }
}

interface Owner {
  readonly pid: number;
  /** Clock ticks since boot, and the boot: a pid alone may have been given to another process. */
  readonly startedAt: string;
}

const LOCK = "owner.json";
/** Each failed turn means that another service took the lock in between. */
const MAX_TURNS = 5;

const parseOwner = (text: string): Owner | null => {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null) return null;
    const [pid, startedAt]: unknown[] = [Reflect.get(value, "pid"), Reflect.get(value, "startedAt")];
    return typeof pid === "number" && typeof startedAt === "string" ? { pid, startedAt } : null;
  } catch {
    return null;
  }
};

const isAlive = async (owner: Owner | null): Promise<boolean> =>
  owner !== null && (await processStartedAt(owner.pid)) === owner.startedAt;

const isCode = (error: unknown, code: string): boolean =>
  error instanceof Error && Reflect.get(error, "code") === code;

/** Takes a dead owner's lock away; puts it back when a living one got there first. */
const removeStale = async (path: string, judged: string): Promise<void> => {
  const aside = join(path, `owner.${randomBytes(6).toString("hex")}.stale`);
  try {
    await rename(join(path, LOCK), aside);
  } catch (error) {
    if (isCode(error, "ENOENT")) return;
    throw error;
  }
  if ((await readFile(aside, "utf8")) !== judged) {
    await link(aside, join(path, LOCK)).catch((error: unknown) => {
      if (!isCode(error, "EEXIST")) throw error;
    });
  }
  await rm(aside, { force: true });
};

const acquire = async (path: string): Promise<string> => {
  const mine = { pid: process.pid, startedAt: (await processStartedAt(process.pid)) ?? "" };
  const draft = join(path, `owner.${randomBytes(6).toString("hex")}.new`);
  await writeFile(draft, JSON.stringify(mine), { mode: 0o600 });
  try {
    for (let turn = 0; turn < MAX_TURNS; turn += 1) {
      try {
        // oxlint-disable-next-line no-await-in-loop -- each turn depends on what the former one found
        await link(draft, join(path, LOCK));
        return JSON.stringify(mine);
      } catch (error) {
        if (!isCode(error, "EEXIST")) throw error;
      }
      // oxlint-disable-next-line no-await-in-loop -- as above
      const text = await readFile(join(path, LOCK), "utf8").catch(() => "");
      const owner = parseOwner(text);
      // oxlint-disable-next-line no-await-in-loop -- as above
      if (owner !== null && (await isAlive(owner))) throw new DataDirectoryOwned({ path, pid: owner.pid });
      // oxlint-disable-next-line no-await-in-loop -- as above
      await removeStale(path, text);
    }
    throw new Error("other services keep taking it");
  } finally {
    await rm(draft, { force: true });
  }
};

/**
 * Makes the directory (0700, with a `.gitignore` of `*`) where it is missing and owns it until the scope closes.
 *
 * @returns its real path.
 */
export const claimDataDirectory = (
  directory: string,
): Effect.Effect<string, DataDirectoryOwned | DataDirectoryUnusable, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.tryPromise({
      try: async () => {
        await mkdir(directory, { recursive: true, mode: 0o700 });
        const path = await realpath(directory);
        await chmod(path, 0o700);
        const lock = await acquire(path);
        await writeFile(join(path, ".gitignore"), "*\n");
        return { path, lock };
      },
      catch: (cause) =>
        cause instanceof DataDirectoryOwned ? cause : new DataDirectoryUnusable({ path: directory, cause }),
    }),
    ({ path, lock }) => Effect.promise(() => removeStale(path, lock)),
  ).pipe(Effect.map(({ path }) => path));
