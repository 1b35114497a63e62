/** The result of saving a session's work when its sandbox is torn down, and of restoring it (api.md 3 "Saving", 7). */
import * as Schema from "effect/Schema";

/** Parts that were left out, with reasons. */
const LeftOut = Schema.Array(Schema.Struct({ path: Schema.String, reason: Schema.String }));

/** Answer of `POST /platform/save`. */
export const Saved = Schema.Struct({
  /**
   * The commit on refs/wip/<session id>. Null if there was nothing to save. If the save failed, the commit of an earlier
   * save, or null.
   */
  wip: Schema.NullOr(Schema.String),
  /** Files that the save left out, with reasons. */
  skipped: LeftOut,
  /** Why the save failed. Null if it did not. */
  error: Schema.NullOr(Schema.String),
});
export type Saved = typeof Saved.Type;

/** What a new sandbox took back from a save. */
export const Restored = Schema.Struct({
  /** The saved commit that the restart asked for. */
  wip: Schema.String,
  /** How many unpushed commits are on the session branch again. */
  commits: Schema.Finite,
  /** How many files were changed, added or removed. */
  files: Schema.Finite,
  /** Files of the commit that stayed as they are on the branch, with reasons. */
  skipped: LeftOut,
  /** Why something, or all, was not restored. Null without a problem. */
  error: Schema.NullOr(Schema.String),
});
export type Restored = typeof Restored.Type;

/** A failed save with its reason. */
export const notSaved = (reason: string): Saved => ({ wip: null, skipped: [], error: reason });

/** Whether a sandbox took everything back: what it does not save again was pushed or removed there. */
export const isWhole = (restored: Restored | null): boolean =>
  restored !== null && restored.error === null && restored.skipped.length === 0;

/**
 * What a session says after a save. Saved work stays named until a sandbox took it back, and a later save ended well.
 *
 * @param former the session before that save; `restored` is what its last sandbox took back.
 */
export const afterSave = (
  former: { readonly saved: Saved | null; readonly restored: Restored | null },
  saved: Saved,
): Saved => {
  const isObsolete = saved.wip !== null || (saved.error === null && isWhole(former.restored));
  return isObsolete ? saved : { ...saved, wip: former.saved?.wip ?? null };
};
