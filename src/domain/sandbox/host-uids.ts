/**
 * User ids on the host that no other program has: of sandboxes, of builds and of the embedded database of a root service. They are far
 * above users, services and usual subordinate ranges. Who shares a user id with another program can read that program's
 * memory, files and directories.
 */
import { createHash } from "node:crypto";

/** How many ranges a kind has. Two installations meet in one only by chance. */
const RANGES = 10_000;
const SANDBOX_FIRST = 300_000_000;
export const UIDS_PER_INSTALLATION = 30_000;
const DATABASE_FIRST = SANDBOX_FIRST - RANGES;
/** Where a user namespace ends below `DATABASE_FIRST`, as in a rootless container: the last one that distributions reserve. */
const DATABASE_IN_SMALL_NAMESPACE = 65_533;

const keyRange = (key: string): number => createHash("sha256").update(key).digest().readUInt32BE() % RANGES;

/** The first user id of an installation's sandboxes. */
export const sandboxUids = (installationId: string): number =>
  SANDBOX_FIRST + keyRange(installationId) * UIDS_PER_INSTALLATION;

/** Whether a user namespace has all user ids of a block. @param map the content of a uid_map */
export const mapHasUids = (map: string, first: number, count: number): boolean =>
  map.split("\n").some((line) => {
    const [inside = Number.NaN, , size = 0] = line.trim().split(/\s+/).map(Number);
    return inside <= first && first + count <= inside + size;
  });

/** The user id of the database in a data directory. @param map the uid_map of the service */
export const databaseUid = (dataDirectory: string, map: string): number => {
  const uid = DATABASE_FIRST + keyRange(dataDirectory);
  return mapHasUids(map, uid, 1) ? uid : DATABASE_IN_SMALL_NAMESPACE;
};
