/**
 * The content of a sandbox's workspace beside the session's pushed branch, as its daemon lists it, and the parts of it that the
 * service asks for. The daemon only lists and reads. The service compares, decides what comes first, and stores.
 *
 * Paths are bytes, held as latin1 text, one character a byte. Everything in a listing comes from a program of the
 * sandbox and is untrusted.
 */
import * as Schema from "effect/Schema";

export type { FrameEnd } from "./frames.ts";

/** The id that git gives to these bytes as a file: SHA-1, 40 hexadecimal digits. */
export const ObjectId = Schema.String.check(Schema.isPattern(/^[0-9a-f]{40}$/));

/** The mode of a path that is gone. */
export const GONE = "000000";

/**
 * One path with its content.
 *
 *  - `file`: of the working tree, byte for byte as it lies on the disk. A link's content is its target.
 *  - `index`: an entry of the index that differs from HEAD, or that is in conflict.
 *  - `state`: a file of git's own directory that belongs to an operation under way, such as a merge. `path` begins there.
 *  - `history`: a file of the runtime's own record of the conversation. `path` begins at the home directory.
 */
export const ListedItem = Schema.Struct({
  kind: Schema.Literals(["file", "index", "state", "history"]),
  path: Schema.String,
  /** As git writes it: 100644, 100755, 120000, or `GONE`. */
  mode: Schema.Literals(["100644", "100755", "120000", GONE]),
  /** Of an index entry: 0, or 1 to 3 in a conflict. Absent: 0. */
  stage: Schema.optionalKey(Schema.Literals([0, 1, 2, 3])),
  /** Bytes. 0 for a path that is gone. */
  size: Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0)),
  /** Null for a path that is gone. */
  object: Schema.NullOr(ObjectId),
});
export type ListedItem = typeof ListedItem.Type;

/** A ref whose commits the pushed branch and the session's base commit do not reach. */
export const ListedCommits = Schema.Struct({
  /** Where the repository is: "" is the workspace, else the path of a repository inside it. */
  repository: Schema.String,
  /** `HEAD` if it names no branch, `refs/heads/…`, `refs/stash/0` and on, or `state/MERGE_HEAD` and the like. */
  ref: Schema.String,
  commit: ObjectId,
  /** Another listed ref of the same repository with the same commit, or with this one in its history. */
  within: Schema.NullOr(Schema.String),
  /** The bytes of the pack, about, as git stores its objects now. 0 if `within` another. */
  size: Schema.Finite,
});
export type ListedCommits = typeof ListedCommits.Type;

/** What a save or a restoration left out. `count`: how many paths of this class, of which `path` is the first. */
export const LeftOut = Schema.Struct({
  path: Schema.String,
  reason: Schema.String,
  count: Schema.optionalKey(Schema.Finite),
  /** The save has an earlier version of it. Absent: it has none, or that is not known. */
  older: Schema.optionalKey(Schema.Literal(true)),
});
export type LeftOut = typeof LeftOut.Type;

/** Where HEAD is. `ref` null: detached. `commit` null: no commit yet. */
export const ListedHead = Schema.Struct({
  ref: Schema.NullOr(Schema.String),
  commit: Schema.NullOr(ObjectId),
});

/** The runtime's own record of the conversation (runtimes/history.ts). */
export const ListedHistory = Schema.Struct({
  /** The runtime's name. No other one gets it. */
  runtime: Schema.String,
  /** The runtime's id of the conversation. */
  id: Schema.String,
  items: Schema.Array(ListedItem),
});
export type ListedHistory = typeof ListedHistory.Type;

