/**
 * What an installation is known by and must not lose: its id, this node's id and the master key. Kept as files in the
 * data directory, made on first start (api.md 5, 9).
 */
import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import * as Schema from "effect/Schema";
import { uuidV7 } from "./domain/ids.ts";
import { MASTER_KEY_BYTES, parseMasterKey, type Keyring } from "./domain/secret.ts";

export interface Installation {
  readonly installationId: string;
  readonly nodeId: string;
  readonly secrets: Keyring;
}

/** The master key is not one, or not the one the secrets were sealed with: the start is refused (threats.md S08). */
export class MasterKeyRefused extends Schema.TaggedError<MasterKeyRefused>()("MasterKeyRefused", {
  message: Schema.String,
}) {}

/** The file's content, written first where it is missing. Only this process's user may read it. */
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
 * @param masterKey PLATFORM_MASTER_KEY, or null for the file's.
 * @param now ms since the epoch, for ids that are made.
 * @throws MasterKeyRefused for a key that is none.
 */
export function openInstallation(dataDir: string, masterKey: string | null, now: number): Installation {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const text =
    masterKey ??
    keptFile(path.join(dataDir, "master-key"), () => randomBytes(MASTER_KEY_BYTES).toString("hex"));
  const bytes = parseMasterKey(text);
  if (bytes === null) {
    throw new MasterKeyRefused({
      message: `The master key (${masterKey === null ? "file master-key" : "PLATFORM_MASTER_KEY"}) must be 64 hexadecimal digits or base64 of 32 bytes.`,
    });
  }
  const newId = () => uuidV7(now, randomBytes(UUID_BYTES));
  return {
    installationId: keptFile(path.join(dataDir, "installation-id"), newId),
    nodeId: keptFile(path.join(dataDir, "node-id"), newId),
    secrets: { current: { version: 1, bytes }, former: [] },
  };
}
