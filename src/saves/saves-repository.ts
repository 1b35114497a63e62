/**
 * The repositories of saved work: `<data directory>/saves/<project id>.git`, bare, without alternates, so that a backup and
 * a collection need no other repository. Objects are stored unchecked. Clients never read from here.
 *
 * A session's saves are commits without parents: `refs/saves/<session>/last`, `…/earlier/<sandbox>` and `…/turns/<when>-<turn>`. `…/history` is the
 * runtime's own record of the conversation. Their
 * tree has `save.json` and `objects/<2>/<38>`, the contents by their ids. So no path of a sandbox is ever in a tree.
 */
import * as Effect from "effect/Effect";
import type * as Option from "effect/Option";
import * as Semaphore from "effect/Semaphore";
import type * as Scope from "effect/Scope";
import { access, open } from "node:fs/promises";
import { dirname, join } from "node:path";
import { parseUuid } from "../domain/ids.ts";
import { builtInPlace, initBare } from "../git/repository/building.ts";
import { repositoryPath } from "../git/repository/repository-path.ts";
import { GitError } from "../git/port.ts";
import { runGit } from "../git/run.ts";
import type { SavePlace } from "./port.ts";
import { SaveStoreError } from "./store.ts";

/** Settings of every git here. Contents of sandboxes have no names, so that a search for deltas finds little. */
export const SAVES_CONFIG = {
  "fastimport.unpackLimit": "0",
  "pack.window": "0",
  "pack.threads": "1",
  "repack.writeBitmaps": "false",
} as const;

/** How long a command over all objects may take, ms. */
export const LONG_MS = 30 * 60_000;

export const storeError = ({ code, message }: Pick<GitError, "code" | "message">): SaveStoreError =>
  new SaveStoreError({ code: code === "disk_full" ? "full" : "failed", message });

export const gitError = ({ code, message }: SaveStoreError): GitError =>
  new GitError({ code: code === "full" ? "disk_full" : "git_failed", message });

/** A failure that is the caller's defect, or damage on the disk. */
export const failedStore = (message: string): SaveStoreError =>
  new SaveStoreError({ code: "failed", message });

/** Many parts and readings share a repository. A collection has it alone: it removes what no ref names yet. */
export class Turns {
  static readonly #SHARED = 1000;
  readonly #places = Semaphore.makeUnsafe(Turns.#SHARED);

  /** A holder may take another. */
  readonly shared: Effect.Effect<void, never, Scope.Scope> = this.#places.takeScoped(1);

  /** Does nothing if a part or a reading is under way. Those that come later wait for its end. */
  alone<A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<Option.Option<A>, E, R> {
    return this.#places.withPermitsIfAvailable(Turns.#SHARED)(work);
  }
}

/** A project's repository, which may not exist yet. */
interface SavesRepository {
  readonly path: string;
  readonly turns: Turns;
}

export interface SessionRepository extends SavesRepository {
  /** What the session's refs begin with, without a slash. */
  readonly prefix: string;
}

/** The repositories of one node. Their turns are in memory: one service owns the directory. */
export class SavesDirectory {
  readonly directory: string;
  /** More packs than these are merged: each git process opens the index of every pack. */
  readonly manyPacks: number;
  readonly #turns = new Map<string, Turns>();

  constructor({ directory, manyPacks = 50 }: { readonly directory: string; readonly manyPacks?: number }) {
    this.directory = directory;
    this.manyPacks = manyPacks;
  }

  project(projectId: string): Effect.Effect<SavesRepository, SaveStoreError> {
    const path = repositoryPath(this.directory, projectId);
    if (path === null) return Effect.fail(failedStore("A project's saves are found by its id."));
    const turns = this.#turns.get(projectId) ?? new Turns();
    this.#turns.set(projectId, turns);
    return Effect.succeed({ path, turns });
  }

  session(place: SavePlace): Effect.Effect<SessionRepository, SaveStoreError> {
    return Effect.flatMap(sessionPrefix(place), (prefix) =>
      Effect.map(this.project(place.projectId), (repository) => ({ ...repository, prefix })),
    );
  }

  /** Makes the repository if it does not exist. */
  create(path: string): Effect.Effect<void, SaveStoreError> {
    return Effect.flatMap(exists(path), (isThere) =>
      isThere ? Effect.void : Effect.mapError(builtInPlace(this.directory, path, initBare), storeError),
    );
  }

