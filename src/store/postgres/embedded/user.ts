/** The user that the embedded Postgres runs as (embedded.ts P2), and what belongs to it. */
import { execFile } from "node:child_process";
import { chown, readFile, stat } from "node:fs/promises";
import { promisify } from "node:util";
import { databaseUid } from "../../../domain/sandbox/host-uids.ts";

/** Empty: the service's own user. */
export interface ServerUser {
  readonly uid?: number;
  readonly gid?: number;
}

/** @param dataDirectory its real path */
export const serverUser = async (dataDirectory: string): Promise<ServerUser> => {
  if (process.getuid?.() !== 0) return {};
  const uid = databaseUid(dataDirectory, await readFile("/proc/self/uid_map", "utf8"));
  return { uid, gid: uid };
};

/** Gives the user the name that initdb requires (native/account.c). */
export const ACCOUNT_LIBRARY = new URL(`native/${process.arch}/account.so`, import.meta.url);

export const handOver = async (path: string, { uid, gid }: ServerUser): Promise<void> => {
  if (uid !== undefined && gid !== undefined) await chown(path, uid, gid);
};

/**
 * Hands over a database that another user created: before a move, a restore or an upgrade. No server may run on it. The
 * directory itself comes last, so that an interrupted change begins again.
 */
export const handOverDatabase = async (directory: string, { uid, gid }: ServerUser): Promise<void> => {
  if (uid === undefined || (await stat(directory)).uid === uid) return;
  // `chown` walks by descriptors: a link that the former user put there leads it nowhere.
  await promisify(execFile)("chown", ["--recursive", "--no-dereference", `${uid}:${gid}`, directory], {
    env: { PATH: "/usr/bin:/bin" },
  });
};
