/**
 * `platform backup <file>`: an embedded installation as one file, even while its service runs.
 *
 *  B1 Rows come first, from one snapshot. Repositories are read after it. Git has a branch or a commit before a row
 *     names it, or the row's command creates the branch later, and the service never removes a ref. So the backup
 *     contains everything that its rows name, or creates it at its start. Repositories may be newer than the rows: as
 *     after a kill, a retry finds a branch that no row names yet.
 *     The saved work of sessions comes last: each save is complete in itself.
 *  B2 The file gets its name only when it is complete and on the disk.
 *  B3 It contains the master key, so no other user may read it.
 */
import { existsSync, statSync } from "node:fs";
import { mkdtemp, readFile, realpath, rename, rm, stat } from "node:fs/promises";
import path from "node:path";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import { thrownText } from "../../../ground/thrown.ts";
import { fileFault } from "../../../domain/repository/file-fault.ts";
import { keyProvedBy } from "../../../domain/secret/master-key.ts";
import { parseMasterKey } from "../../../domain/secret/secret.ts";
import { bundleInto, headRef } from "../../../git/repository/bundle.ts";
import { existingRepository } from "../../../git/repository/repository-path.ts";
import { savesIn } from "../../../saves/directories.ts";
import { claimDataDirectory } from "../../../store/data-directory.ts";
import { hasEmbedded, runningEmbedded, startEmbedded } from "../../../store/postgres/embedded/embedded.ts";
import { openSnapshot, type Snapshot } from "../../../store/postgres/rows.ts";
import { ArchiveWriter } from "./archive.ts";
import { type BackupManifest, ENTRY, FORMAT, MANIFEST } from "./manifest.ts";

/** The backup failed. `message` gives the reason. */
export class BackupFailed extends Schema.TaggedError<BackupFailed>()("BackupFailed", {
  message: Schema.String,
}) {}

export interface BackupRequest {
  readonly dataDir: string;
  readonly file: string;
  /** PLATFORM_MASTER_KEY. Null if the installation stores its own key. */
  readonly masterKey: string | null;
}

export interface BackupReport {
  readonly file: string;
  readonly bytes: number;
  readonly rows: number;
  readonly repositories: number;
  readonly includesKey: boolean;
}

const backupFailed = (message: string) => new BackupFailed({ message });

const writing = <A>(run: () => Promise<A>): Effect.Effect<A, BackupFailed> =>
  Effect.tryPromise({
    try: run,
    catch: (cause) => backupFailed(`The backup could not be written: ${thrownText(cause)}`),
  });

const readKept = (dataDir: string, name: string): Effect.Effect<string | null> =>
  Effect.promise(() =>
    readFile(path.join(dataDir, name), "utf8").then(
      (text) => text.trim(),
      () => null,
    ),
  );

/** The address of the installation's database: the running service's, otherwise one that is started for this backup. */
const database = Effect.fnUntraced(function* (dataDir: string) {
  if (!(yield* Effect.promise(() => hasEmbedded(dataDir))))
    return yield* backupFailed(
      `${dataDir} has no installation with an embedded database. Set PLATFORM_DATA_DIR to the data directory of the service.`,
    );
  const claim = yield* Effect.result(claimDataDirectory(dataDir));
  if (claim._tag === "Success") return (yield* startEmbedded(claim.success)).url;
  if (claim.failure._tag !== "DataDirectoryOwned") return yield* claim.failure;
  const directory = yield* Effect.promise(() => realpath(dataDir));
  return (
    (yield* runningEmbedded(directory)) ??
    (yield* backupFailed(`The service of ${dataDir} is starting or stopping. Try again.`))
  );
});

interface Installation {
  readonly installationId: string;
  readonly nodeId: string;
  /** Null if the operator provides it at each start. */
  readonly masterKey: string | null;
}

/** Ids and key in their file form. The key must open the database's secrets, or the backup would be useless. */
const readInstallation = Effect.fnUntraced(function* (
  { dataDir, masterKey: given }: BackupRequest,
  { keyCheck }: Snapshot,
) {
  const [installationId, nodeId] = [
    yield* readKept(dataDir, "installation-id"),
    yield* readKept(dataDir, "node-id"),
  ];
  if (installationId === null || nodeId === null || keyCheck === null)
    return yield* backupFailed(
      `The installation in ${dataDir} has never started completely, so there is nothing to back up.`,
    );
  // After a killed rotation, the right key may be the next one (store/installation.ts M1).
  const texts =
    given === null
      ? [yield* readKept(dataDir, "master-key"), yield* readKept(dataDir, "master-key.next")]
      : [given];
  const right = texts.find((text) => {
    const bytes = parseMasterKey(text ?? "");
    return bytes !== null && keyProvedBy(bytes, keyCheck) !== null;
  });
  if (right === undefined) {
    return yield* backupFailed(
      "The master key is not the key of the database's secrets. If the service uses " +
        "PLATFORM_MASTER_KEY, set it for the backup too.",
    );
  }
  return { installationId, nodeId, masterKey: given === null ? right : null } satisfies Installation;
});

