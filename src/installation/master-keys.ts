/**
 * Finds the master key that sealed the database's secrets, before anything is opened with it or derived from it. A key
 * is created only for a database without one. A missing key is never replaced (threats.md S08).
 */
import * as Effect from "effect/Effect";
import type { MasterKeys } from "../services/keyring.ts";
import type { Config } from "../settings/config.ts";
import { keyCheckText, keyProvedBy, openFormerKeys } from "../domain/secret/master-key.ts";
import type { MasterKey } from "../domain/secret/secret.ts";
import {
  draftKey,
  dropDraft,
  type KeptKeys,
  keptKeys,
  MasterKeyRefused,
  readKey,
  settleKey,
} from "../store/installation.ts";
import { Secrets } from "../store/ports/projects/secrets.ts";

type Settings = Pick<Config, "masterKey" | "databaseUrl">;

const keyRefused = (message: string) => new MasterKeyRefused({ message });

/** The error, with the setting or file that fixes it. */
const explain = (dataDir: string, { masterKey, databaseUrl }: Settings, keys: KeptKeys): MasterKeyRefused => {
  const advice = "No secret was changed.";
  if (masterKey !== null)
    return keyRefused(
      `PLATFORM_MASTER_KEY is not the key of this database's secrets. Set the right key. ${advice}`,
    );
  const set =
    databaseUrl === null
      ? "If the service used PLATFORM_MASTER_KEY before, set it to the same key"
      : "Set PLATFORM_MASTER_KEY to the key of the other services with this DATABASE_URL";
  return keyRefused(
    keys.current === null && keys.next === null
      ? `The master key of this database's secrets is missing. ${set}, or restore the file ${dataDir}/master-key from a backup. ${advice}`
      : `The key in ${dataDir}/master-key is not the key of this database's secrets. ${set}, or restore the right file. ${advice}`,
  );
};

const attempt = <A>(run: () => Promise<A> | A) =>
  Effect.tryPromise({ try: async () => run(), catch: (error) => error });

/**
 * The key of a database that has none yet. The database records its check value first, then the key takes its place.
 */
const firstKey = Effect.fnUntraced(function* (dataDir: string, settings: Settings, keys: KeptKeys) {
  const settingKey = settings.masterKey === null ? null : readKey(settings.masterKey, "PLATFORM_MASTER_KEY");
  const bytes = settingKey ?? keys.current ?? (yield* attempt(() => draftKey(dataDir)));
  const key: MasterKey = { version: 1, bytes };
  const check = keyCheckText(key);
  const isDraft = settingKey === null && keys.current === null;
  if ((yield* (yield* Secrets).keyCheck(check)) !== check) {
    // Another service was first, with another key.
    if (isDraft) yield* attempt(() => dropDraft(dataDir));
    return yield* explain(dataDir, settings, { current: null, next: null });
  }
  if (isDraft) yield* attempt(() => settleKey(dataDir));
  return { current: key, former: [] } satisfies MasterKeys;
});

/** The key that sealed the database's secrets, and where it was found. */
const provenKey = Effect.fnUntraced(function* (
  place: { readonly dataDir: string; readonly kept: KeptKeys },
  settings: Settings,
  check: string,
) {
  const { dataDir, kept } = place;
  const proveKey = (bytes: Uint8Array | null) => (bytes === null ? null : keyProvedBy(bytes, check));
  if (settings.masterKey !== null) {
    const text = settings.masterKey;
    const key = proveKey(yield* attempt(() => readKey(text, "PLATFORM_MASTER_KEY")));
    return key === null ? yield* explain(dataDir, settings, kept) : { key, from: "setting" as const };
  }
  const current = proveKey(kept.current);
  if (current !== null) return { key: current, from: "file" as const };
  const next = proveKey(kept.next);
  return next === null ? yield* explain(dataDir, settings, kept) : { key: next, from: "draft" as const };
});

/** Fails as `openMasterKeys` would, and changes nothing. */
export const examineMasterKey = Effect.fnUntraced(function* (dataDir: string, settings: Settings) {
  const record = yield* (yield* Secrets).masterKey;
  const keys = yield* attempt(() => keptKeys(dataDir));
  if (record !== null) yield* provenKey({ dataDir, kept: keys }, settings, record.check);
});

/**
 * The installation's keys, for a process that owns its data directory.
 *
 * @throws MasterKeyRefused if the key is missing, invalid or a different one
 */
export const openMasterKeys = Effect.fnUntraced(function* (dataDir: string, settings: Settings) {
  const record = yield* (yield* Secrets).masterKey;
  const keys = yield* attempt(() => keptKeys(dataDir));
  if (record === null) return yield* firstKey(dataDir, settings, keys);
  const { key, from } = yield* provenKey({ dataDir, kept: keys }, settings, record.check);
  // A rotation was killed before the database knew of its key.
  if (from === "file" && keys.next !== null) yield* attempt(() => dropDraft(dataDir));
  if (from === "draft") yield* attempt(() => settleKey(dataDir));
  return {
    current: key,
    former: record.former === null ? [] : openFormerKeys(key, record.former),
  } satisfies MasterKeys;
});

/**
 * Checks whether the key is still the database's, once this node has sent its first heartbeat. A rotation begins only
 * if no node is alive, and a node that starts during a rotation waits here for its end.
 */
export const confirmMasterKey = Effect.fnUntraced(function* ({ current }: MasterKeys) {
  const record = yield* (yield* Secrets).masterKey;
  if (record !== null && keyProvedBy(current.bytes, record.check)?.version === current.version) return;
  return yield* keyRefused(
    "The master key was replaced while the service started. Start it again with the new key.",
  );
});
