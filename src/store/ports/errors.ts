/** What every list and every unique name of the store may refuse. */
import * as Schema from "effect/Schema";

/** A unique name is taken. */
export class Taken extends Schema.TaggedError<Taken>()("Taken", { what: Schema.String }) {}

/** A page cursor that no list gave (threats.md T07: 400). */
export class BadCursor extends Schema.TaggedError<BadCursor>()("BadCursor", { cursor: Schema.String }) {}
