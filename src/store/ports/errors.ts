/** Errors of every list and every unique name in the store. */
import * as Schema from "effect/Schema";

/** A unique name is taken. */
export class Taken extends Schema.TaggedError<Taken>()("Taken", { what: Schema.String }) {}

/** The page cursor did not come from a list (threats.md T07: 400). */
export class BadCursor extends Schema.TaggedError<BadCursor>()("BadCursor", { cursor: Schema.String }) {}
