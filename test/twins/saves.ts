/**
 * Saved work in memory (src/saves/port.ts). The content of a sandbox is a map from paths to versions, and a part is one path. It
 * outlives the service, so a simulation can cut a save at each part.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Semaphore from "effect/Semaphore";
import type { LeftOut } from "../../src/domain/save/listing.ts";
import {
  isWhole,
  NOTHING_TO_SAVE,
  notRestored,
  notSaved,
  type Restored,
  type Saved,
} from "../../src/domain/save/saved.ts";
import { GitError } from "../../src/git/port.ts";
import { Saves, type SavePlace, type SaveRequest } from "../../src/saves/port.ts";
import { Sessions } from "../../src/store/ports/sessions/sessions.ts";

export type Files = ReadonlyMap<string, string>;

/** One sandbox's save. */
interface StoredSave {
  readonly sandboxId: string;
  at: number;
  readonly files: Map<string, string>;
}

interface SessionSaves {
  last: StoredSave | null;
  earlier: StoredSave[];
  /** The kept ones, by the turn that ended. */
  readonly turns: Map<string, StoredSave>;
}

/** The sandboxes, as the saves see them. */
export interface Workspaces {
  /** The content of a sandbox beside the pushed branch. Null: it does not answer. */
  readonly list: (sandboxId: string) => Files | null;
  /** Why a path cannot be read. Null: it can. */
  readonly fault: (sandboxId: string, path: string) => string | null;
  /** Writes into a booting sandbox. False: it does not answer. */
  readonly write: (sandboxId: string, files: Files) => boolean;
  /** Runs before each part. It may take time, or never end. */
  readonly part: Effect.Effect<void>;
}

const EMPTY: Workspaces = {
  list: () => new Map(),
  fault: () => null,
  write: () => true,
  part: Effect.void,
};

export class SimulatedSaves {
  readonly #sessions = new Map<string, SessionSaves>();
  workspaces: Workspaces = EMPTY;
  /** The node that has the saves does not answer. */
  isAway = false;
  /** The requests, in order. */
  readonly requests: SaveRequest[] = [];
  /** Hears the answer to each save that was listed. */
  onSaved: (request: SaveRequest, listed: Files, saved: Saved) => void = () => undefined;
  /** Runs before a restoration. */
  restoring: Effect.Effect<void> = Effect.void;
  /** Answers in place of a save. */
  scripted: ((request: SaveRequest) => Effect.Effect<Saved>) | null = null;

  of(sessionId: string): SessionSaves {
    const known = this.#sessions.get(sessionId) ?? { last: null, earlier: [], turns: new Map() };
    this.#sessions.set(sessionId, known);
    return known;
  }

  has(sessionId: string): boolean {
    return this.#sessions.has(sessionId);
  }

  /** What a sandbox gets back: of each path the newest version. */
  merged(sessionId: string): Files {
    const { last, earlier } = this.of(sessionId);
    const saves = last === null ? earlier : earlier.concat(last);
    return new Map(saves.flatMap(({ files }) => Array.from(files)));
  }

  get layer(): Layer.Layer<Saves, never, Sessions> {
    return Layer.effect(
      Saves,
      Effect.map(Sessions, (sessions) => this.over(sessions)),
    );
  }

