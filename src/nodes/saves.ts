/**
 * Saved work with several nodes. Each save is on one node, which performs all operations on it: that of the hosted repository,
 * otherwise the one that the session's row names, otherwise this one. A node that counts as dead may come back, so its saves stay
 * known. Only the work of a sandbox that still runs is saved here then; the session names what stays there.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Schema from "effect/Schema";
import { backoff } from "../ground/backoff.ts";
import { nodeOfSave, notRestored, restoredTogether, type Restored } from "../domain/save/saved.ts";
import { GitError } from "../git/port.ts";
import { Upstreams } from "../git/upstream/upstreams.ts";
import { LocalSaves } from "../saves/layer.ts";
import { Saves, type ProjectSizes, type RestoreRequest, type SavePlace } from "../saves/port.ts";
import { Keyring } from "../services/keyring.ts";
import { Sessions } from "../store/ports/sessions/sessions.ts";
import { nodeCaller } from "./call.ts";
import { NodeMap, type Place } from "./map.ts";

/** Comparisons, and the deletion of many saves. */
const TIMEOUT_MS = 10 * 60_000;
/** A node that takes longer for sizes counts as away. */
const SIZES_MS = 30_000;
/** A node that does not answer within this time counts as away: one that just ended or stands still. */
const CHECK_MS = 5000;
/** A restoration has ten minutes (saves.md 6). */
const RESTORE_MS = 12 * 60_000;
/** The time of a save beyond its limit, until it has answered. */
const SAVE_EXTRA_MS = 60_000;

/**
 * A save that found no way to its node is tried again after 250 ms, doubling to 2 s: for about a minute in all, or until its
 * own time is over.
 */
const AGAIN = backoff("250 millis", "2 seconds");
const AGAIN_TIMES = 32;

/** Whether it may work a moment later. */
const isPassing = ({ code }: GitError): boolean => code === "away" || code === "unavailable";

type Service = Saves["Service"];
/** Operations that the node of the saves performs. */
type SavesOperation = keyof Service;

const decodeError = Schema.decodeUnknownEffect(GitError);

const away = (why: string) =>
  new GitError({
    code: "away",
    message: `The node that has the saved work cannot be reached. Try again. (${why})`,
  });

const noResponse = (place: Place): string =>
  place.is === "away" || place.is === "dead" ? `node ${place.nodeId} does not respond` : "no response";

const noDatabase = () => away("the database cannot be reached");

/** The sizes of several nodes as one. A session may have saves on more than one. */
const together = (all: readonly ProjectSizes[]): ProjectSizes => {
  const bytes = new Map<string, number>();
  for (const { sessionId, bytes: more } of all.flatMap(({ sessions }) => sessions))
    bytes.set(sessionId, (bytes.get(sessionId) ?? 0) + more);
  return {
    sessions: [...bytes]
      .map(([sessionId, sum]) => ({ sessionId, bytes: sum }))
      .toSorted((one, other) => other.bytes - one.bytes),
    away: all.flatMap(({ away: nodes }) => nodes),
  };
};

