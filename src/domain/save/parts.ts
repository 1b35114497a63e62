/**
 * In which order the parts of a listing are stored, how a part that fails is divided, and what a save has in the end.
 *
 *  P1 Small contents come before large ones: commits of a few refs and small files are safe before one large file or a
 *     long history uses up the time. Every file is stored with its content, so no file needs the commits.
 *  P2 A part that fails is divided until one path or ref is left. Only that one is named.
 *  P3 A save replaces path by path. A listed path that could not be stored stays as the former save has it, and is named.
 */
import type { LeftOut, ListedCommits, ListedItem, Listing } from "./listing.ts";

/** Contents and packs up to this size come first, bytes. */
export const SMALL_BYTES = 1024 * 1024;
/** A small pack has at most so many bytes. */
export const SMALL_PACK_BYTES = 16 * 1024 * 1024;
/** The limits of one part. A larger file is a part of its own. */
export const PART_BYTES = 16 * 1024 * 1024;
export const PART_ITEMS = 2000;
/** Paths travel in the body of a request of at most 1 MiB. */
const PART_PATH_BYTES = 256 * 1024;
/** How many paths a session names. */
export const NAMED_MAX = 1000;

/** A ref's commits as they are stored: `object` is the pack. Null if `within` another ref. */
export interface StoredRef extends ListedCommits {
  readonly object: string | null;
}

/** The part of a save that a listing is compared with. */
export interface SavedContent {
  readonly items: readonly ListedItem[];
  readonly commits: readonly StoredRef[];
}

/** The content of several saves together: of a path in more than one, the version of the last. */
export const joinSaves = (saves: readonly SavedContent[]): SavedContent => {
  const items = new Map(saves.flatMap((save) => save.items.map((item) => [itemKey(item), item] as const)));
  const commits = new Map(saves.flatMap((save) => save.commits.map((ref) => [refKey(ref), ref] as const)));
  return { items: [...items.values()], commits: [...commits.values()] };
};

export type Part =
  | { readonly type: "commits"; readonly commits: ListedCommits; readonly bytes: number }
  | { readonly type: "items"; readonly items: readonly ListedItem[]; readonly bytes: number };

export const itemKey = ({ kind, path, stage = 0 }: ListedItem): string => `${kind}\0${stage}\0${path}`;
export const refKey = ({ repository, ref }: ListedCommits): string => `${repository}\0${ref}`;

/** The packs of a save, by the repository and the commit that they end with. */
const packKey = ({ repository, commit }: ListedCommits): string => `${repository}\0${commit}`;

/** The durable objects: contents by their object, and packs by their last commit. */
export class Stock {
  readonly #objects = new Set<string>();
  readonly #packs = new Map<string, string>();

  /** @param saves of the session itself; no other object counts */
  constructor(saves: readonly SavedContent[]) {
    for (const { items, commits } of saves) {
      for (const { object } of items) if (object !== null) this.#objects.add(object);
      for (const commit of commits) if (commit.object !== null) this.addPack(commit, commit.object);
    }
  }

