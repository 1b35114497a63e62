/**
 * Prepared statements: a connection keeps a statement's parsed text, and soon its plan, under a name. Planning a short
 * read costs Postgres more than running it.
 *
 *  P1 Only a text that was used several times is prepared: the others are hardly used again, and a
 *     connection holds every plan in its memory.
 *  P2 A statement whose best plan depends on the values of its parameters is not prepared: `plannedAnew`.
 */
import { createHash } from "node:crypto";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";

/** Whether this effect's statements may be prepared. */
export const Prepared = Context.Reference<boolean>("platform/store/postgres/Prepared", {
  defaultValue: () => true,
});

/** Plans the statements of an effect each time with their values, such as those of a list with filters (P2). */
export const plannedAnew = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.provideService(effect, Prepared, false);

/** A text is prepared from this use on (P1). */
export const PREPARED_FROM = 5;
/** The most texts that are prepared. Further ones run like any other statement. */
export const TEXTS_MAX = 300;
/** How many texts are counted until they are prepared. Counting begins again with more. */
const COUNTED_MAX = 2_000;

/** The texts that the connections of one pool prepare. */
export class Texts {
  readonly #names = new Map<string, string>();
  readonly #uses = new Map<string, number>();

  /** Counts a use. @returns the name under which the text is prepared, the same on every connection. Null: it is not. */
  nameOf(text: string): string | null {
    const known = this.#names.get(text);
    if (known !== undefined) return known;
    if (this.#names.size >= TEXTS_MAX) return null;
    const used = (this.#uses.get(text) ?? 0) + 1;
    if (used < PREPARED_FROM) {
      if (this.#uses.size >= COUNTED_MAX) this.#uses.clear();
      this.#uses.set(text, used);
      return null;
    }
    this.#uses.delete(text);
    const name = createHash("sha256").update(text).digest("hex").slice(0, 32);
    this.#names.set(text, name);
    return name;
  }
}