/** Finds the node of a session's saves, and has it perform an operation. */
const makeWay = Effect.gen(function* () {
  const map = yield* NodeMap;
  const sessions = yield* Sessions;
  const upstreams = yield* Upstreams;
  const { nodes: keys } = yield* Keyring;
  const call = nodeCaller({ map, keys });

  const isHosted = (projectId: string) =>
    Effect.map(upstreams.kind(projectId), (kind) => kind === "hosted" || kind === null);

  /** Where a session's saves are, or an earlier one of them. */
  const savePlace = Effect.fnUntraced(function* ({ projectId, sessionId }: SavePlace, earlierId?: string) {
    if (yield* isHosted(projectId)) return yield* Effect.mapError(map.repositoryPlace(projectId), noDatabase);
    const session = yield* Effect.mapError(sessions.get(sessionId), noDatabase);
    const node = nodeOfSave(session?.saved ?? null, earlierId);
    return node === null ? ({ is: "here" } satisfies Place) : map.place(node);
  });

  /** Where a new save is made: not on a node that is dead, but for a hosted repository's. */
  const placeToSave = Effect.fnUntraced(function* (place: SavePlace) {
    const there = yield* savePlace(place);
    const isMoved = there.is === "dead" && !(yield* isHosted(place.projectId));
    return isMoved ? ({ is: "here" } satisfies Place) : there;
  });

  /** Asks a node for an answer, so that a caller does not wait long for one that is away. @returns null for this node */
  const reach = Effect.fnUntraced(function* (place: Place) {
    if (place.is === "here") return null;
    if (place.is !== "there") return yield* away(noResponse(place));
    yield* call(place, { operation: "saves.check", given: [] }, CHECK_MS).pipe(
      // A node of the version before does not know the question, and is reachable.
      Effect.catchIf(
        ({ status }) => status === 404,
        () => Effect.void,
      ),
      Effect.mapError(({ message }) => away(message)),
    );
    return place;
  });

  /** Performs the operation there. */
  const perform = Effect.fnUntraced(function* <A>(
    place: Place,
    question: {
      readonly operation: SavesOperation;
      readonly given: readonly unknown[];
      readonly timeoutMs?: number;
    },
    here: Effect.Effect<A, GitError>,
  ) {
    const there = yield* reach(place);
    if (there === null) return yield* here;
    const { operation, given, timeoutMs = TIMEOUT_MS } = question;
    const answer = yield* Effect.mapError(
      call(there, { operation: `saves.${operation}`, given }, timeoutMs),
      ({ message }) => away(message),
    );
    if (!answer.ok) return yield* Effect.flatMap(Effect.orDie(decodeError(answer.error)), Effect.fail);
    return answer.value as A;
  });

  const at = <A>(
    place: SavePlace & { readonly save?: string | undefined },
    question: Parameters<typeof perform>[1],
    here: Effect.Effect<A, GitError>,
  ): Effect.Effect<A, GitError> =>
    Effect.flatMap(savePlace(place, place.save), (there) => perform(there, question, here));

  /** Where older saves of a session are besides the node of its last one, oldest saves first. */
  const olderPlaces = Effect.fnUntraced(function* (place: SavePlace, there: Place) {
    if (yield* isHosted(place.projectId)) return [];
    const session = yield* Effect.mapError(sessions.get(place.sessionId), noDatabase);
    const main = there.is === "here" ? map.self : there.nodeId;
    return (session?.saved?.earlier ?? []).flatMap(({ node, at: madeAt }) =>
      node === undefined || node === main ? [] : [{ node, madeAt, place: map.place(node) }],
    );
  });

  return { map, sessions, isHosted, savePlace, placeToSave, olderPlaces, reach, perform, at };
});

type Way = Effect.Success<typeof makeWay>;

/** Operations on all saves of a project or of a session, wherever they are. */
const makeMany = ({ map, sessions, isHosted, perform }: Way) => {
  const ofProject = <A>(
    projectId: string,
    operation: SavesOperation,
    here: Effect.Effect<A, GitError>,
  ): Effect.Effect<A, GitError> =>
    Effect.gen(function* () {
      const place: Place = (yield* isHosted(projectId))
        ? yield* Effect.mapError(map.repositoryPlace(projectId), noDatabase)
        : { is: "here" };
      return yield* perform(place, { operation, given: [projectId] }, here);
    });

  /** A repository at another server has saves on each node that ran one of its sessions. A dead one is named, too. */
  const sizes = Effect.fnUntraced(function* (projectId: string, here: Effect.Effect<ProjectSizes, GitError>) {
    const question = { operation: "sizes", given: [projectId], timeoutMs: SIZES_MS } as const;
    if (yield* isHosted(projectId)) return yield* ofProject(projectId, "sizes", here);
    const nodeIds = yield* Effect.mapError(sessions.nodesWithSaves(projectId), noDatabase);
    const others = [...new Set([...map.others(), ...nodeIds])].filter((node) => node !== map.self);
    const elsewhere = yield* Effect.forEach(
      others,
      (node) =>
        perform(map.place(node), question, here).pipe(
          Effect.orElseSucceed((): ProjectSizes => ({ sessions: [], away: [node] })),
        ),
      { concurrency: "unbounded" },
    );
    return together([yield* here, ...elsewhere]);
  });

  /** A session's work may have moved between nodes, and the former one still has a save. One that does not answer sweeps it later. */
  const removeElsewhere = Effect.fnUntraced(function* (place: SavePlace) {
    if (yield* isHosted(place.projectId)) return;
    yield* Effect.forEach(
      map.others(),
      (node) =>
        Effect.ignore(
          perform(map.place(node), { operation: "remove", given: [place], timeoutMs: SIZES_MS }, Effect.void),
        ),
      { concurrency: "unbounded", discard: true },
    );
  });

  return { ofProject, sizes, removeElsewhere };
};

const isUp = ({ is }: Place): boolean => is === "here" || is === "there";

