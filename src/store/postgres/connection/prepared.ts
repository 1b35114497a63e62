/**
 * Prepared statements: a connection keeps their plan under a name. Most statements are cheaper to plan than to keep.
 * But the statement that writes an admission has ten parts, and planning it took more database time than running it.
 */
import { createHash } from "node:crypto";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";

/** Whether this effect's statements are prepared. */
export const Prepared = Context.Reference<boolean>("platform/store/postgres/Prepared", {
  defaultValue: () => false,
});

/** Prepares the statements of an effect. Use it for few distinct texts; parameters do not count. */
export const prepared = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.provideService(effect, Prepared, true);

/** Further texts run like any other statement: a connection holds each plan in its memory. */
const TEXTS_MAX = 200;

const names = new Map<string, string>();

/** The name under which a text is prepared, the same on every connection. Null: it is not prepared. */
export const nameOf = (text: string): string | null => {
  const known = names.get(text);
  if (known !== undefined) return known;
  if (names.size >= TEXTS_MAX) return null;
  const name = createHash("sha256").update(text).digest("hex").slice(0, 32);
  names.set(text, name);
  return name;
};
