/**
 * `platform admin master-key rotate`: replaces the master key, and seals all sealed values with the new one. The
 * service must be stopped.
 *
 *  T1 The new key is on the disk before the database knows it, and one transaction changes the database from one key to
 *     the other. After a kill at any point, the service starts with the key that the database knows: by itself with its
 *     own files, or with PLATFORM_MASTER_KEY set to the right one of the two.
 *  T2 Running sandboxes keep their tokens, which derive from the former key. That key is kept, sealed with the new one,
 *     while one of them runs.
 */
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import type { Environment } from "../../cli/configuration.ts";
import { EXIT, Failure } from "../../cli/failure.ts";
import { withAudit } from "../../services/audit.ts";
import type { MasterKeys } from "../../services/keyring.ts";
import { type Config, readConfig } from "../../settings/config.ts";
import { uuidInstant } from "../../domain/ids.ts";
import { type FormerKey, keyCheckText, keyProvedBy, sealFormerKeys } from "../../domain/secret/master-key.ts";
import { credentialPlace } from "../../domain/repository/repository-credential.ts";
import { type MasterKey, NONCE_BYTES, sealSecret, unsealSecret } from "../../domain/secret/secret.ts";
import { draftKey, readKey, settleKey } from "../../store/installation.ts";
import { openMasterKeys } from "../master-keys.ts";
import { claimDataDirectory } from "../../store/data-directory.ts";
import { Faults } from "../../store/ports/faults.ts";
import { Secrets } from "../../store/ports/projects/secrets.ts";
import * as Client from "../../store/postgres/connection/client.ts";
import * as Embedded from "../../store/postgres/embedded/embedded.ts";
import { resealDatabase } from "../../assembly/database.ts";
import type { KeyFacts, SealedRow } from "../../store/postgres/reseal.ts";
import { asOperator } from "./acting.ts";
import { installedDirectory, storeOn } from "./database.ts";

/** A node that was silent for this long is stopped: a running node sends a heartbeat every second. */
const SILENT_MS = 10_000;

export interface Rotated {
  readonly version: number;
  readonly secrets: number;
  readonly repository_credentials: number;
  readonly connector_credentials: number;
  /** Addresses and signing secrets of receivers. */
  readonly outbound_webhooks: number;
  /** Keys of accounts' providers of models. */
  readonly model_providers: number;
  readonly subscriptions: number;
  /** `file`: the service finds it by itself. `given`: the service must be started with it. */
  readonly key: "file" | "given";
  readonly data_dir: string;
}

const fail = (code: string, message: string) => Effect.fail(new Failure(EXIT.refused, code, { message }));
const failUsage = (message: string) => Effect.fail(new Failure(EXIT.usage, "usage", { message }));

const attempt = <A>(run: () => Promise<A>) => Effect.tryPromise({ try: run, catch: (error) => error });

/** The key in the operator's file, or a new one in the data directory. */
const nextKey = (dataDir: string, keyFile: string | null) =>
  attempt(async () =>
    keyFile === null ? draftKey(dataDir) : readKey((await readFile(keyFile, "utf8")).trim(), keyFile),
  );

const reseal = (former: MasterKey, current: MasterKey) => (row: SealedRow) =>
  Effect.suspend(() => {
    const place =
      row.name === null ? credentialPlace(row.projectId) : { ...row, name: row.name, version: row.version };
    const opening = unsealSecret({ current: former, former: [] }, place, row.envelope);
    if (Result.isSuccess(opening)) {
      const secret = { value: opening.success, nonce: randomBytes(NONCE_BYTES) };
      return Effect.succeed(sealSecret({ current, former: [] }, place, secret));
    }
    const what = row.name === null ? "The repository's credential" : `The secret "${row.name}"`;
    return fail(
      "cannot_unseal",
      `${what} of project ${row.projectId} cannot be decrypted (${opening.failure}). Replace or delete it, then try again. Nothing was changed.`,
    );
  });

/** The instants in sandboxes' ids decide, and the clocks behind them may be ahead of this one. */
const retiredAt = ({ newest }: KeyFacts, now: number): number =>
  Math.max(now, newest === null ? 0 : (uuidInstant(newest) ?? 0)) + 1;

/** T2: the former keys that running sandboxes still need. */
const stillUsed = (keys: readonly FormerKey[], { oldestLive }: KeyFacts): readonly FormerKey[] => {
  const since = oldestLive === null ? null : uuidInstant(oldestLive);
  return since === null ? [] : keys.filter((key) => since < key.retiredAt);
};

