/**
 * The rest of earlier saves after a sandbox has brought back a part of them. That part is the agent's again: it may change or
 * remove it, and no later restoration may put the saved version over that.
 */
import type { LeftOut, Listing } from "./listing.ts";
import type { SavedContent } from "./parts.ts";

/** The part of a save that a restoration brings back. */
type Restorable = SavedContent & Pick<Listing, "heads">;

/**
 * @param left what did not come back, as the session names it
 * @param shown the form of a path in these names
 * @returns the saves with what did not come back. Null: a name is not one path or ref of them, so nothing is known for sure
 */
export const notBroughtBack = <S extends Restorable>(
  saves: readonly S[],
  left: readonly LeftOut[],
  shown: (path: string) => string,
): readonly S[] | null => {
  const names = new Set(left.map(({ path }) => path));
  const known = new Set<string>();
  const isLeft = (name: string): boolean => {
    const text = shown(name);
    if (names.has(text)) known.add(text);
    return names.has(text);
  };
  const rest = saves.map((save) => {
    const items = save.items.filter(({ kind, path }) => isLeft(kind === "state" ? `.git/${path}` : path));
    const refs = save.commits.filter(({ repository, ref }) =>
      isLeft(repository === "" ? ref : `${repository}: ${ref}`),
    );
    // A pack may have commits of other refs.
    return refs.length > 0 ? { ...save, items } : { ...save, items, commits: [], heads: [] };
  });
  const isKnown = known.size === names.size && left.every(({ count }) => count === undefined);
  return isKnown ? rest : null;
};