/** Answer of `POST /platform/save/list`. */
export const Listing = Schema.Struct({
  /** The pushed commit from which the files differ. Null if it could not be had, and `items` has every file. */
  base: Schema.NullOr(ObjectId),
  head: ListedHead,
  /** Repositories inside the workspace have a head of their own. */
  heads: Schema.Array(Schema.Struct({ repository: Schema.String, ...ListedHead.fields })),
  items: Schema.Array(ListedItem),
  commits: Schema.Array(ListedCommits),
  /** Ignored files, devices, sockets and unreadable files, counted by class. */
  left: Schema.Array(LeftOut),
  /** Absent: it has none, or one that is too large. */
  history: Schema.optionalKey(ListedHistory),
});
export type Listing = typeof Listing.Type;

/** Body of `POST /platform/save/list`. `pushed`: the session branch's tip, `base`: where the session began. */
export const ListRequest = Schema.Struct({
  pushed: Schema.NullOr(ObjectId),
  base: Schema.NullOr(ObjectId),
  /** The share of one processor that listing may use, 0 to 1. Absent: no limit. */
  share: Schema.optionalKey(Schema.Finite),
});
export type ListRequest = typeof ListRequest.Type;

/** Body of `POST /platform/save/read`: items in the order of the answer's frames, or one ref's pack. */
export const ReadRequest = Schema.Struct({
  items: Schema.Array(
    Schema.Struct({
      kind: Schema.Literals(["file", "index", "state", "history"]),
      path: Schema.String,
      object: ObjectId,
    }),
  ),
  /** The answer is one frame: a pack with all objects of the commit that those of `without` do not reach. */
  commits: Schema.optionalKey(
    Schema.Struct({
      repository: Schema.String,
      ref: Schema.String,
      commit: ObjectId,
      without: Schema.Array(ObjectId),
    }),
  ),
  /** The share of one processor that reading may use, 0 to 1. */
  share: Schema.Finite,
});
export type ReadRequest = typeof ReadRequest.Type;

/** One save, as a restoration gets it. Each item with an object, and each ref that is not `within` another, has a frame. */
export const RestoredSave = Schema.Struct({
  /** The pushed commit from which its files differ. */
  base: Schema.NullOr(ObjectId),
  head: ListedHead,
  heads: Listing.fields.heads,
  items: Schema.Array(ListedItem),
  commits: Schema.Array(ListedCommits),
});
export type RestoredSave = typeof RestoredSave.Type;

/**
 * The first frame of the body of `POST /platform/restore`, as JSON: the saves to bring back, oldest first, and why others
 * cannot come. Then follow, for each save, the packs of its refs and the contents of its items, in their order, and at the end the
 * contents of the history.
 */
export const RestorePlan = Schema.Struct({
  saves: Schema.Array(RestoredSave),
  /** Parts that are known to be missing, with reasons. */
  missing: Schema.Array(LeftOut),
  /** Sentences for the note in the conversation: what these saves never had, and saves that cannot come. Absent: none. */
  notes: Schema.optionalKey(Schema.Array(Schema.String)),
  error: Schema.NullOr(Schema.String),
  /** The runtime's own record of the conversation, as it was at `at`, ms since the epoch. Absent: it was not kept. */
  history: Schema.optionalKey(Schema.Struct({ ...ListedHistory.fields, at: Schema.Finite })),
});
export type RestorePlan = typeof RestorePlan.Type;

/**
 * One of the deliveries of a restoration, if several nodes have saves. They come one after another, oldest saves first, and may be
 * repeated from the first on.
 */
export interface RestorePart {
  /** From 1. */
  readonly number: number;
  readonly isLast: boolean;
}

/** The header of a delivery that has a part. Without it, a delivery is the only one. */
export const RESTORE_PART_HEADER = "x-platform-restore-part";

export const restorePartText = ({ number, isLast }: RestorePart): string =>
  `${number}${isLast ? " last" : ""}`;

/** @param text the header. Undefined: the only delivery. @returns null if it is malformed */
export const readRestorePart = (text: string | undefined): RestorePart | null => {
  if (text === undefined) return { number: 1, isLast: true };
  const [, number, last] = /^([1-9]\d{0,3})( last)?$/.exec(text) ?? [];
  return number === undefined ? null : { number: Number(number), isLast: last !== undefined };
};
