/**
 * `platform restore <file>`: creates an installation from a backup, in an empty data directory.
 *
 *  E1 The whole file is read and checked before anything is written, and checked again during the restore.
 *  E2 The installation is built beside its place and moved there when it is complete and on the disk.
 *  E3 It is a new installation with its own id, unless the operator states that the old one is gone for good: two
 *     services with one id on one machine would take each other's sandboxes. The node keeps its id, because rows name
 *     it.
 *  E4 It begins with a pause (ground/pause.ts), unless the old one is gone.
 *  E5 If PLATFORM_MASTER_KEY is set, it is the key of the backup's secrets. The start would refuse another one.
 */
import { createWriteStream, existsSync } from "node:fs";
import { mkdir, mkdtemp, open, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Result from "effect/Result";
import * as Schema from "effect/Schema";
import { thrownText } from "../../../ground/thrown.ts";
import { unbundleInto } from "../../../git/repository/bundle.ts";
import { repositoryPath } from "../../../git/repository/repository-path.ts";
import { savesIn } from "../../../saves/directories.ts";
import { DataDirectoryUnusable, livingOwner } from "../../../store/data-directory.ts";
import * as Client from "../../../store/postgres/connection/client.ts";
import { examineMasterKey } from "../../master-keys.ts";
import { Pauses as PausesPort } from "../../../store/ports/pauses.ts";
import * as Pauses from "../../../store/postgres/pauses.ts";
import * as ProjectChanges from "../../../store/postgres/projects/project-changes.ts";
import * as Secrets from "../../../store/postgres/projects/secrets.ts";
import { startEmbedded } from "../../../store/postgres/embedded/embedded.ts";
import {
  loadMigrations,
  type Migration,
  runMigrations,
  sinceBaseline,
  tooOld,
} from "../../../store/postgres/migrate.ts";
import { fillTables, type Filling } from "../../../store/postgres/rows.ts";
import { TAKEN_OVER } from "../../../store/run-directory-claim.ts";
import { ArchiveRefused, readEntries, type Entry, entryText, NO_BACKUP } from "./archive.ts";
import { BackupManifest, MANIFEST, partNamed } from "./manifest.ts";
import { unreadable } from "../named-file.ts";

/** Nothing was restored. `message` gives the reason. */
export class RestoreFailed extends Schema.TaggedError<RestoreFailed>()("RestoreFailed", {
  message: Schema.String,
}) {}

export interface RestoreRequest {
  readonly dataDir: string;
  readonly file: string;
  /** PLATFORM_MASTER_KEY (E5). Null if it is not set. */
  readonly masterKey: string | null;
  /** Keeps the installation's id (E3). */
  readonly takeOver: boolean;
}

export interface RestoreReport {
  readonly dataDir: string;
  readonly createdAt: string;
  readonly rows: number;
  readonly repositories: number;
  readonly includesKey: boolean;
}

const restoreFailed = (message: string) => new RestoreFailed({ message });
const decodeManifest = Schema.decodeUnknownResult(Schema.fromJsonString(BackupManifest));
const decodeRows = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Array(Schema.String)));
const FormatOnly = Schema.fromJsonString(Schema.Struct({ format: Schema.Finite }));
const decodeFormat = Schema.decodeUnknownResult(FormatOnly);

/** Turns any error of a step into the restore's one error. */
const step = <A>(file: string, run: () => Promise<A>): Effect.Effect<A, RestoreFailed> =>
  Effect.tryPromise({
    try: run,
    catch: (cause) =>
      restoreFailed(
        cause instanceof ArchiveRefused
          ? `${file} cannot be restored: ${cause.message}.`
          : `The restore failed: ${thrownText(cause)}`,
      ),
  });

const refuse = (message: string): never => {
  throw new ArchiveRefused({ message });
};

/**
 * The first entry, with its migrations as this program counts them. It refuses a file that is not a backup, or whose
 * version is newer or too old.
 */
