/** Saved work on this node: its store, the views that people fetch, and what moves work between them and sandboxes. */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { projectRedactor } from "../services/projects/project-secrets.ts";
import { filesystem } from "../git/repository/building.ts";
import { compareCommits, diffCommits } from "../git/repository/compare.ts";
import { existingRepository, unknownRepository } from "../git/repository/repository-path.ts";
import { oldSaveRef, refTarget } from "../git/repository/refs.ts";
import { sweepLeftovers } from "../git/repository/sweep.ts";
import { nodeOfSave, type Saved } from "../domain/save/saved.ts";
import { GitBackend } from "../git/port.ts";
import { installHooks } from "../git/server/hooks.ts";
import { smartHttp, type SmartHttp } from "../git/server/smart-http.ts";
import { DaemonClient, DaemonUnreachable } from "../sandbox/daemon.ts";
import { Sandboxes } from "../store/ports/sessions/sandboxes.ts";
import { Sessions } from "../store/ports/sessions/sessions.ts";
import { savesIn, viewsIn } from "./directories.ts";
import { withSavedWork } from "./views/git-door.ts";
import { gitSaveStore } from "./git-store.ts";
import { makeLeftovers } from "./old/leftovers.ts";
import { makeOldPushes } from "./old/old-pushes.ts";
import { takeOldSave } from "./old/old-saves.ts";
import { SaveCollection, type SavePlace, type SaveRequest, type Saves, type WhichSave } from "./port.ts";
import { makeSaver } from "./saver.ts";
import type { SaverOptions } from "./saving.ts";
import { gitError } from "./saves-repository.ts";
import { SaveStore } from "./store.ts";
import { makeViews, type Views } from "./views/view.ts";

/** The saves of this node, below the code that dispatches between nodes (nodes/saves.ts). */
export class LocalSaves extends Context.Service<
  LocalSaves,
  Saves["Service"] & {
    /** Names what the sandbox has, while the node with its saves does not answer. Nothing is saved. @param error why */
    readonly unreached: (request: SaveRequest, error: string) => Effect.Effect<Saved>;
  }
>()("platform/saves/LocalSaves") {}

/** Puts what git says of saved work in front of the repositories. */
export class SavesDoor extends Context.Service<
  SavesDoor,
  { readonly before: (repositories: SmartHttp) => SmartHttp }
>()("platform/saves/SavesDoor") {}

export interface SavesOptions {
  readonly dataDir: string;
  readonly nodeId: string;
  /** The directories of this node's repositories: hosted ones, and mirrors. */
  readonly repositories: readonly string[];
  readonly projectBytes: number;
  readonly sessionBytes: number;
}

interface Parts {
  readonly options: SavesOptions;
  readonly store: SaveStore["Service"];
  readonly git: GitBackend["Service"];
  readonly sandboxes: Sandboxes["Service"];
  readonly views: Views;
  readonly sessions: Sessions["Service"];
}

const repositoryAt = (directories: readonly string[], projectId: string) =>
  Effect.gen(function* () {
    for (const directory of directories) {
      const path = yield* Effect.option(existingRepository(directory, { projectId }));
      if (path._tag === "Some") return path.value;
    }
    return yield* unknownRepository();
  });

const findSandbox =
  ({ sandboxes }: Parts) =>
  (sessionId: string) =>
    sandboxes.newest(sessionId).pipe(
      Effect.map((sandbox) => sandbox?.id ?? null),
      Effect.orElseSucceed(() => null),
    );

/** `takeOldSave` of the saver: what an earlier version left as `refs/wip` in the repository. */
const takeLeftSave = (parts: Parts) =>
  Effect.fnUntraced(function* (place: SavePlace) {
    const { store, git, options } = parts;
    const { projectId, sessionId } = place;
    const { last, earlier } = yield* store.load(place);
    if (last !== null || earlier.length > 0) return;
    // A mirror fetches, also what is left there.
    const base = yield* git.branchTip({ projectId }, sessionId);
    const path = yield* Effect.option(repositoryAt(options.repositories, projectId));
    if (path._tag === "None") return;
    const wip = yield* refTarget(path.value, oldSaveRef(sessionId));
    if (wip === null) return;
    // Which sandbox made it is not known. It was not the present one.
    yield* takeOldSave(store, { path: path.value, place, sandboxId: sessionId, wip, at: 0, base });
  });

/** Neither a server that refuses nor a repository that is gone keeps a session from its deletion. */
const removeLeftSave = ({ git }: Parts, { projectId, sessionId }: SavePlace) =>
  git.removeOldSave({ projectId }, sessionId).pipe(
    Effect.catchIf(
      ({ code }) => code !== "unavailable",
      ({ code, message }) =>
        code === "unknown_repository"
          ? Effect.void
          : Effect.logWarning("a save of an earlier version stays", { session: sessionId, reason: message }),
    ),
  );

