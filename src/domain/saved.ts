/** The result of saving a session's work when its sandbox is torn down (api.md 3 "Saving", 7). */
import * as Schema from "effect/Schema";

/** Answer of `POST /platform/save`. */
export const Saved = Schema.Struct({
  /** The commit on refs/wip/<session id>. Null if there was nothing to save, or the save failed. */
  wip: Schema.NullOr(Schema.String),
  /** Files that the save left out, with reasons. */
  skipped: Schema.Array(Schema.Struct({ path: Schema.String, reason: Schema.String })),
  /** Why the save failed. Null if it did not. */
  error: Schema.NullOr(Schema.String),
});
export type Saved = typeof Saved.Type;

/** A failed save with its reason. */
export const notSaved = (reason: string): Saved => ({ wip: null, skipped: [], error: reason });
