/**
 * Saves of earlier versions: a commit whose tree is the workspace, and its "rest", another commit that leads to the other refs, the
 * index and the state of a merge or rebase. Its parents are HEAD, the session branch if it has more commits, the rest, and the former
 * saved commit. This takes one into the store, as a save with the same content.
 */
import * as Effect from "effect/Effect";
import { createHash } from "node:crypto";
import { GONE, type LeftOut, type ListedItem } from "../../domain/save/listing.ts";
import { runGit, spawnGit } from "../../git/run.ts";
import { readContents } from "../contents.ts";
import type { SavePlace } from "../port.ts";
import { gitError, LONG_MS } from "../saves-repository.ts";
import type { PartWriter, SaveStore, StoredCommits } from "../store.ts";

/** The largest pack of one ref that is taken over. */
const PACK_BYTES = 256 * 1024 ** 2;
const LISTING_BYTES = 256 * 1024 ** 2;
const ABSENT = "0".repeat(40);

export interface OldSave {
  /** The repository that has the objects. */
  readonly path: string;
  readonly place: SavePlace;
  readonly sandboxId: string;
  /** The saved commit. */
  readonly wip: string;
  readonly at: number;
  /** The pushed tip of the session's branch. */
  readonly base: string | null;
}

interface Entry {
  readonly mode: string;
  readonly object: string;
  readonly path: string;
}

const git = (path: string, args: readonly string[], expect: readonly number[] = [0]) =>
  Effect.map(
    runGit({ repository: path, args, expect, maxOutputBytes: LISTING_BYTES, deadlineMs: LONG_MS }),
    ({ stdout }) => stdout.toString("latin1"),
  );

/** What differs between two trees. `git diff-tree -z`: `:mode mode object object status NUL path NUL`. */
const differences = Effect.fnUntraced(function* (path: string, from: string, to: string) {
  const fields = (yield* git(path, [
    "diff-tree",
    "-r",
    "-z",
    "--no-renames",
    "--raw",
    "--full-index",
    from,
    to,
  ])).split("\0");
  const entries: Entry[] = [];
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const [, mode = GONE, , object = ABSENT] = (fields[at] ?? "").split(" ");
    entries.push({ mode, object, path: fields[at + 1] ?? "" });
  }
  return entries;
});

/** The files of a tree, none if the tree does not exist. */
const readFiles = Effect.fnUntraced(function* (path: string, tree: string) {
  const listing = yield* git(path, ["ls-tree", "-r", "-z", "--full-tree", tree], [0, 128]);
  return listing.split("\0").flatMap((line): Entry[] => {
    const [, mode, object, name] = /^(\d{6}) blob ([0-9a-f]{40})\t(.*)$/s.exec(line) ?? [];
    return mode === undefined || object === undefined || name === undefined
      ? []
      : [{ mode, object, path: name }];
  });
});

const MODES = ["100644", "100755", "120000"] as const;

const toItem = (
  { mode, object, path }: Entry,
  as: Pick<ListedItem, "kind"> & Pick<Partial<ListedItem>, "stage">,
): ListedItem | null => {
  if (object === ABSENT || mode === GONE) return { ...as, path, mode: GONE, size: 0, object: null };
  const knownMode = MODES.find((one) => one === mode);
  return knownMode === undefined ? null : { ...as, path, mode: knownMode, size: 0, object };
};

const EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/** The commits that a saved commit hangs on. */
const readParents = Effect.fnUntraced(function* ({ path, place, wip }: OldSave) {
  const message = yield* git(path, ["show", "-s", "--format=%B", wip]);
  const rest = /^ *rest=([0-9a-f]{40})$/m.exec(message)?.[1] ?? null;
  const parents = (yield* git(path, ["show", "-s", "--format=%P", wip])).trim().split(" ").filter(Boolean);
  const own: string[] = [];
  for (const parent of parents) {
    const subject = (yield* git(path, ["show", "-s", "--format=%s", parent])).trimEnd();
    if (parent !== rest && subject !== `Work in progress of session ${place.sessionId}`) own.push(parent);
  }
  const ref = /^HEAD names (refs\/heads\/\S+)\.$/m.exec(message)?.[1] ?? `refs/heads/${place.sessionId}`;
  const [head = null, branch = null] = own;
  return { rest: rest !== null && parents.includes(rest) ? rest : null, ref, head, branch };
});