const saverOptions = Effect.fnUntraced(function* (parts: Parts) {
  const { options, views } = parts;
  const daemon = yield* DaemonClient;
  const context = yield* Effect.context<Effect.Services<ReturnType<typeof projectRedactor>>>();
  const saverParts: SaverOptions = {
    nodeId: options.nodeId,
    directory: join(savesIn(options.dataDir), ".arriving"),
    redactor: (projectId) => Effect.provideContext(Effect.orDie(projectRedactor(projectId)), context),
    viewCommit: (place) =>
      views.open(place).pipe(
        Effect.map((view) => view?.commit ?? null),
        Effect.catch(({ message }) =>
          Effect.as(
            Effect.logWarning("saved work has no commit to fetch", { ...place, reason: message }),
            null,
          ),
        ),
      ),
    saveByPush: ({ limitMs }, { link, context: signed }) =>
      Effect.flatMap(daemon.saveByPush(link, signed, limitMs), ({ error }) =>
        error === null ? Effect.void : Effect.fail(new DaemonUnreachable({ message: error })),
      ),
    takeOldSave: takeLeftSave(parts),
  };
  yield* filesystem("Creating the directory of saves", () =>
    mkdir(saverParts.directory, { recursive: true, mode: 0o700 }),
  );
  return saverParts;
});

/** What `?of=saved` compares. */
const makeComparisons = ({ git, views }: Parts) => {
  const sides = Effect.fnUntraced(function* (place: SavePlace, { save }: WhichSave) {
    const view = yield* views.open(place, save);
    const base = view === null ? null : yield* git.branchTip(place, place.sessionId);
    return view === null || base === null ? null : { path: view.path, base, head: view.commit };
  });
  return {
    compare: (place: SavePlace, which: WhichSave = {}) =>
      Effect.flatMap(sides(place, which), (both) =>
        both === null ? Effect.succeed(null) : compareCommits(both),
      ),
    diff: (place: SavePlace, request: WhichSave & { readonly path?: string; readonly maxBytes: number }) =>
      Effect.flatMap(sides(place, request), (both) =>
        both === null ? Effect.succeed("") : diffCommits(both, request),
      ),
  };
};

/** The other node that has the session's saves. Null if this one has some, or none has. */
const findElsewhere =
  ({ sessions, options }: Parts) =>
  ({ projectId, sessionId }: SavePlace): Effect.Effect<string | null> =>
    sessions.get(sessionId).pipe(
      Effect.map((session) => {
        if (session?.projectId !== projectId) return null;
        const node = nodeOfSave(session.saved);
        const hasEarlier = session.saved?.earlier?.some((save) => save.node === options.nodeId) === true;
        return node === options.nodeId || hasEarlier ? null : node;
      }),
      Effect.orElseSucceed(() => null),
    );

const makeLocal = Effect.fnUntraced(function* (parts: Parts) {
  const { store, options } = parts;
  const isElsewhere = ({ sessionId }: SavePlace) =>
    parts.sessions.get(sessionId).pipe(
      Effect.map((session) => ![null, options.nodeId].includes(session?.saved?.node ?? null)),
      Effect.orElseSucceed(() => false),
    );
  return LocalSaves.of({
    ...(yield* makeSaver(yield* saverOptions(parts))),
    ...makeComparisons(parts),
    turns: (place) => Effect.mapError(store.turns(place), gitError),
    check: () => Effect.void,
    forgetEarlier: (place, id) =>
      Effect.gen(function* () {
        const { last } = yield* store.load(place);
        // The session went on at another node, where its last save is.
        if (last?.sandboxId === id && (yield* isElsewhere(place))) yield* store.setAside(place);
        return (yield* store.forgetEarlier(place, [id])).length > 0;
      }).pipe(Effect.mapError(gitError)),
    remove: (place) =>
      Effect.mapError(store.remove(place), gitError).pipe(
        Effect.andThen(parts.views.forget(place.sessionId)),
        Effect.andThen(removeLeftSave(parts, place)),
      ),
    removeProject: (projectId) =>
      Effect.andThen(
        Effect.mapError(store.removeProject(projectId), gitError),
        parts.views.forget(projectId),
      ),
    sizes: (projectId) =>
      Effect.mapBoth(store.sizes(projectId), {
        onFailure: gitError,
        onSuccess: (sessions) => ({ sessions, away: [] }),
      }),
  });
});

const make = Effect.fnUntraced(function* (options: SavesOptions) {
  const store = yield* SaveStore;
  const git = yield* GitBackend;
  const directory = viewsIn(options.dataDir);
  yield* filesystem("Creating the directory of views", () =>
    mkdir(directory, { recursive: true, mode: 0o700 }),
  );
  yield* sweepLeftovers(directory);
  yield* installHooks(join(directory, ".hooks"));
  const views = makeViews({
    directory,
    store,
    git,
    repository: (id) => repositoryAt(options.repositories, id),
  });
  const sessions = yield* Sessions;
  const parts: Parts = { options, store, git, views, sandboxes: yield* Sandboxes, sessions };
  const viewEndpoint = smartHttp({ directory, areViews: true });
  const oldPushes = makeOldPushes({
    directory,
    store,
    endpoint: viewEndpoint,
    repository: (id) => repositoryAt(options.repositories, id),
    findSandbox: findSandbox(parts),
  });
  const { round } = yield* SaveCollection;
  const leftovers = yield* makeLeftovers;
  return Context.make(LocalSaves, yield* makeLocal(parts)).pipe(
    Context.add(SavesDoor, {
      before: (repositories) =>
        withSavedWork(repositories, { views, viewEndpoint, oldPushes, elsewhere: findElsewhere(parts) }),
    }),
    Context.add(SaveCollection, { round: Effect.andThen(leftovers, Effect.andThen(round, views.expire)) }),
  );
});

/** This node's saves, over its provider, daemons and repositories. */
export const localSaves = (options: SavesOptions) =>
  Layer.effectContext(make(options)).pipe(
    Layer.provide(gitSaveStore({ directory: savesIn(options.dataDir), ...options })),
  );