  /** The port of one life of the service. */
  over(sessions: Sessions["Service"]): Saves["Service"] {
    const locks = new Map<string, Semaphore.Semaphore>();
    const lockOf = ({ sessionId }: SavePlace): Semaphore.Semaphore => {
      const lock = locks.get(sessionId) ?? Semaphore.makeUnsafe(1);
      locks.set(sessionId, lock);
      return lock;
    };
    return {
      // Two saves of a session follow each other.
      save: (request) => lockOf(request).withPermit(this.#saving(request, sessions)),
      restore: ({ sessionId, sandboxId }) =>
        Effect.andThen(
          Effect.suspend(() => this.restoring),
          Effect.sync(() => this.#restore(sessionId, sandboxId)),
        ),
      copy: ({ sessionId, turn, to }) =>
        this.#reached(() => {
          const { last, earlier, turns } = this.of(sessionId);
          const found = turn === null ? (last ?? earlier.at(-1)) : turns.get(turn);
          if (found === undefined) return null;
          const files = turn === null ? this.merged(sessionId) : found.files;
          this.of(to).last = { ...found, files: new Map(files) };
          return { base: null, saved: this.#said(to, { pending: [], error: null }) };
        }),
      turns: ({ sessionId }) =>
        this.#reached(() => [...this.of(sessionId).turns].map(([id, { at }]) => ({ id, at }))),
      check: () => this.#reached(() => undefined),
      compare: () => Effect.succeed(null),
      diff: () => Effect.succeed(""),
      forgetEarlier: ({ sessionId }, id) =>
        this.#reached(() => {
          const saves = this.of(sessionId);
          const rest = saves.earlier.filter(({ sandboxId }) => sandboxId !== id);
          const isThere = rest.length < saves.earlier.length;
          saves.earlier = rest;
          return isThere;
        }),
      remove: ({ sessionId }) => this.#reached(() => void this.#sessions.delete(sessionId)),
      removeProject: () => Effect.void,
      sizes: () =>
        this.#reached(() => ({
          sessions: [...this.#sessions.keys()]
            .map((sessionId) => ({ sessionId, bytes: this.merged(sessionId).size }))
            .toSorted((one, other) => other.bytes - one.bytes),
          away: [],
        })),
    };
  }

  #restore(sessionId: string, sandboxId: string): Restored {
    const files = this.merged(sessionId);
    if (!this.workspaces.write(sandboxId, files)) return notRestored("the sandbox did not answer");
    this.of(sessionId).earlier = [];
    return { ...notRestored(""), wip: wipOf(this.of(sessionId)), files: files.size, error: null };
  }

  #reached<A>(work: () => A): Effect.Effect<A, GitError> {
    return Effect.suspend((): Effect.Effect<A, GitError> =>
      this.isAway
        ? Effect.fail(new GitError({ code: "away", message: "node-2 is away" }))
        : Effect.succeed(work()),
    );
  }

  #saving(request: SaveRequest, sessions: Sessions["Service"]): Effect.Effect<Saved> {
    const { sessionId, sandboxId, limitMs } = request;
    const note = (saved: Saved) => Effect.ignore(sessions.noteSaved(sessionId, { sandboxId, saved }));
    return Effect.gen({ self: this }, function* () {
      this.requests.push(request);
      if (this.scripted !== null) return yield* this.scripted(request);
      const listed = this.workspaces.list(sandboxId);
      if (listed === null) return this.#said(sessionId, { pending: [], error: "the sandbox did not answer" });
      if (listed.size === 0 && !this.has(sessionId)) return NOTHING_TO_SAVE;
      const former = yield* Effect.orDie(sessions.get(sessionId));
      const save = this.#current(request, former?.sandboxId === sandboxId && isWhole(former.restored));
      const pending = new Map(
        [...listed]
          .filter(([path, version]) => save.files.get(path) !== version)
          .map(([path]) => [path, "not_read"]),
      );
      for (const path of save.files.keys()) if (!listed.has(path)) save.files.delete(path);
      const left = (): readonly LeftOut[] => [...pending].map(([path, reason]) => ({ path, reason }));
      const store = Effect.gen({ self: this }, function* () {
        for (const path of pending.keys()) {
          yield* this.workspaces.part;
          const reason = this.workspaces.fault(sandboxId, path);
          if (reason !== null) pending.set(path, reason);
          else {
            save.files.set(path, listed.get(path) ?? "");
            save.at = yield* Clock.currentTimeMillis;
            pending.delete(path);
          }
          yield* note(this.#said(sessionId, { pending: left(), error: null }));
        }
      });
      yield* Effect.timeoutOrElse(store, { duration: limitMs, orElse: () => Effect.void });
      if (request.turn !== null) this.of(sessionId).turns.set(request.turn, structuredClone(save));
      const error = pending.size === 0 ? null : "Not everything could be saved.";
      const saved = this.#said(sessionId, { pending: left(), error });
      this.onSaved(request, listed, saved);
      return saved;
    }).pipe(Effect.tap(note));
  }

  /** The save that this sandbox goes on with. That of another sandbox is set aside, unless this one has its work. */
  #current({ sessionId, sandboxId }: SaveRequest, isRestored: boolean): StoredSave {
    const saves = this.of(sessionId);
    const { last } = saves;
    if (last?.sandboxId === sandboxId) return last;
    if (last !== null && !isRestored && last.files.size > 0) saves.earlier = [...saves.earlier, last];
    const files = isRestored ? new Map(last?.files) : new Map<string, string>();
    saves.last = { sandboxId, at: 0, files };
    return saves.last;
  }

  #said(
    sessionId: string,
    { pending, error }: { readonly pending: readonly LeftOut[]; readonly error: string | null },
  ): Saved {
    const saves = this.of(sessionId);
    const { last, earlier } = saves;
    const isAsked = error === null || pending.length > 0;
    return {
      ...notSaved(""),
      state: isAsked ? (pending.length === 0 ? "complete" : "partial") : "failed",
      at: last === null || last.at === 0 ? null : new Date(last.at).toISOString(),
      wip: wipOf(saves),
      files: last?.files.size ?? 0,
      pending,
      error,
      node: last === null ? null : "node-1",
      ...(earlier.length > 0 && {
        earlier: earlier.map(({ sandboxId: id, at, files }) => ({
          id,
          at: new Date(at).toISOString(),
          files: files.size,
          commits: 0,
        })),
      }),
    };
  }
}

const wipOf = ({ last, earlier }: SessionSaves): string | null =>
  (last?.files.size ?? 0) + earlier.length === 0 ? null : "5a7ed".padEnd(40, "0");