/** The refs of the rest. Tags are named, not taken: they were no part of the session's work. */
const restRefs = Effect.fnUntraced(function* (path: string, rest: string | null) {
  if (rest === null) return { refs: [], left: [] };
  const lines = (yield* git(path, ["cat-file", "blob", `${rest}:refs`], [0, 128])).split("\n");
  const refs: { readonly ref: string; readonly commit: string }[] = [];
  const left: LeftOut[] = [];
  for (const line of lines) {
    const [, commit, ref] = /^([0-9a-f]{40}) (.+)$/.exec(line) ?? [];
    if (commit === undefined || ref === undefined) continue;
    if (/^refs\/(?:heads|stash)\//.test(ref)) refs.push({ ref, commit });
    else left.push({ path: ref, reason: "not_taken_over" });
  }
  return { refs, left };
});

const contentsOfRest = Effect.fnUntraced(function* (path: string, rest: string | null, head: string | null) {
  if (rest === null) return [];
  const hasIndex =
    (yield* git(path, ["rev-parse", "--verify", "--quiet", `${rest}:index`], [0, 1, 128])) !== "";
  const index = hasIndex ? yield* differences(path, head ?? EMPTY_TREE, `${rest}:index`) : [];
  const items = index.map((entry) => toItem(entry, { kind: "index" }));
  for (const stage of [1, 2, 3] as const)
    for (const entry of yield* readFiles(path, `${rest}:conflicts-${stage}`))
      items.push(toItem(entry, { kind: "index", stage }));
  for (const entry of yield* readFiles(path, `${rest}:state`)) items.push(toItem(entry, { kind: "state" }));
  return items.flatMap((item) => item ?? []);
});

/** Stores the commits that the pushed branch does not reach, as a pack. Null if it reaches them. */
const storeCommits = Effect.fnUntraced(function* (
  { path }: OldSave,
  {
    ref,
    commit,
    base,
    part,
  }: {
    readonly ref: string;
    readonly commit: string;
    readonly base: string | null;
    readonly part: PartWriter;
  },
) {
  const without = base === null ? [] : [`^${base}`];
  const count = Number(yield* git(path, ["rev-list", "--count", commit, ...without], [0]));
  if (count === 0) return null;
  const { stdout, truncated } = yield* runGit({
    repository: path,
    args: ["pack-objects", "--revs", "--stdout", "--quiet", "--delta-base-offset"],
    stdin: `${[commit, ...without].join("\n")}\n`,
    maxOutputBytes: PACK_BYTES,
    deadlineMs: LONG_MS,
  });
  if (truncated) return "too_large" as const;
  const object = createHash("sha1").update(`blob ${stdout.length}\0`).update(stdout).digest("hex");
  yield* Effect.mapError(part.add(object, { size: stdout.length, bytes: stdout }), gitError);
  return { repository: "", ref, commit, within: null, size: stdout.length, object } satisfies StoredCommits;
});

/** Stores the contents. @returns the items with their sizes. */
const storeItems = Effect.fnUntraced(function* (
  path: string,
  items: readonly ListedItem[],
  part: PartWriter,
) {
  const objects = [...new Set(items.flatMap(({ object }) => object ?? []))];
  const process = yield* spawnGit({ repository: path, args: ["cat-file", "--batch"] });
  const sizes = new Map<string, number>();
  const contents = readContents(process, objects, new Set(objects));
  for (;;) {
    const next = yield* Effect.promise(() => contents.next());
    if (next.done === true) break;
    const { object, size, bytes } = next.value;
    if (bytes === null) continue;
    yield* Effect.mapError(part.add(object, { size, bytes }), gitError);
    sizes.set(object, size);
  }
  return items.map((item) => ({ ...item, size: sizes.get(item.object ?? "") ?? 0 }));
}, Effect.scoped);

/** Takes the saved commit into the store, as the session's last save. */
export const takeOldSave = Effect.fnUntraced(function* (store: SaveStore["Service"], old: OldSave) {
  const { path, place, sandboxId, wip, at, base } = old;
  const { rest, ref, head, branch } = yield* readParents(old);
  const { refs, left } = yield* restRefs(path, rest);
  const entries = yield* differences(path, base ?? EMPTY_TREE, wip);
  const files = entries.map((entry) => toItem(entry, { kind: "file" }));
  const leftOut: LeftOut[] = [
    ...left,
    ...entries
      .filter((_, index) => files[index] === null)
      .map((entry) => ({ path: entry.path, reason: "submodule" })),
  ];
  const tips = [
    ...(head === null ? [] : [{ ref, commit: head }]),
    ...(branch === null ? [] : [{ ref: `refs/heads/${place.sessionId}`, commit: branch }]),
    ...refs,
  ].filter((one, index, all) => all.findIndex((other) => other.ref === one.ref) === index);
  const { last } = yield* Effect.mapError(store.load(place), gitError);
  if (last !== null && last.sandboxId !== sandboxId) yield* Effect.mapError(store.setAside(place), gitError);
  const part = yield* Effect.mapError(store.part(place), gitError);
  const allItems = [...files.flatMap((item) => item ?? []), ...(yield* contentsOfRest(path, rest, head))];
  const items = yield* storeItems(path, allItems, part);
  const commits: StoredCommits[] = [];
  const pending: LeftOut[] = [];
  for (const one of tips) {
    const result = yield* storeCommits(old, { ...one, base, part });
    if (result === "too_large") pending.push({ path: one.ref, reason: "too_large" });
    else if (result !== null) commits.push(result);
  }
  const save = {
    sandboxId,
    at,
    base,
    head: { ref, commit: head },
    heads: [],
    items,
    commits,
    pending,
    skipped: leftOut,
  };
  yield* Effect.mapError(part.finish(save), gitError);
}, Effect.scoped);
