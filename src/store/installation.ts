/**
 * The identity of an installation, which must not be lost: its id, this node's id and the master key. They are files in
 * the data directory, created on first start (api.md 5, 9).
 *
 *  M1 `master-key` is the key that seals the database's secrets. `master-key.next` replaces it as soon as the database
 *     knows it. The file is on the disk before that, so a kill loses neither key.
 */
import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import path from "node:path";
import * as Schema from "effect/Schema";
import { uuidV7 } from "../domain/ids.ts";
import { MASTER_KEY_BYTES, parseMasterKey } from "../domain/secret/secret.ts";

export interface Installation {
  readonly installationId: string;
  readonly nodeId: string;
}

/** The master key is invalid, or did not seal the database's secrets: the start is refused (threats.md S08). */
export class MasterKeyRefused extends Schema.TaggedError<MasterKeyRefused>()("MasterKeyRefused", {
  message: Schema.String,
}) {}

/** The file's content. If the file is missing, it is written first. Only this process's user may read it. */
const keptFile = (file: string, make: () => string): string => {
  try {
    writeFileSync(file, `${make()}\n`, { mode: 0o600, flag: "wx" });
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  }
  return readFileSync(file, "utf8").trim();
};

const UUID_BYTES = 16;

/**
 * Opens the installation of a data directory that this process owns.
 *
 * @param now ms since the epoch, for ids that are made.
 */
export function openInstallation(dataDir: string, now: number): Installation {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const newId = () => uuidV7(now, randomBytes(UUID_BYTES));
  return {
    installationId: keptFile(path.join(dataDir, "installation-id"), newId),
    nodeId: keptFile(path.join(dataDir, "node-id"), newId),
  };
}

const LINK_KEY_BYTES = 32;

/** The secret from which the keys of sandboxes elsewhere derive (sandbox/remote/keys.ts). It is made at its first use. */
export const linkSecret = (dataDir: string): Uint8Array =>
  Buffer.from(
    keptFile(path.join(dataDir, "link-key"), () => randomBytes(LINK_KEY_BYTES).toString("hex")),
    "hex",
  );

/** @returns the file, which only this process's user may read */
export const keepFirstToken = (dataDir: string, token: string): string => {
  const file = path.join(dataDir, "first-token");
  writeFileSync(file, `${token}\n`, { mode: 0o600, flag: "wx" });
  return file;
};

const KEY = "master-key";
const NEXT = "master-key.next";

/** @throws MasterKeyRefused for a text that is no key. @param from where it comes from, for people */
export const readKey = (text: string, from: string): Uint8Array => {
  const bytes = parseMasterKey(text);
  if (bytes !== null) return bytes;
  throw new MasterKeyRefused({
    message: `The master key in ${from} must be 64 hexadecimal digits or base64 of 32 bytes.`,
  });
};

const keyIn = (file: string): Uint8Array | null => {
  let text: string;
  try {
    text = readFileSync(file, "utf8").trim();
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
  return readKey(text, file);
};

export interface KeptKeys {
  readonly current: Uint8Array | null;
  readonly next: Uint8Array | null;
}

/** @throws MasterKeyRefused if a file does not contain a key */
export const keptKeys = (dataDir: string): KeptKeys => ({
  current: keyIn(path.join(dataDir, KEY)),
  next: keyIn(path.join(dataDir, NEXT)),
});

const syncFile = async (file: string): Promise<void> => {
  await using handle = await open(file, "r");
  await handle.sync();
};

/** A new key as `master-key.next`, on the disk when this returns. If the file exists already, its key is used (M1). */
export const draftKey = async (dataDir: string): Promise<Uint8Array> => {
  const file = path.join(dataDir, NEXT);
  const earlier = keyIn(file);
  if (earlier !== null) return earlier;
  const draft = `${file}.draft`;
  writeFileSync(draft, `${randomBytes(MASTER_KEY_BYTES).toString("hex")}\n`, { mode: 0o600 });
  await syncFile(draft);
  // Atomic: the file is complete or absent.
  await rename(draft, file);
  await syncFile(dataDir);
  return readKey(readFileSync(file, "utf8").trim(), file);
};

/** Moves `master-key.next` to `master-key`: the database knows it. */
export const settleKey = async (dataDir: string): Promise<void> => {
  await rename(path.join(dataDir, NEXT), path.join(dataDir, KEY));
  await syncFile(dataDir);
};

/** Removes a new key that the database does not know. */
export const dropDraft = (dataDir: string): Promise<void> => rm(path.join(dataDir, NEXT), { force: true });