const readManifest = async (entry: Entry, ownMigrations: readonly Migration[]): Promise<BackupManifest> => {
  if (entry.name !== MANIFEST) return refuse(NO_BACKUP);
  const text = await entryText(entry);
  const manifest = decodeManifest(text);
  if (Result.isFailure(manifest)) {
    const format = decodeFormat(text);
    return refuse(
      Result.isSuccess(format)
        ? `its format ${format.success.format} is not supported by this version of the service`
        : NO_BACKUP,
    );
  }
  const manifestMigrations = manifest.success.migrations;
  const migrations =
    sinceBaseline(ownMigrations, manifestMigrations) ??
    refuse(tooOld(manifestMigrations, "restore the file with it, start it once, and back up again"));
  for (const { name, checksum } of migrations) {
    if (!ownMigrations.some((own) => own.name === name && own.checksum === checksum))
      refuse(
        `its database has the unknown migration ${name}; restore it with the version that created it, or a newer one`,
      );
  }
  return { ...manifest.success, migrations };
};

/** Reads the file to its end and writes nothing (E1). */
const check = async (file: string, ownMigrations: readonly Migration[]): Promise<BackupManifest> => {
  let manifest: BackupManifest | null = null;
  for await (const entry of readEntries(file)) {
    if (manifest === null) manifest = await readManifest(entry, ownMigrations);
    else if (partNamed(entry.name) === null)
      refuse(`it has the unexpected entry ${JSON.stringify(entry.name)}`);
  }
  return manifest ?? refuse(NO_BACKUP);
};

interface Unpacked {
  readonly rows: number;
  /** Projects, with the ref of their HEAD and the file of their bundle. */
  readonly repositories: ReadonlyMap<string, { head: string; bundle: string | null }>;
  /** The bundles of saved work, by project. */
  readonly saves: ReadonlyMap<string, string>;
}

interface Place {
  readonly file: string;
  /** The directory in which the installation is built. */
  readonly draft: string;
  /** Contains the bundles until they are unpacked. */
  readonly bundles: string;
}

const keep = async (entry: Entry, bundle: string): Promise<string> => {
  await pipeline(Readable.from(entry.content), createWriteStream(bundle, { mode: 0o600 }));
  return bundle;
};

/** The second reading: rows go into the database, files into their places. */
const unpack = async ({ file, draft, bundles }: Place, filling: Filling): Promise<Unpacked> => {
  let rows = 0;
  const repositories = new Map<string, { head: string; bundle: string | null }>();
  const saves = new Map<string, string>();
  for await (const entry of readEntries(file)) {
    const part = partNamed(entry.name);
    if (part?.kind === "rows") {
      const portion = decodeRows(await entryText(entry));
      await filling.add(part.table, portion);
      rows += portion.length;
    } else if (part?.kind === "installation") {
      await writeFile(path.join(draft, part.file), `${await entryText(entry)}\n`, {
        mode: 0o600,
        flush: true,
      });
    } else if (part?.kind === "head") {
      repositories.set(part.projectId, { head: await entryText(entry), bundle: null });
    } else if (part?.kind === "bundle") {
      repositories.set(part.projectId, {
        head: repositories.get(part.projectId)?.head ?? "refs/heads/main",
        bundle: await keep(entry, path.join(bundles, part.projectId)),
      });
    } else if (part?.kind === "saves") {
      saves.set(part.projectId, await keep(entry, path.join(bundles, `${part.projectId}-saves`)));
    }
  }
  return { rows, repositories, saves };
};

/** E4 */
const hold = Effect.gen(function* () {
  yield* (yield* PausesPort).begin(yield* Clock.currentTimeMillis);
});
/** The backup may be of a copy that was paused itself. */
const letGo = Effect.flatMap(PausesPort, ({ end }) => end);

/** E5 */
const checkKey = ({ file, draft }: Place, masterKey: string) =>
  examineMasterKey(draft, { masterKey, databaseUrl: null }).pipe(
    Effect.mapError((error) => restoreFailed(`${file} cannot be restored: ${thrownText(error)}`)),
    Effect.provide(Layer.provide(Secrets.layer, ProjectChanges.layer)),
  );

/** Makes the repositories in a new directory. */
const unbundle = Effect.fnUntraced(function* (
  { file }: Place,
  directory: string,
  bundles: Unpacked["repositories"],
) {
  yield* step(file, () => mkdir(directory, { mode: 0o700 }));
  for (const [projectId, { head, bundle }] of bundles) {
    const repository = repositoryPath(directory, projectId);
    if (repository === null) return yield* restoreFailed(`${projectId} is not a project id.`);
    yield* unbundleInto(repository, { head, bundle });
    if (bundle !== null) yield* step(file, () => rm(bundle));
  }
});

