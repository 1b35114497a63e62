/** The store of saves in git repositories (saves-repository.ts). */
import * as Context from "effect/Context";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Schema from "effect/Schema";
import { mkdir } from "node:fs/promises";
import { parseUuid } from "../domain/ids.ts";
import { filesystem, removeRepository } from "../git/repository/building.ts";
import { repositoriesIn } from "../git/repository/repository-path.ts";
import { sweepLeftovers } from "../git/repository/sweep.ts";
import { runGit } from "../git/run.ts";
import { Measures } from "../telemetry/port.ts";
import { collection } from "./collect.ts";
import { contentsIn } from "./contents.ts";
import { beginPart } from "./part.ts";
import { SaveCollection, type SavePlace } from "./port.ts";
import { diskRoom, makeRoom, type RoomLimits } from "./room.ts";
import {
  deleteRefs,
  failedStore,
  listRefs,
  LONG_MS,
  type SaveRef,
  SavesDirectory,
  sessionOfRef,
  type SessionRepository,
  storeError,
  syncRef,
  updateRefs,
} from "./saves-repository.ts";
import { Save, SaveStore, type SaveStoreError } from "./store.ts";
import { makeUsage } from "./usage.ts";

/** Turns whose saves a session keeps. */
const KEPT_TURNS = 50;
/** The longest description: the listing's limit, and what names the rest. */
const SAVE_BYTES = 256 * 1024 ** 2;

const decodeSave = Schema.decodeUnknownEffect(Schema.fromJsonString(Save));

const readSave = Effect.fnUntraced(function* (path: string, commit: string) {
  const { stdout, truncated } = yield* Effect.mapError(
    runGit({
      repository: path,
      args: ["cat-file", "blob", `${commit}:save.json`],
      maxOutputBytes: SAVE_BYTES,
      deadlineMs: LONG_MS,
    }),
    storeError,
  );
  if (truncated) return yield* failedStore("The description of the save is too long.");
  return yield* Effect.mapError(decodeSave(stdout.toString("utf8")), () =>
    failedStore("The description of the save is damaged."),
  );
});

/** When a turn was kept, in as many digits for each, and its id. Earlier versions kept turns by their numbers. */
const KEPT_TURN = /\/(\d{15})-([0-9a-f-]{36})$/;
const refTurn = ({ name }: SaveRef): string | undefined => KEPT_TURN.exec(name)?.[2];
const keptAt = ({ name }: SaveRef): number => Number(KEPT_TURN.exec(name)?.[1] ?? 0);
const oldestFirst = (one: SaveRef, other: SaveRef): number => keptAt(one) - keptAt(other);

const lastRef = Effect.fnUntraced(function* ({ path, prefix }: SessionRepository) {
  const [ref] = yield* listRefs(path, `${prefix}/last`);
  return ref ?? null;
});

const loadHistory = Effect.fnUntraced(function* ({ path, prefix, turns }: SessionRepository) {
  yield* turns.shared;
  const [ref] = yield* listRefs(path, `${prefix}/history`);
  return ref === undefined ? null : yield* readSave(path, ref.commit);
}, Effect.scoped);

const load = Effect.fnUntraced(function* (repository: SessionRepository) {
  const { path, prefix, turns } = repository;
  yield* turns.shared;
  const last = yield* lastRef(repository);
  const refs = yield* listRefs(path, `${prefix}/earlier/`);
  const earlier = yield* Effect.forEach(refs, ({ commit }) => readSave(path, commit));
  return {
    last: last === null ? null : yield* readSave(path, last.commit),
    earlier: earlier.toSorted((one, other) => one.at - other.at),
  };
}, Effect.scoped);

const setAside = Effect.fnUntraced(function* (repository: SessionRepository) {
  const { path, prefix } = repository;
  const last = yield* lastRef(repository);
  if (last === null) return;
  const { sandboxId } = yield* readSave(path, last.commit);
  if (parseUuid(sandboxId) === null) return yield* failedStore("A save belongs to a sandbox by its id.");
  const earlier = `${prefix}/earlier/${sandboxId}`;
  yield* updateRefs(path, [`update ${earlier} ${last.commit}`, `delete ${prefix}/last ${last.commit}`]);
  yield* syncRef(path, earlier);
});

const keepTurn = Effect.fnUntraced(function* (repository: SessionRepository, turn: string) {
  const { path, prefix } = repository;
  const last = yield* lastRef(repository);
  if (last === null || parseUuid(turn) === null) return;
  const now = yield* Clock.currentTimeMillis;
  const refs = yield* listRefs(path, `${prefix}/turns/`);
  const others = refs.filter((ref) => refTurn(ref) !== turn).toSorted(oldestFirst);
  const obsoleteRefs = [
    ...refs.filter((ref) => refTurn(ref) === turn),
    ...others.slice(0, Math.max(0, others.length - KEPT_TURNS + 1)),
  ];
  yield* updateRefs(path, [
    ...obsoleteRefs.map(({ name }) => `delete ${name}`),
    `create ${prefix}/turns/${String(now).padStart(15, "0")}-${turn} ${last.commit}`,
  ]);
});

