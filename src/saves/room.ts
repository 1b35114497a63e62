/** How much a session may still store: by its limit, by its project's, and by what the node's disk has. */
import * as Effect from "effect/Effect";
import * as Option from "effect/Option";
import { statfs } from "node:fs/promises";
import { collect } from "./collect.ts";
import { deleteRefs, exists, listRefs, type SessionRepository } from "./saves-repository.ts";
import { SaveStoreError } from "./store.ts";
import { filesBytes, type makeUsage } from "./usage.ts";

/** The share of its disk that a node leaves free. */
const FREE_SHARE = 0.1;

export interface DiskRoom {
  readonly free: number;
  readonly total: number;
}

export interface RoomLimits {
  readonly projectBytes: number;
  readonly sessionBytes: number;
  /** The room on the disk. Null if the system does not say. */
  readonly disk: Effect.Effect<DiskRoom | null>;
}

export const diskRoom = (directory: string): Effect.Effect<DiskRoom | null> =>
  Effect.promise(() =>
    statfs(directory).then(
      ({ bavail, blocks, bsize }) => ({ free: bavail * bsize, total: blocks * bsize }),
      () => null,
    ),
  );

/** `room` of the store. */
export const makeRoom = (limits: RoomLimits, sizes: ReturnType<typeof makeUsage>) => {
  /** What the session may still store by the limits. */
  const within = Effect.fnUntraced(function* ({ path, prefix }: SessionRepository) {
    const sessions = yield* sizes(path);
    const own = sessions.find(({ sessionId }) => prefix.endsWith(sessionId))?.bytes ?? 0;
    const usedBytes = sessions.reduce((sum, { bytes }) => sum + bytes, 0);
    return { session: limits.sessionBytes - own, project: limits.projectBytes - usedBytes, used: usedBytes };
  });

  /** The saves of turns go, oldest first, until a limit has room. */
  const deleteTurns = Effect.fnUntraced(function* (
    repository: SessionRepository,
    limit: "session" | "project",
    wantedBytes: number,
  ) {
    let left = yield* within(repository);
    if (left[limit] >= wantedBytes) return left;
    const below = limit === "session" ? `${repository.prefix}/turns/` : "refs/saves/";
    const turns = (yield* listRefs(repository.path, below)).filter(({ name }) => name.includes("/turns/"));
    for (const ref of turns.toSorted((one, other) => one.at - other.at)) {
      yield* deleteRefs(repository.path, [ref]);
      left = yield* within(repository);
      if (left[limit] >= wantedBytes) break;
    }
    return left;
  });

  /** Replaced objects may use as much again as the limit, but nothing when the disk needs the room. */
  const isCollected = Effect.fnUntraced(function* (
    { path, turns }: SessionRepository,
    usedBytes: number,
    isShort: boolean,
  ) {
    if (!(yield* exists(path))) return false;
    const { bytes } = yield* filesBytes(path);
    if (bytes <= usedBytes + (isShort ? 0 : limits.projectBytes)) return false;
    return Option.isSome(yield* turns.alone(collect(path)));
  });

  const onDisk = Effect.map(limits.disk, (now) =>
    now === null ? Infinity : now.free - FREE_SHARE * now.total,
  );

  return Effect.fnUntraced(function* (repository: SessionRepository, wantedBytes: number) {
    yield* deleteTurns(repository, "session", wantedBytes);
    const left = yield* deleteTurns(repository, "project", wantedBytes);
    let free = yield* onDisk;
    if (yield* isCollected(repository, left.used, free < wantedBytes)) free = yield* onDisk;
    if (free <= 0)
      return yield* new SaveStoreError({
        code: "full",
        message: "The disk of this node is almost full. The operator has to free some space.",
      });
    return Math.max(0, Math.floor(Math.min(left.session, left.project, free)));
  });
};
