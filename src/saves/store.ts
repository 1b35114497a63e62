/** The port to one node's `saves/` directory: what a save is made of, below the code that compares and decides (saver.ts). */
import * as Context from "effect/Context";
import type * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import type * as Scope from "effect/Scope";
import type { Readable } from "node:stream";
import { LeftOut, ListedCommits, ListedItem, Listing, ObjectId } from "../domain/save/listing.ts";
import type { KeptTurn, SavePlace, SessionSize } from "./port.ts";

/** `full`: this node's disk has no room. `failed`: anything else. */
export class SaveStoreError extends Schema.TaggedError<SaveStoreError>()("SaveStoreError", {
  code: Schema.Literals(["full", "failed"]),
  message: Schema.String,
}) {}

/** A ref's commits, as they are stored: the object is a pack. Null if `within` another ref. */
export const StoredCommits = Schema.Struct({ ...ListedCommits.fields, object: Schema.NullOr(ObjectId) });
export type StoredCommits = typeof StoredCommits.Type;

/** A stored save. It names only what is durable. */
export const Save = Schema.Struct({
  sandboxId: Schema.String,
  /** When its last part was stored, ms since the epoch. */
  at: Schema.Finite,
  /** The pushed commit from which its files differ. */
  base: Schema.NullOr(ObjectId),
  head: Listing.fields.head,
  heads: Listing.fields.heads,
  items: Schema.Array(ListedItem),
  commits: Schema.Array(StoredCommits),
  /** What the sandbox had, and the save lacks. */
  pending: Schema.Array(LeftOut),
  skipped: Schema.Array(LeftOut),
  /** Whose record of the conversation the items are (history.ts). Absent: they are work. */
  history: Schema.optionalKey(Schema.Struct({ runtime: Schema.String, id: Schema.String })),
});
export type Save = typeof Save.Type;

/** The saves of one session. */
export interface SessionSaves {
  readonly last: Save | null;
  /** Oldest first. `id` is the sandbox's id. */
  readonly earlier: readonly Save[];
}

/** One stored content. Large ones are streams. */
export interface StoredContent {
  readonly object: string;
  readonly size: number;
  readonly bytes: Buffer | Readable | null;
}

/** One part under way. It does not count before `finish`. */
export interface PartWriter {
  /** Stores bytes. The caller has computed the object id of exactly these bytes. */
  readonly add: (
    object: string,
    content: { readonly size: number; readonly bytes: Buffer | Readable },
  ) => Effect.Effect<void, SaveStoreError>;
  /** Makes this the session's last save, or its history. When it returns, the part is durable. */
  readonly finish: (save: Save) => Effect.Effect<void, SaveStoreError>;
}

export class SaveStore extends Context.Service<
  SaveStore,
  {
    readonly load: (place: SavePlace) => Effect.Effect<SessionSaves, SaveStoreError>;
    /** Begins a part. It is given up if the scope closes before `finish`. */
    readonly part: (place: SavePlace) => Effect.Effect<PartWriter, SaveStoreError, Scope.Scope>;
    /** The runtime's own record of the conversation. Null if it was not kept. */
    readonly history: (place: SavePlace) => Effect.Effect<Save | null, SaveStoreError>;
    /** Begins to store another one in its place. */
    readonly historyPart: (place: SavePlace) => Effect.Effect<PartWriter, SaveStoreError, Scope.Scope>;
    /**
     * How many bytes the session may still store, after older turns' saves were deleted as far as `wanted` needs it. Fails
     * with `full` if the disk has no room for anything.
     */
    readonly room: (place: SavePlace, bytes: number) => Effect.Effect<number, SaveStoreError>;
    /**
     * The contents of objects of this session's saves, in the order of their names, by one git process however many they are.
     * Each is read before the next is asked for. `bytes` null: the session's saves have no such object.
     */
    readonly contents: (
      place: SavePlace,
      objects: readonly string[],
    ) => Effect.Effect<AsyncIterable<StoredContent>, SaveStoreError, Scope.Scope>;
    /** Replaces the earlier save of the same sandbox by one with fewer contents. */
    readonly replaceEarlier: (place: SavePlace, save: Save) => Effect.Effect<void, SaveStoreError>;
    /** Makes this the last save of another session of the project, which has none. It names objects of this session's saves. */
    readonly copy: (
      place: SavePlace,
      to: { readonly sessionId: string; readonly save: Save },
    ) => Effect.Effect<void, SaveStoreError>;
    /** The turns whose saves are kept, oldest first. */
    readonly turns: (place: SavePlace) => Effect.Effect<readonly KeptTurn[], SaveStoreError>;
    /** The save that is kept for a turn. Null if none is. */
    readonly ofTurn: (place: SavePlace, turn: string) => Effect.Effect<Save | null, SaveStoreError>;
    /** The last save becomes an earlier one, before a new sandbox's first save. */
    readonly setAside: (place: SavePlace) => Effect.Effect<void, SaveStoreError>;
    /** Keeps the last save for a turn, and deletes the oldest kept one beyond fifty. */
    readonly keepTurn: (place: SavePlace, turn: string) => Effect.Effect<void, SaveStoreError>;
    /** A sandbox has brought these back whole. Earlier ones go; the last one stays until the next save. */
    readonly forgetEarlier: (
      place: SavePlace,
      sandboxIds: readonly string[],
    ) => Effect.Effect<readonly string[], SaveStoreError>;
    readonly remove: (place: SavePlace) => Effect.Effect<void, SaveStoreError>;
    readonly removeProject: (projectId: string) => Effect.Effect<void, SaveStoreError>;
    /** The sessions that have saves, by project. */
    readonly places: Effect.Effect<ReadonlyMap<string, readonly string[]>, SaveStoreError>;
    readonly sizes: (projectId: string) => Effect.Effect<readonly SessionSize[], SaveStoreError>;
  }
>()("platform/saves/SaveStore") {}