const turnRefs = Effect.fnUntraced(function* ({ path, prefix, turns }: SessionRepository) {
  yield* turns.shared;
  const refs = yield* listRefs(path, `${prefix}/turns/`);
  return refs
    .flatMap((ref) => {
      const id = refTurn(ref);
      return id === undefined ? [] : [Object.assign(ref, { id })];
    })
    .toSorted(oldestFirst);
});

const keptTurns = (repository: SessionRepository) =>
  Effect.map(Effect.scoped(turnRefs(repository)), (refs) => refs.map(({ id, at }) => ({ id, at })));

const ofTurn = Effect.fnUntraced(function* (repository: SessionRepository, turn: string) {
  const ref = (yield* turnRefs(repository)).find(({ id }) => id === turn);
  return ref === undefined ? null : yield* readSave(repository.path, ref.commit);
}, Effect.scoped);

const forgetEarlier = Effect.fnUntraced(function* (
  { path, prefix }: SessionRepository,
  sandboxIds: readonly string[],
) {
  const names = new Set(sandboxIds.map((id) => `${prefix}/earlier/${id}`));
  const refs = (yield* listRefs(path, `${prefix}/earlier/`)).filter(({ name }) => names.has(name));
  yield* deleteRefs(path, refs);
  return refs.map(({ name }) => name.slice(`${prefix}/earlier/`.length));
});

export interface GitStoreOptions extends Omit<RoomLimits, "disk">, Partial<Pick<RoomLimits, "disk">> {
  /** The directory `saves`. */
  readonly directory: string;
  readonly manyPacks?: number;
}

const makeStore = (options: GitStoreOptions, directory: SavesDirectory): SaveStore["Service"] => {
  const sizes = makeUsage();
  const room = makeRoom({ disk: diskRoom(options.directory), ...options }, sizes);
  const at = <A, E, R>(place: SavePlace, act: (repository: SessionRepository) => Effect.Effect<A, E, R>) =>
    Effect.flatMap(directory.session(place), act);
  const part = (place: SavePlace, name: string) =>
    at(place, ({ path, prefix, turns }) =>
      turns.shared.pipe(
        Effect.andThen(directory.create(path)),
        Effect.andThen(beginPart({ path, prefix, ref: `${prefix}/${name}` })),
      ),
    );
  return {
    load: (place) => at(place, load),
    part: (place) => part(place, "last"),
    history: (place) => at(place, loadHistory),
    historyPart: (place) => part(place, "history"),
    room: (place, bytes) => at(place, (repository) => room(repository, bytes)),
    contents: contentsIn(directory),
    replaceEarlier: (place, save) =>
      Effect.scoped(
        Effect.flatMap(part(place, `earlier/${save.sandboxId}`), (writer) => writer.finish(save)),
      ),
    copy: ({ projectId, sessionId: from }, { sessionId, save }) =>
      Effect.gen(function* () {
        const { prefix } = yield* directory.session({ projectId, sessionId: from });
        const { path, turns, prefix: to } = yield* directory.session({ projectId, sessionId });
        yield* turns.shared;
        yield* (yield* beginPart({ path, prefix, ref: `${to}/last` })).finish(save);
      }).pipe(Effect.scoped),
    setAside: (place) => at(place, setAside),
    keepTurn: (place, turn) => at(place, (repository) => keepTurn(repository, turn)),
    turns: (place) => at(place, keptTurns),
    ofTurn: (place, turn) => at(place, (repository) => ofTurn(repository, turn)),
    forgetEarlier: (place, sandboxIds) => at(place, (repository) => forgetEarlier(repository, sandboxIds)),
    remove: (place) =>
      at(place, ({ path, prefix }) =>
        Effect.flatMap(listRefs(path, `${prefix}/`), (refs) => deleteRefs(path, refs)),
      ),
    removeProject: (projectId) =>
      removeRepository(options.directory, { projectId }).pipe(
        Effect.mapError(storeError),
        Effect.andThen(Effect.sync(() => directory.forget(projectId))),
      ),
    places: Effect.gen(function* () {
      const places = new Map<string, readonly string[]>();
      for (const projectId of yield* repositoriesIn(options.directory)) {
        const { path } = yield* directory.project(projectId);
        const refs = yield* listRefs(path, "refs/saves/");
        places.set(projectId, [...new Set(refs.map(sessionOfRef))]);
      }
      return places;
    }),
    sizes: (projectId) => Effect.flatMap(directory.project(projectId), ({ path }) => sizes(path)),
  };
};

/** The store over a directory, which it creates, and what collects there. */
export const gitSaveStore = (options: GitStoreOptions): Layer.Layer<SaveStore, SaveStoreError> =>
  Layer.effectContext(
    Effect.gen(function* () {
      yield* Effect.mapError(
        filesystem("Creating the directory of saves", () =>
          mkdir(options.directory, { recursive: true, mode: 0o700 }),
        ),
        storeError,
      );
      yield* sweepLeftovers(options.directory);
      const directory = new SavesDirectory(options);
      return Context.make(SaveStore, makeStore(options, directory)).pipe(
        Context.add(SaveCollection, collection(directory, yield* Measures)),
      );
    }),
  );
