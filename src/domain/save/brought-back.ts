/**
 * The rest of earlier saves after a sandbox has brought back a part of them. That part is the agent's again: it may change or
 * remove it, and no later restoration may put the saved version over that.
 */
import type { LeftOut, Listing } from "./listing.ts";
import type { SavedContent } from "./parts.ts";

/** The part of a save that a restoration brings back. */
type Restorable = SavedContent & Pick<Listing, "heads">;
type Item = Restorable["items"][number];
type Commits = Restorable["commits"][number];

/** Why an entry of the index or a state file of git did not come back, while the file of the same name may have. */
const NOT_OF_FILES: ReadonlySet<string> = new Set(["staged_elsewhere", "newer_save"]);

const itemName = ({ kind, path }: Item): string => (kind === "state" ? `.git/${path}` : path);

/**
 * @param left what did not come back, as the session names it
 * @param displayPath the form of a path in these names
 * @returns the saves with what did not come back. Null if a name is not one path or ref of them, so nothing is known for sure
 */
export const notBroughtBack = <S extends Restorable>(
  saves: readonly S[],
  left: readonly LeftOut[],
  displayPath: (path: string) => string,
): readonly S[] | null => {
  const names = new Set(left.map(({ path }) => path));
  const ofFiles = new Set(left.flatMap(({ path, reason }) => (NOT_OF_FILES.has(reason) ? [] : [path])));
  const leftNames = new Set<string>();
  const isLeft = (name: string, among: ReadonlySet<string> = names): boolean => {
    const text = displayPath(name);
    if (names.has(text)) leftNames.add(text);
    return among.has(text);
  };
  const rest = saves.map((save) => {
    const items = save.items.filter((item) => {
      const isFile = item.kind === "file";
      // A staged removal has no content that could be lost.
      return isLeft(itemName(item), isFile ? ofFiles : names) && (isFile || item.object !== null);
    });
    const refs = save.commits.filter(({ repository, ref }) =>
      isLeft(repository === "" ? ref : `${repository}: ${ref}`),
    );
    // A pack may have commits of other refs.
    return refs.length > 0 ? { ...save, items } : { ...save, items, commits: [], heads: [] };
  });
  const isKnown = leftNames.size === names.size && left.every(({ count }) => count === undefined);
  return isKnown ? rest : null;
};

const itemKey = ({ kind, path, mode, object, stage }: Item): string =>
  JSON.stringify([kind, path, mode, object, stage ?? 0]);
const commitsKey = ({ repository, ref, commit }: Commits): string =>
  JSON.stringify([repository, ref, commit]);

/** @returns the save without what a newer one has, too */
export const withoutCopies = <S extends Restorable>(save: S, newer: Restorable): S => {
  const has = new Set(newer.items.map((item) => itemKey(item)));
  const refs = new Set(newer.commits.map((commits) => commitsKey(commits)));
  const items = save.items.filter((item) => !has.has(itemKey(item)));
  const isAll = save.commits.every((commits) => refs.has(commitsKey(commits)));
  return isAll ? { ...save, items, commits: [], heads: [] } : { ...save, items };
};