const addRows = async (archive: ArchiveWriter, snapshot: Snapshot): Promise<number> => {
  let count = 0;
  // oxlint-disable no-await-in-loop -- one connection, one file
  for (const table of snapshot.tables) {
    let portion = 0;
    for await (const rows of snapshot.rows(table)) {
      await archive.addText(ENTRY.rows(table, portion), JSON.stringify(rows));
      portion += 1;
      count += rows.length;
    }
  }
  // oxlint-enable no-await-in-loop
  return count;
};

const addRepository = Effect.fnUntraced(function* (
  archive: ArchiveWriter,
  { projectId, repository, aside }: Readonly<Record<"projectId" | "repository" | "aside", string>>,
) {
  const head = yield* headRef(repository);
  const hasRefs = yield* bundleInto(repository, aside);
  yield* writing(async () => {
    await archive.addText(ENTRY.head(projectId), head);
    if (!hasRefs) return;
    await archive.addFile(ENTRY.bundle(projectId), aside);
    await rm(aside);
  });
});

/** A collection that ran meanwhile may have taken a pack away. The next attempt finds its successor. */
const ATTEMPTS = 3;

/** Each save is complete in itself. */
const addSaves = Effect.fnUntraced(function* (
  archive: ArchiveWriter,
  { dataDir, projectId, aside }: Readonly<Record<"dataDir" | "projectId" | "aside", string>>,
) {
  const repository = yield* Effect.result(existingRepository(savesIn(dataDir), { projectId }));
  if (repository._tag === "Failure") return;
  const hasSaves = yield* Effect.retry(bundleInto(repository.success, aside), { times: ATTEMPTS - 1 });
  if (!hasSaves) return;
  yield* writing(async () => {
    await archive.addFile(ENTRY.saves(projectId), aside);
    await rm(aside);
  });
});

/** Writes all parts, in the order of B1. */
const fill = Effect.fnUntraced(function* (archive: ArchiveWriter, request: BackupRequest, aside: string) {
  const { rows, installation, projects } = yield* Effect.scoped(
    Effect.gen(function* () {
      const snapshot = yield* openSnapshot(yield* database(request.dataDir));
      const own = yield* readInstallation(request, snapshot);
      const manifest: BackupManifest = {
        format: FORMAT,
        created_at: new Date(yield* Clock.currentTimeMillis).toISOString(),
        installation_id: own.installationId,
        node_id: own.nodeId,
        master_key: own.masterKey === null ? "given" : "included",
        migrations: snapshot.migrations,
      };
      const count = yield* writing(async () => {
        await archive.addText(MANIFEST, JSON.stringify(manifest));
        if (own.masterKey !== null) await archive.addText(ENTRY.masterKey, own.masterKey);
        await archive.addText(ENTRY.installationId, own.installationId);
        await archive.addText(ENTRY.nodeId, own.nodeId);
        return addRows(archive, snapshot);
      });
      return { rows: count, installation: own, projects: snapshot.projects };
    }),
  );
  const directory = path.join(request.dataDir, "repositories");
  let repositories = 0;
  for (const { id: projectId, kind } of projects) {
    const repository = yield* Effect.result(existingRepository(directory, { projectId }));
    if (repository._tag === "Success") {
      yield* addRepository(archive, { projectId, repository: repository.success, aside });
      repositories += 1;
    } else if (kind === "hosted") {
      return yield* backupFailed(`The repository of project ${projectId} is missing in ${directory}.`);
    }
  }
  for (const { id: projectId } of projects) yield* addSaves(archive, { ...request, projectId, aside });
  yield* writing(() => archive.finish());
  return { rows, repositories, includesKey: installation.masterKey !== null };
});

const expectNew = Effect.fnUntraced(function* (file: string) {
  if (!existsSync(file)) return;
  return yield* backupFailed(
    statSync(file).isDirectory()
      ? `${file} is a directory. Give the name of a new file, for example one in it.`
      : `${file} already exists. Choose another file.`,
  );
});

/** Creates the backup. The file must not exist yet. */
export const backup = Effect.fnUntraced(function* (request: BackupRequest) {
  const file = path.resolve(request.file);
  yield* expectNew(file);
  const aside = yield* Effect.acquireRelease(
    Effect.tryPromise({
      try: () => mkdtemp(`${file}.`),
      catch: (cause) =>
        backupFailed(
          `The backup cannot be written into the directory ${path.dirname(file)}: ${fileFault(cause)}. Choose a directory that exists and in which this user may write.`,
        ),
    }),
    (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true })),
  );
  const draft = path.join(aside, "draft");
  const archive = yield* Effect.acquireRelease(
    Effect.sync(() => new ArchiveWriter(draft)),
    (writer) => Effect.sync(() => writer.abandon()),
  );
  const contents = yield* fill(archive, request, path.join(aside, "bundle"));
  yield* writing(() => rename(draft, file));
  const { size: bytes } = yield* writing(() => stat(file));
  return { file, bytes, ...contents } satisfies BackupReport;
}, Effect.scoped);
