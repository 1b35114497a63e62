/**
 * A session's saved work as a commit that people fetch, `refs/wip/<session id>`, and that `?of=saved` compares.
 *
 *  W1 Each view is a repository in a directory of its own, with the project's repository as its alternate. No part of a save comes
 *     into the project's repository. A view is removed an hour after its last use, and made again from the save.
 *  W2 The same save gives the same commit: its author is fixed, and its date is the save's.
 *  W3 A view has checked parts alone. Paths, files and commits that fail git's checks of safety are left out, and named in the
 *     commit's message.
 */
import * as Effect from "effect/Effect";
import * as Semaphore from "effect/Semaphore";
import { createHash, randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isCommitId } from "../../domain/repository/git-ref.ts";
import { filesystem, initBare } from "../../git/repository/building.ts";
import type { GitBackend, GitError } from "../../git/port.ts";
import type { SavePlace } from "../port.ts";
import { gitError } from "../saves-repository.ts";
import type { Save, SaveStore } from "../store.ts";
import { isEmptySave } from "../words.ts";
import { buildView } from "./view-building.ts";

const KEPT_MS = 3_600_000;
/** How many views are built at the same time. */
const BUILT_AT_ONCE = 2;

interface View {
  readonly path: string;
  readonly commit: string;
}

export interface ViewOptions {
  /** The directory of the views. */
  readonly directory: string;
  /** The project's repository on this node: a hosted one, or a mirror. */
  readonly repository: (projectId: string) => Effect.Effect<string, GitError>;
  readonly store: SaveStore["Service"];
  readonly git: GitBackend["Service"];
}

/** The id by which the smart protocol finds a view's directory. */
export const viewId = (commit: string): string =>
  [
    commit.slice(0, 8),
    commit.slice(8, 12),
    commit.slice(12, 16),
    commit.slice(16, 20),
    commit.slice(20, 32),
  ].join("-");

/** Whose view it is: the project and the commit, then the session. */
const OWNER_FILE = "project";

const viewOwner = async (path: string): Promise<readonly string[]> =>
  (await readFile(join(path, OWNER_FILE), "utf8").catch(() => "")).split(" ");

/** Removes some of the views. */
const removeViews = (directory: string, isOver: (path: string) => Promise<boolean>) =>
  Effect.promise(async () => {
    const names = await readdir(directory).catch((): string[] => []);
    const paths = names.filter((name) => name !== ".hooks").map((name) => join(directory, name));
    const over = await Promise.all(paths.map(async (path) => ((await isOver(path)) ? [path] : [])));
    await Promise.all(over.flat().map((path) => rm(path, { recursive: true, force: true })));
  });

/** Whether a view was unused for an hour. */
const isUnused = async (path: string): Promise<boolean> => {
  const file = await stat(path).catch(() => null);
  // oxlint-disable-next-line no-restricted-properties -- compared with the file system's clock, which no test drives
  return file !== null && Date.now() - file.mtimeMs > KEPT_MS;
};

/** A view in the directory of views that still exists. Its hour begins again. */
const findIn = Effect.fnUntraced(function* (directory: string, projectId: string, commit: string) {
  if (!isCommitId(commit)) return null;
  const path = join(directory, `${viewId(commit)}.git`);
  const isOurs = yield* Effect.promise(async () => {
    const [project, head] = await viewOwner(path);
    if (project !== projectId || head !== commit) return false;
    const now = new Date();
    await utimes(path, now, now);
    return true;
  });
  return isOurs ? ({ path, commit } satisfies View) : null;
});

export const makeViews = (options: ViewOptions) => {
  const { directory, store } = options;
  const turns = Semaphore.makeUnsafe(BUILT_AT_ONCE);
  /** The views of saves that did not change since. */
  const latestViews = new Map<string, string>();
  const find = (projectId: string, commit: string) => findIn(directory, projectId, commit);

  const build = Effect.fnUntraced(function* (place: SavePlace, save: Save) {
    // A mirror fetches the commit if it lacks it.
    if (save.base !== null)
      yield* Effect.ignore(
        options.git.readFile(place, { commit: save.base, path: "README.md", maxBytes: 0 }),
      );
    const repository = yield* options.repository(place.projectId);
    const aside = join(directory, `.building-${randomUUID()}`);
    yield* Effect.addFinalizer(() => Effect.promise(() => rm(aside, { recursive: true, force: true })));
    yield* filesystem("Creating the directory of views", () =>
      mkdir(directory, { recursive: true, mode: 0o700 }),
    );
    yield* initBare(aside);
    yield* filesystem("Preparing the view", () => mkdir(join(aside, "objects", "info"), { recursive: true }));
    yield* filesystem("Preparing the view", () =>
      writeFile(join(aside, "objects", "info", "alternates"), `${join(repository, "objects")}\n`),
    );
    const commit = yield* buildView({ path: aside, place, save, store });
    yield* filesystem("Preparing the view", async () => {
      await writeFile(join(aside, OWNER_FILE), [place.projectId, commit, place.sessionId].join(" "));
      const path = join(directory, `${viewId(commit)}.git`);
      // An existing one has the same, and somebody may be reading it.
      await rename(aside, path).catch(() => undefined);
    });
    const view = yield* find(place.projectId, commit);
    return view ?? (yield* Effect.die(new Error("a view has vanished")));
  }, Effect.scoped);

  /** The view of the last save, or of the newest earlier one, or of that of one earlier sandbox. */
  const open = Effect.fnUntraced(function* (place: SavePlace, earlierId?: string) {
    const { last, earlier } = yield* Effect.mapError(store.load(place), gitError);
    const save =
      earlierId === undefined
        ? !isEmptySave(last)
          ? last
          : (earlier.at(-1) ?? null)
        : // The last save here is an earlier one if the session went on at another node.
          ([...earlier, last].find((one) => one?.sandboxId === earlierId) ?? null);
    if (save === null || isEmptySave(save)) return null;
    const key = createHash("sha256")
      .update(`${place.sessionId} ${JSON.stringify(save)}`)
      .digest("hex");
    const commit = latestViews.get(key);
    const view = commit === undefined ? null : yield* find(place.projectId, commit);
    if (view !== null) return view;
    const fresh = yield* turns.withPermit(build(place, save));
    latestViews.set(key, fresh.commit);
    return fresh;
  });

  const remove = (isOver: (path: string) => Promise<boolean>) =>
    Effect.andThen(
      removeViews(directory, isOver),
      Effect.sync(() => latestViews.clear()),
    );
  return {
    open,
    find,
    /** Removes views that were unused for an hour. */
    expire: remove(isUnused),
    /** Removes the views of a session or of a project that is deleted. */
    forget: (id: string) =>
      remove(async (path) => {
        const [project, , session] = await viewOwner(path);
        return project === id || session === id;
      }),
  };
};

export type Views = ReturnType<typeof makeViews>;
