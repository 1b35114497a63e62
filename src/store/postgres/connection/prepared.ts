/**
 * Which statements a connection keeps, parsed and planned, under a name. Most cost less to plan than it costs to keep them;
 * the one that writes an admission has ten parts, and planning it anew took more of the database's time than running it.
 */
import { createHash } from "node:crypto";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";

/** Whether the statements of this effect are to be kept. */
export const Prepared = Context.Reference<boolean>("platform/store/postgres/Prepared", {
  defaultValue: () => false,
});

/** Has the connections keep the statements of an effect. For texts of which there are few: parameters do not count. */
export const prepared = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.provideService(effect, Prepared, true);

/** Texts beyond these are run like any other statement: a connection holds each plan in its memory. */
const TEXTS_MAX = 200;

const names = new Map<string, string>();

/** The name a text is kept under, the same on every connection; null: it is not kept. */
export const nameOf = (text: string): string | null => {
  const known = names.get(text);
  if (known !== undefined) return known;
  if (names.size >= TEXTS_MAX) return null;
  const name = createHash("sha256").update(text).digest("hex").slice(0, 32);
  names.set(text, name);
  return name;
};