/** Builds the installation in `draft`. When this completes, its database is stopped. */
const make = Effect.fnUntraced(function* (
  place: Place,
  migrations: readonly Migration[],
  { takeOver, masterKey }: RestoreRequest,
) {
  const { repositories, saves, rows } = yield* Effect.scoped(
    Effect.gen(function* () {
      const { url } = yield* startEmbedded(place.draft);
      yield* Effect.provide(runMigrations(migrations), Client.layer({ url, maxConnections: 1 }));
      let contents: Unpacked = { rows: 0, repositories: new Map(), saves: new Map() };
      yield* fillTables(url, async (filling) => {
        contents = await unpack(place, filling);
      });
      const client = Client.layer({ url, maxConnections: 1 });
      if (masterKey !== null) yield* Effect.provide(checkKey(place, masterKey), client);
      yield* Effect.provide(takeOver ? letGo : hold, Layer.provide(Pauses.layer, client));
      return contents;
    }),
  );
  yield* unbundle(place, path.join(place.draft, "repositories"), repositories);
  const savedBundles = [...saves].map(([id, bundle]) => [id, { head: "refs/heads/main", bundle }] as const);
  yield* unbundle(place, savesIn(place.draft), new Map(savedBundles));
  return { rows, repositories: repositories.size };
});

/** Refuses a directory with any content: an installation is never overwritten. */
const expectEmpty = Effect.fnUntraced(function* (dataDir: string) {
  if (!existsSync(dataDir)) return;
  if (!(yield* step(dataDir, () => stat(dataDir))).isDirectory())
    return yield* restoreFailed(
      `The data directory ${dataDir} (PLATFORM_DATA_DIR) is a file. Set PLATFORM_DATA_DIR to an empty or new directory.`,
    );
  const owner = yield* Effect.promise(() => livingOwner(dataDir));
  if (owner !== null)
    return yield* restoreFailed(
      `${dataDir} is in use by the service with process id ${owner}. Restore into another directory.`,
    );
  const names = yield* step(dataDir, () => readdir(dataDir));
  if (names.length > 0)
    return yield* restoreFailed(`${dataDir} is not empty. Restore into an empty or new directory.`);
});

/** Writes a directory's own entries to the disk. */
const sync = async (directory: string): Promise<void> => {
  await using handle = await open(directory, "r");
  await handle.sync();
};

/** Restores. An unfinished restore leaves nothing behind. */
export const restore = Effect.fnUntraced(function* (request: RestoreRequest) {
  const { dataDir, file, takeOver } = request;
  yield* expectEmpty(dataDir);
  const fault = yield* Effect.promise(() => unreadable(file));
  if (fault !== null)
    return yield* restoreFailed(
      `${file} cannot be restored: ${fault}. Give the path of a file of \`platform backup\`.`,
    );
  const migrations = yield* loadMigrations;
  const manifest = yield* step(file, () => check(file, migrations));
  const parent = path.dirname(dataDir);
  yield* Effect.tryPromise({
    try: () => mkdir(parent, { recursive: true }),
    catch: (cause) => restoreFailed(new DataDirectoryUnusable({ path: dataDir, cause }).message),
  });
  const aside = yield* Effect.acquireRelease(
    step(file, () => mkdtemp(`${dataDir}.restoring-`)),
    (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true })),
  );
  const place: Place = { file, draft: path.join(aside, "draft"), bundles: path.join(aside, "bundles") };
  yield* step(file, () =>
    Promise.all([place.draft, place.bundles].map((directory) => mkdir(directory, { mode: 0o700 }))),
  );
  const names = new Set(manifest.migrations.map(({ name }) => name));
  const then = migrations.filter(({ name }) => names.has(name));
  const { rows, repositories } = yield* make(place, then, request);
  yield* step(file, async () => {
    // Without the file, the first start creates a new id.
    if (takeOver) await writeFile(path.join(place.draft, TAKEN_OVER), "", { mode: 0o600, flush: true });
    else await rm(path.join(place.draft, "installation-id"), { force: true });
    await sync(place.draft);
    // Works only if the target is empty or missing.
    await rename(place.draft, dataDir);
    await sync(parent);
  });
  const report: RestoreReport = {
    dataDir,
    createdAt: manifest.created_at,
    rows,
    repositories,
    includesKey: manifest.master_key === "included",
  };
  return report;
}, Effect.scoped);
