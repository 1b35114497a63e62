/** What became of a session's work when its sandbox was torn down (api.md 3 "Saving", 7). */
import * as Schema from "effect/Schema";

/** Answer of `POST /platform/save`. */
export const Saved = Schema.Struct({
  /** The commit on refs/wip/<session id>; null where there was nothing to save, or nothing could be. */
  wip: Schema.NullOr(Schema.String),
  /** What is not in it, and why. */
  skipped: Schema.Array(Schema.Struct({ path: Schema.String, reason: Schema.String })),
  /** Why nothing was saved. */
  error: Schema.NullOr(Schema.String),
});
export type Saved = typeof Saved.Type;

/** Nothing was saved, for this reason. */
export const notSaved = (reason: string): Saved => ({ wip: null, skipped: [], error: reason });
