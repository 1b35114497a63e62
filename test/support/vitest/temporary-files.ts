/**
 * Vitest's global set-up: if the machine has plenty of memory, the run's temporary files are kept there, and are
 * removed at its end. Tests create and remove hundreds of databases and repositories: on a disk that was a fifth of the
 * CPU time of `test/http`.
 */
import { chmodSync, readFileSync, statfsSync } from "node:fs";
import path from "node:path";
import { guardedDirectory } from "../machine/guard.ts";

const IN_MEMORY = "/dev/shm";
/** Far more than the measured use in the middle of a run: 286 MiB. */
const MIN_SPACE_BYTES = 4 * 1024 ** 3;
const MIN_MEMORY_BYTES = 8 * 1024 ** 3;

/** Tests start programs that they have written there. */
const mayExecute = (): boolean =>
  readFileSync("/proc/self/mounts", "utf8")
    .split("\n")
    .map((line) => line.split(" "))
    .some(
      ([, at, type, options]) =>
        at === IN_MEMORY && type === "tmpfs" && !options?.split(",").includes("noexec"),
    );

const hasPlenty = (): boolean => {
  const { bavail, bsize } = statfsSync(IN_MEMORY);
  return bavail * bsize >= MIN_SPACE_BYTES && process.availableMemory() >= MIN_MEMORY_BYTES;
};

export const setup = (): (() => void) => {
  // An explicitly set directory is used as it is.
  if (process.env["TMPDIR"] !== undefined || !mayExecute() || !hasPlenty()) return () => undefined;
  const { directory, remove } = guardedDirectory("test-", IN_MEMORY);
  // As open as /tmp, because some tests run as another user.
  chmodSync(directory, 0o1777);
  process.env["TMPDIR"] = directory;
  process.env["TEST_RUN_DIRECTORY"] = directory;
  // Workers, and programs that the tests start, compile each module once. The cache is that of the clone (src/ground/compile-cache.ts).
  process.env["NODE_COMPILE_CACHE"] = path.resolve("node_modules/.cache/compile");
  return remove;
};
