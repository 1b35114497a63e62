/**
 * The port to saved work (saves.md). A project's saves are on one node: that of its hosted repository, otherwise the one
 * whose actor runs the session. All operations happen there.
 *
 *  S1 A save is made of what was stored durably. It never fails as a whole, and what it lacks is named, path by path.
 *  S2 A save replaces path by path: a path that the sandbox still has, and that could not be stored this time, stays as the
 *     last save of the same sandbox has it.
 *  S3 A save of an earlier sandbox stays beside it until a sandbox brings it back whole, or a person deletes it.
 *  S4 Only the service's own calls reach a save. No object of it is in a repository that clients fetch from.
 */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import type { Comparison, GitError } from "../git/port.ts";
import type { RestorePart } from "../domain/save/listing.ts";
import type { Restored, Saved } from "../domain/save/saved.ts";

/** Whose saves. */
export interface SavePlace {
  readonly projectId: string;
  readonly sessionId: string;
}

export interface SaveRequest extends SavePlace {
  readonly sandboxId: string;
  /** Where the session began. Null if unknown. */
  readonly baseCommit: string | null;
  /** The longest it may take, ms. The parts that are stored by then are the save. */
  readonly limitMs: number;
  /** In the background it uses at most a quarter of a processor in the sandbox. */
  readonly isBackground: boolean;
  /** The id of the turn that has ended: its save is kept, so that a session can begin from it. */
  readonly turn: string | null;
}

export interface RestoreRequest extends SavePlace {
  readonly sandboxId: string;
  /** Set between nodes, if several have saves. */
  readonly part?: RestorePart;
  /** When the earlier saves were made whose nodes do not answer, ISO 8601. Absent: none. */
  readonly away?: readonly string[];
}

/** `sessionId`: whose save it is. */
export interface CopyRequest extends SavePlace {
  /** The id of the turn whose save it is. Null means the newest save. */
  readonly turn: string | null;
  /** The id of a session of the same project that is about to begin. */
  readonly to: string;
}

export interface CopiedSave {
  /** The pushed commit from which its files differ: the new session's branch begins there. Null if unknown. */
  readonly base: string | null;
  /** What the new session says of it. */
  readonly saved: Saved;
}

/** A turn whose save is kept. `at`: when that was made, ms since the epoch. */
export interface KeptTurn {
  readonly id: string;
  readonly at: number;
}

/** The save of an earlier sandbox. Absent: the last save. */
export interface WhichSave {
  readonly save?: string;
}

export interface SessionSize {
  readonly sessionId: string;
  readonly bytes: number;
}

export interface ProjectSizes {
  /** Largest first. */
  readonly sessions: readonly SessionSize[];
  /** Nodes that cannot be reached. Their saves are missing here. */
  readonly away: readonly string[];
}

export class Saves extends Context.Service<
  Saves,
  {
    /**
     * Saves what a running sandbox has and its save lacks. Two calls for one session follow each other. The session's row
     * has the result after each part (store/ports/sessions/sessions.ts `noteSaved`). Never fails: `error` and `pending` say what is
     * missing.
     */
    readonly save: (request: SaveRequest) => Effect.Effect<Saved>;
    /** Gives a booting sandbox the saves of its session. Never fails: `error` and `skipped` say what did not come back. */
    readonly restore: (request: RestoreRequest) => Effect.Effect<Restored>;
    /** Makes a save of a session that of another one, too. Null if there is no such save. */
    readonly copy: (request: CopyRequest) => Effect.Effect<CopiedSave | null, GitError>;
    /** The turns of a session whose saves are kept, oldest first. */
    readonly turns: (place: SavePlace) => Effect.Effect<readonly KeptTurn[], GitError>;
    /** Fails with `away` while the node that has the saves cannot be reached. */
    readonly check: (place: SavePlace) => Effect.Effect<void, GitError>;
    /** The changes that the saved work adds to the session's branch. Null if there is no saved work. */
    readonly compare: (place: SavePlace, which?: WhichSave) => Effect.Effect<Comparison | null, GitError>;
    /** The same as a unified diff. */
    readonly diff: (
      place: SavePlace,
      request: WhichSave & { readonly path?: string; readonly maxBytes: number },
    ) => Effect.Effect<string, GitError>;
    /** Deletes a save of an earlier sandbox. False: no save has this id. */
    readonly forgetEarlier: (place: SavePlace, id: string) => Effect.Effect<boolean, GitError>;
    /** Deletes all saves of a session. */
    readonly remove: (place: SavePlace) => Effect.Effect<void, GitError>;
    /** Deletes all saves of a project. */
    readonly removeProject: (projectId: string) => Effect.Effect<void, GitError>;
    /** The sizes of a project's saves, on all nodes that can have some. */
    readonly sizes: (projectId: string) => Effect.Effect<ProjectSizes, GitError>;
  }
>()("platform/saves/Saves") {}

export interface Collecting {
  /** One round over all repositories. One that fails is tried again by the next round. */
  readonly round: Effect.Effect<void>;
}

/** This node's. A service without a data directory has nothing to collect. */
export const SaveCollection = Context.Reference<Collecting>("platform/saves/SaveCollection", {
  defaultValue: () => ({ round: Effect.void }),
});