  forget(projectId: string): void {
    this.#turns.delete(projectId);
  }
}

export const exists = (path: string): Effect.Effect<boolean> =>
  Effect.promise(() =>
    access(join(path, "HEAD")).then(
      () => true,
      () => false,
    ),
  );

/** Fails for text that is no id, which could name any ref. */
const sessionPrefix = ({ sessionId }: Pick<SavePlace, "sessionId">): Effect.Effect<string, SaveStoreError> =>
  parseUuid(sessionId) === null
    ? Effect.fail(failedStore("A session's saves are found by its id."))
    : Effect.succeed(`refs/saves/${sessionId}`);

/** A ref of a session's saves. */
export interface SaveRef {
  readonly name: string;
  readonly commit: string;
  /** Ms since the epoch, of the save's last part. */
  readonly at: number;
}

/** The id of the session that has the ref. */
export const sessionOfRef = ({ name }: SaveRef): string => name.split("/")[2] ?? "";

/** The refs below a prefix that ends at a slash, or one ref. None if there is no repository. */
export const listRefs = Effect.fnUntraced(function* (path: string, prefix: string) {
  if (!(yield* exists(path))) return [];
  const format = "%(refname) %(objectname) %(contents:subject)";
  const { stdout } = yield* Effect.mapError(
    runGit({ repository: path, args: ["for-each-ref", `--format=${format}`, prefix], config: SAVES_CONFIG }),
    storeError,
  );
  return stdout
    .toString("utf8")
    .split("\n")
    .flatMap((line): SaveRef[] => {
      const [name, commit, at] = line.split(" ");
      return name === undefined || commit === undefined ? [] : [{ name, commit, at: Number(at) }];
    });
});

/** Changes refs, all or none. Each line is one of `update-ref --stdin`. */
export const updateRefs = Effect.fnUntraced(function* (path: string, lines: readonly string[]) {
  if (lines.length === 0) return;
  yield* Effect.mapError(
    runGit({
      repository: path,
      args: ["update-ref", "--stdin"],
      stdin: lines.map((line) => `${line}\n`).join(""),
      config: SAVES_CONFIG,
    }),
    storeError,
  );
});

export const deleteRefs = (path: string, refs: readonly SaveRef[]) =>
  updateRefs(
    path,
    refs.map(({ name }) => `delete ${name}`),
  );

/** Git does not wait until the name of a ref's file is on the disk. */
export const syncRef = (path: string, ref: string): Effect.Effect<void, SaveStoreError> =>
  Effect.tryPromise({
    try: async () => {
      const directory = await open(dirname(join(path, ref)));
      await directory.sync().finally(() => directory.close());
    },
    catch: (cause) => failedStore(`The save's ref could not be written (${String(cause)}).`),
  });

/** Where a save's tree has an object. */
export const objectPath = (object: string): string => `objects/${object.slice(0, 2)}/${object.slice(2)}`;

const OBJECT_PATH = /^objects\/([0-9a-f]{2})\/([0-9a-f]{38})$/;

/** The objects that a save's tree has. */
export const objectsIn = (path: string, commit: string): Effect.Effect<ReadonlySet<string>, SaveStoreError> =>
  runGit({
    repository: path,
    args: ["ls-tree", "-r", "-z", "--name-only", commit],
    maxOutputBytes: 1024 ** 3,
    deadlineMs: LONG_MS,
  }).pipe(
    Effect.mapError(storeError),
    Effect.map(({ stdout }) => {
      const names = stdout.toString("latin1").split("\0");
      return new Set(
        names.filter((name) => OBJECT_PATH.test(name)).map((name) => name.replace(OBJECT_PATH, "$1$2")),
      );
    }),
  );

/** Those of the objects that a save of the session has. */
export const storedObjects = Effect.fnUntraced(function* (
  path: string,
  prefix: string,
  objects: readonly string[],
) {
  const storedIds = new Set<string>();
  let missing = objects;
  if (missing.length === 0) return storedIds;
  const refs = yield* listRefs(path, `${prefix}/`);
  // The last save most likely has them.
  for (const { commit } of refs.toSorted((one) => (one.name === `${prefix}/last` ? -1 : 0))) {
    const there = yield* objectsIn(path, commit);
    for (const object of missing) if (there.has(object)) storedIds.add(object);
    missing = missing.filter((object) => !there.has(object));
    if (missing.length === 0) break;
  }
  return storedIds;
});
