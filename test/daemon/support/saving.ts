/** Saves of a running daemon, and their results in the remote repository. */
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import type { Running } from "./running.ts";

export interface Saved {
  readonly wip: string | null;
  readonly skipped: readonly { readonly path: string; readonly reason: string }[];
  readonly error: string | null;
}

/** Saves, and proves that the agent's own repository is byte for byte as it was. */
export const save = async (daemon: Running): Promise<Saved> => {
  const before = fingerprint(daemon);
  const [status, saved] = await daemon.control("save");
  expect(status).toBe(200);
  expect(fingerprint(daemon)).toEqual(before);
  // Its draft is gone.
  expect(readdirSync(join(daemon.directory, "tmp"))).toEqual([]);
  return saved as unknown as Saved;
};

/** The wip commit of a save that must have made one; the remote has it. */
export const wipOf = async (daemon: Running): Promise<string> => {
  const saved = await save(daemon);
  expect(saved.error).toBeNull();
  expect(daemon.remote("rev-parse", `refs/wip/${daemon.sessionId}`)).toBe(saved.wip);
  return saved.wip ?? "";
};

/** Everything in `.git`: index, HEAD, refs, objects, configuration. */
const fingerprint = (daemon: Running): Record<string, string> => {
  const directory = join(daemon.layout.workspace, ".git");
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  return Object.fromEntries(
    files.map((entry) => {
      const file = join(entry.parentPath, entry.name);
      return [file, createHash("sha256").update(readFileSync(file)).digest("hex")];
    }),
  );
};

export const write = (daemon: Running, name: string, text: string | Buffer = `${name}\n`): void => {
  const file = join(daemon.layout.workspace, name);
  mkdirSync(join(file, ".."), { recursive: true });
  writeFileSync(file, text);
};
export const headOf = async (daemon: Running): Promise<string> =>
  (await daemon.git("rev-parse", "HEAD")).trim();
export const filesOf = (daemon: Running, commit: string): string[] =>
  daemon
    .remote("ls-tree", "-r", "-z", "--name-only", commit)
    .split("\0")
    .filter((name) => name !== "");
export const textOf = (daemon: Running, commit: string, name: string): string =>
  daemon.remote("cat-file", "-p", `${commit}:${name}`);
export const parentsOf = (daemon: Running, commit: string): string[] =>
  daemon.remote("show", "-s", "--format=%P", commit).split(" ");
export const reasonOf = (saved: Saved, path: string): string | undefined =>
  saved.skipped.find((skip) => skip.path === path)?.reason;
/** The commit that keeps what is not in the files; the saved commit's message names it. */
export const restOf = (daemon: Running, wip: string): string =>
  /^ *rest=([0-9a-f]{40})$/m.exec(daemon.remote("show", "-s", "--format=%B", wip))?.[1] ?? "none";