  copy(): Stock {
    const copy = new Stock([]);
    for (const object of this.#objects) copy.#objects.add(object);
    for (const [key, object] of this.#packs) copy.#packs.set(key, object);
    return copy;
  }

  addObject(object: string): void {
    this.#objects.add(object);
  }

  addPack(commits: ListedCommits, object: string): void {
    this.#packs.set(packKey(commits), object);
  }

  has({ object }: Pick<ListedItem, "object">): boolean {
    return object === null || this.#objects.has(object);
  }

  /** The pack's object. Undefined: it is not stored. */
  pack(commits: ListedCommits): string | undefined {
    return this.#packs.get(packKey(commits));
  }
}

const bySize = (one: { readonly size: number }, other: { readonly size: number }): number =>
  one.size - other.size;

const isSmall = ({ size }: ListedItem): boolean => size <= SMALL_BYTES;

/** Divides items into parts, in their order. */
const groupItems = (items: readonly ListedItem[]): Part[] => {
  const parts: Part[] = [];
  let group: ListedItem[] = [];
  let [bytes, paths] = [0, 0];
  const close = (): void => {
    if (group.length > 0) parts.push({ type: "items", items: group, bytes });
    [group, bytes, paths] = [[], 0, 0];
  };
  for (const item of items) {
    const isFull =
      group.length >= PART_ITEMS ||
      bytes + item.size > PART_BYTES ||
      paths + item.path.length > PART_PATH_BYTES;
    if (isFull) close();
    group.push(item);
    bytes += item.size;
    paths += item.path.length;
  }
  close();
  return parts;
};

/** The part of a listing that is not stored yet, in the order in which it is stored (P1). Equal contents are read once. */
export const missingParts = (listing: Pick<Listing, "items" | "commits">, stock: Stock): readonly Part[] => {
  const missing = new Map<string, ListedItem>();
  for (const item of listing.items)
    if (item.object !== null && !stock.has(item) && !missing.has(item.object)) missing.set(item.object, item);
  const items = [...missing.values()].toSorted(bySize);
  const packs = listing.commits
    .filter((commits) => commits.within === null && stock.pack(commits) === undefined)
    .toSorted(bySize)
    .map((commits): Part => ({ type: "commits", commits, bytes: commits.size }));
  const late = [
    ...packs.filter(({ bytes }) => bytes > SMALL_PACK_BYTES),
    ...groupItems(items.filter((item) => !isSmall(item))),
  ];
  return [
    ...packs.filter(({ bytes }) => bytes <= SMALL_PACK_BYTES),
    ...groupItems(items.filter(isSmall)),
    ...late.toSorted((one, other) => one.bytes - other.bytes),
  ];
};

/** P2. Empty: the part is one path or one ref. */
export const halves = (part: Part): readonly Part[] => {
  if (part.type === "commits" || part.items.length < 2) return [];
  const middle = part.items.length >> 1;
  return [part.items.slice(0, middle), part.items.slice(middle)].map((items) => ({
    type: "items",
    items,
    bytes: items.reduce((sum, { size }) => sum + size, 0),
  }));
};

/** Why paths and refs are not stored, by their object, or for commits by their key. */
export class Reasons {
  readonly #reasons = new Map<string, string>();

  note(part: Part, reason: string): void {
    if (part.type === "commits") this.#reasons.set(packKey(part.commits), reason);
    else for (const { object } of part.items) this.noteObject(object, reason);
  }

  noteObject(object: string | null, reason: string): void {
    if (object !== null) this.#reasons.set(object, reason);
  }

  ofItem({ object }: ListedItem): string {
    return this.#reasons.get(object ?? "") ?? "not_stored_yet";
  }

  ofCommits(commits: ListedCommits): string {
    return this.#reasons.get(packKey(commits)) ?? "not_stored_yet";
  }
}

/** The content of a save after a listing. */
export interface Comparison extends SavedContent {
  /** The paths that only the sandbox has (P3). */
  readonly pending: readonly LeftOut[];
  /** What no save takes. */
  readonly skipped: readonly LeftOut[];
}

/** The former versions of what the agent itself cannot read any more: a file, or everything in a directory. */
const unreadable = (
  { items, left }: Pick<Listing, "items" | "left">,
  former: SavedContent | null,
): { readonly kept: readonly ListedItem[]; readonly skipped: readonly LeftOut[] } => {
  const listedKeys = new Set(items.map(itemKey));
  const readableItems = new Set<ListedItem>();
  const skippedItems = left.map((one) => {
    if (one.reason !== "unreadable" || one.count !== undefined) return one;
    const olds = (former?.items ?? []).filter(
      (item) =>
        !listedKeys.has(itemKey(item)) && (item.path === one.path || item.path.startsWith(`${one.path}/`)),
    );
    for (const old of olds) readableItems.add(old);
    return olds.length === 0 ? one : { ...one, reason: "unreadable_now" };
  });
  return { kept: [...readableItems], skipped: skippedItems };
};

/** @param former the last save of the same sandbox, or of one whose work this one has. */
export const compare = (
  listing: Pick<Listing, "items" | "commits" | "left">,
  {
    stock,
    former,
    reasons,
  }: { readonly stock: Stock; readonly former: SavedContent | null; readonly reasons: Reasons },
): Comparison => {
  const pending: LeftOut[] = [];
  const formerItems = new Map(former?.items.map((item) => [itemKey(item), item]));
  const items = listing.items.flatMap((item) => {
    if (stock.has(item)) return [item];
    const last = formerItems.get(itemKey(item));
    const hasOlder = last !== undefined && last.object !== null;
    pending.push({
      path: item.path,
      reason: reasons.ofItem(item),
      ...(hasOlder && { older: true as const }),
    });
    return last ?? [];
  });
  const formerRefs = new Map(former?.commits.map((ref) => [refKey(ref), ref]));
  const storedCommits = new Map<string, StoredRef>();
  for (const commits of listing.commits) {
    if (commits.within !== null) continue;
    const object = stock.pack(commits);
    const ref = object === undefined ? formerRefs.get(refKey(commits)) : { ...commits, object };
    if (object === undefined) pending.push({ path: refName(commits), reason: reasons.ofCommits(commits) });
    if (ref !== undefined) storedCommits.set(refKey(commits), ref);
  }
  for (const commits of listing.commits) {
    if (commits.within === null) continue;
    const host = storedCommits.get(refKey({ ...commits, ref: commits.within }));
    const container = listing.commits.find(
      (one) => refKey(one) === refKey({ ...commits, ref: commits.within ?? "" }),
    );
    // The other ref's pack has this commit only if it is the listed one.
    if (host !== undefined && host.commit === container?.commit)
      storedCommits.set(refKey(commits), { ...commits, object: null });
    else pending.push({ path: refName(commits), reason: "not_stored_yet" });
  }
  const { kept, skipped } = unreadable(listing, former);
  return { items: [...items, ...kept], commits: [...storedCommits.values()], pending, skipped };
};

/** A ref as a person reads it. */
export const refName = ({ repository, ref }: ListedCommits): string =>
  repository === "" ? ref : `${repository}: ${ref}`;

/** The first ones by name, and how many others there are. */
export const namedFirst = (left: readonly LeftOut[], max = NAMED_MAX): readonly LeftOut[] => {
  const rest = left[max];
  return rest === undefined
    ? left
    : [
        ...left.slice(0, max),
        { ...rest, count: left.slice(max).reduce((sum, { count = 1 }) => sum + count, 0) },
      ];
};
