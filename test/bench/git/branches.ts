/** How many session branches a second are made: by the hosted backend, and by bare `git update-ref` processes. */
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import path from "node:path";
import { promisify } from "node:util";
import * as Effect from "effect/Effect";
import * as ManagedRuntime from "effect/ManagedRuntime";
import { hostedBackend } from "../../../src/git/repository/hosted.ts";
import { GitBackend } from "../../../src/git/port.ts";

const run = promisify(execFile);

/**
 * `bare` is git as it comes; `durable` is told, as the service tells it, to have a branch on the disk before it says that
 * it is made.
 */
export const MAKERS = ["bare", "durable", "ours"] as const;
export type Maker = (typeof MAKERS)[number];

export interface Branches {
  /** Makes so many branches, so many at a time. @returns how many a second. */
  readonly perSecond: (
    maker: Maker,
    load: { readonly count: number; readonly atOnce: number },
  ) => Promise<number>;
  readonly close: () => Promise<void>;
}

const fsync = "core.fsync=objects,derived-metadata,reference";

/** Over a fresh repository below `directory`. */
export const openBranches = async (directory: string): Promise<Branches> => {
  const repository = { projectId: randomUUID() };
  const runtime = ManagedRuntime.make(hostedBackend({ directory }));
  const git = await runtime.runPromise(GitBackend);
  await runtime.runPromise(git.create({ ...repository, importFrom: null, defaultBranch: "main" }));
  const commit = (await runtime.runPromise(git.branchTip(repository, "main"))) ?? "";
  const bare = path.join(directory, `${repository.projectId}.git`);
  const updateRef = (branch: string, settings: readonly string[]): Effect.Effect<void> =>
    Effect.promise(async () => {
      await run("git", [
        ...settings,
        "-C",
        bare,
        "update-ref",
        `refs/heads/${branch}`,
        commit,
        "0".repeat(40),
      ]);
    });
  const make: Readonly<Record<Maker, (branch: string) => Effect.Effect<void, unknown>>> = {
    bare: (branch) => updateRef(branch, []),
    durable: (branch) => updateRef(branch, ["-c", fsync]),
    ours: (branch) => git.createBranch(repository, { branch, commit }),
  };
  return {
    perSecond: async (maker, { count, atOnce }) => {
      const names = Array.from({ length: count }, () => randomUUID());
      const started = performance.now();
      await runtime.runPromise(Effect.forEach(names, make[maker], { concurrency: atOnce, discard: true }));
      return count / ((performance.now() - started) / 1000);
    },
    close: () => runtime.dispose(),
  };
};