/** Whether no place before it is on the same node, which gives all its saves at once. */
const isFirst = (
  { node }: { readonly node: string },
  at: number,
  all: readonly { readonly node: string }[],
): boolean => all.findIndex((one) => one.node === node) === at;

/**
 * Brings the saves of all nodes back that can be reached: older ones of other nodes first, those of the session's last save at the end. The
 * saves of a node that cannot be reached stay.
 */
const restorer = ({ savePlace, olderPlaces, perform }: Way, own: LocalSaves["Service"]): Service["restore"] =>
  Effect.fnUntraced(
    function* (request) {
      const there = yield* savePlace(request);
      const elsewhere = yield* olderPlaces(request, there);
      const older = elsewhere.filter((one, at) => isUp(one.place) && isFirst(one, at, elsewhere));
      const unreachedAt = elsewhere.filter(({ place }) => !isUp(place)).map(({ madeAt }) => madeAt);
      const give = (place: Place, part: RestoreRequest["part"]) => {
        const isLast = part?.isLast ?? true;
        const awayField = isLast && unreachedAt.length > 0 ? { away: unreachedAt } : {};
        const restoreRequest = { ...request, ...(part !== undefined && { part }), ...awayField };
        const question = { operation: "restore", given: [restoreRequest], timeoutMs: RESTORE_MS } as const;
        return perform(place, question, own.restore(restoreRequest));
      };
      if (older.length === 0) return yield* give(there, undefined);
      const parts: Restored[] = [];
      const givers: string[] = [];
      for (const { node, place } of older) {
        const giving = give(place, { number: parts.length + 1, isLast: false });
        const restoration = yield* Effect.catch(giving, ({ message }) =>
          Effect.succeed(notRestored(message)),
        );
        parts.push(restoration);
        if (restoration.error === null) givers.push(node);
      }
      const last = yield* give(there, { number: parts.length + 1, isLast: true });
      return { ...[...parts, last].reduce(restoredTogether), nodes: givers };
    },
    Effect.catch(({ message }) => Effect.succeed(notRestored(message))),
  );

const make = Effect.gen(function* () {
  const own = yield* LocalSaves;
  const way = yield* makeWay;
  const { savePlace, placeToSave, reach, perform, at } = way;
  const { ofProject, sizes, removeElsewhere } = makeMany(way);
  return Saves.of({
    save: Effect.fnUntraced(function* (request) {
      const since = yield* Clock.currentTimeMillis;
      const isInTime = (error: GitError) =>
        Effect.map(Clock.currentTimeMillis, (now) => isPassing(error) && now - since < request.limitMs);
      const timeoutMs = request.limitMs + SAVE_EXTRA_MS;
      const question = { operation: "save", given: [request], timeoutMs } as const;
      const saving = Effect.flatMap(placeToSave(request), (there) =>
        perform(there, question, own.save(request)),
      );
      return yield* saving.pipe(
        // The database or the node is often back before the caller's time is over.
        Effect.retry({ while: isInTime, schedule: AGAIN, times: AGAIN_TIMES }),
        Effect.catch(({ message }) => own.unreached(request, message)),
      );
    }),
    restore: restorer(way, own),
    copy: (request) => at(request, { operation: "copy", given: [request] }, own.copy(request)),
    turns: (place) => at(place, { operation: "turns", given: [place] }, own.turns(place)),
    check: (place) => Effect.asVoid(Effect.flatMap(savePlace(place), reach)),
    compare: (place, which) =>
      at(
        { ...place, save: which?.save },
        { operation: "compare", given: [place, which] },
        own.compare(place, which),
      ),
    diff: (place, request) =>
      at(
        { ...place, save: request.save },
        { operation: "diff", given: [place, request] },
        own.diff(place, request),
      ),
    forgetEarlier: (place, id) =>
      at(
        { ...place, save: id },
        { operation: "forgetEarlier", given: [place, id] },
        own.forgetEarlier(place, id),
      ),
    remove: (place) =>
      at(place, { operation: "remove", given: [place] }, own.remove(place)).pipe(
        Effect.andThen(own.remove(place)),
        Effect.andThen(removeElsewhere(place)),
      ),
    removeProject: (projectId) => ofProject(projectId, "removeProject", own.removeProject(projectId)),
    sizes: (projectId) => sizes(projectId, own.sizes(projectId)),
  });
});

/** Dispatches over this node's own saves. */
export const nodeSaves = Layer.effect(Saves, make);