const rotate = Effect.fnUntraced(function* (keys: MasterKeys, bytes: Uint8Array, config: Config) {
  const faults = yield* Faults;
  const now = yield* Clock.currentTimeMillis;
  const current: MasterKey = { version: keys.current.version + 1, bytes };
  faults("rotation.drafted");
  const decide = (state: KeyFacts) => {
    const [node] = config.databaseUrl === null ? [] : state.nodes;
    if (node !== undefined)
      return fail(
        "service_running",
        `The node ${node} of this database responded less than ${SILENT_MS / 1000} s ago. Stop every service of this DATABASE_URL, wait ${SILENT_MS / 1000} s, then try again.`,
      );
    if (state.check !== keyCheckText(keys.current))
      return fail("conflict", "Another command replaced the master key at the same time. Try again.");
    const at = retiredAt(state, now);
    const former = stillUsed([...keys.former, { ...keys.current, retiredAt: at }], state);
    return Effect.succeed({
      check: keyCheckText(current),
      former: sealFormerKeys(current, former, () => randomBytes(NONCE_BYTES)),
    });
  };
  const counts = resealDatabase({
    aliveSince: now - SILENT_MS,
    decide,
    reseal: reseal(keys.current, current),
    written: () => faults("rotation.written"),
  });
  const row = { action: "master_key.rotated", changes: { version: current.version } } as const;
  const counters = yield* counts.pipe(
    withAudit(() => row),
    asOperator,
  );
  faults("rotation.committed");
  return {
    version: current.version,
    secrets: counters.secrets,
    repository_credentials: counters.credentials,
    connector_credentials: counters.connectorCredentials + counters.connectorGrants,
    approvals: counters.approvals,
    outbound_webhooks: counters.receivers,
    model_providers: counters.modelProviders,
    subscriptions: counters.subscriptions,
  };
});

const work = Effect.fnUntraced(function* (config: Config, dataDir: string, keyFile: string | null) {
  const record = yield* (yield* Secrets).masterKey;
  if (record === null)
    return yield* fail(
      "never_started",
      "The service has never started with this database, so it has no master key yet.",
    );
  const key = keyFile === null ? ("file" as const) : ("given" as const);
  const newKey = keyFile === null ? null : yield* nextKey(dataDir, keyFile);
  if (newKey !== null && Buffer.from(newKey).equals(readKey(config.masterKey ?? "", "PLATFORM_MASTER_KEY")))
    return yield* failUsage(`The file ${keyFile} contains the current key. Write a new key to it.`);
  const nextMasterKey = newKey === null ? null : keyProvedBy(newKey, record.check);
  // An earlier call was killed after its commit.
  if (nextMasterKey !== null)
    return {
      version: nextMasterKey.version,
      secrets: 0,
      repository_credentials: 0,
      connector_credentials: 0,
      outbound_webhooks: 0,
      model_providers: 0,
      subscriptions: 0,
      key,
      data_dir: dataDir,
    };
  const keys = yield* openMasterKeys(dataDir, config);
  const rotation = yield* rotate(keys, newKey ?? (yield* nextKey(dataDir, null)), config);
  if (keyFile === null) yield* attempt(() => settleKey(dataDir));
  return { ...rotation, key, data_dir: dataDir } satisfies Rotated;
});

/**
 * Refuses while the service owns the data directory. If database and key are both given, the directory may be missing.
 */
const stoppedDirectory = Effect.fnUntraced(function* (config: Config) {
  if (config.databaseUrl !== null && config.masterKey !== null && !existsSync(config.dataDir))
    return config.dataDir;
  const dataDir = yield* installedDirectory(config);
  return yield* claimDataDirectory(dataDir).pipe(
    Effect.catchTag("DataDirectoryOwned", ({ pid }) =>
      fail("service_running", `The service runs, with process id ${pid}. Stop it, then try again.`),
    ),
  );
});

/** @param keyFile contains the new key, if the service is given its key; otherwise null */
export const rotateMasterKey = Effect.fnUntraced(function* (
  environment: Environment,
  keyFile: string | null,
) {
  const config = readConfig(environment, process.cwd());
  if (config.masterKey !== null && keyFile === null)
    return yield* failUsage(
      "PLATFORM_MASTER_KEY is set, so you must provide the new key. Write it to a file (openssl rand -hex 32) and name the file with --new-key-file.",
    );
  if (config.masterKey === null && keyFile !== null)
    return yield* failUsage(
      "PLATFORM_MASTER_KEY is not set, so the installation creates the new key itself. Leave out --new-key-file, or set PLATFORM_MASTER_KEY to the current key.",
    );
  const dataDir = yield* stoppedDirectory(config);
  const database =
    config.databaseUrl === null
      ? Embedded.layer(dataDir)
      : Client.layer({ url: config.databaseUrl, maxConnections: 2, applicationName: "platform operator" });
  return yield* Effect.provide(work(config, dataDir, keyFile), storeOn(database));
}, Effect.scoped);
