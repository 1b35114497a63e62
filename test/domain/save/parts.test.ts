import { expect, test } from "vitest";
import type { ListedCommits, ListedItem } from "../../../src/domain/save/listing.ts";
import {
  compare,
  halves,
  joinSaves,
  namedFirst,
  PART_BYTES,
  PART_ITEMS,
  missingParts,
  Reasons,
  SMALL_BYTES,
  SMALL_PACK_BYTES,
  Stock,
  type Part,
} from "../../../src/domain/save/parts.ts";

const id = (seed: string): string => Buffer.from(seed).toString("hex").padEnd(40, "0").slice(0, 40);
const file = (path: string, size = 10, change: Partial<ListedItem> = {}): ListedItem => ({
  kind: "file",
  path,
  mode: "100644",
  size,
  object: id(path),
  ...change,
});
const gone = (path: string): ListedItem => file(path, 0, { mode: "000000", object: null });
const ref = (name: string, change: Partial<ListedCommits> = {}): ListedCommits => ({
  repository: "",
  ref: name,
  commit: id(name),
  within: null,
  size: 100,
  ...change,
});
const EMPTY = new Stock([]);
const names = (parts: readonly Part[]): string[] =>
  parts.flatMap((part) =>
    part.type === "commits" ? [part.commits.ref] : part.items.map(({ path }) => path),
  );

test("small commits come first, then small files by size, then all that is large by size", () => {
  const items = [
    file("huge", 90 * SMALL_BYTES),
    file("big", 2 * SMALL_BYTES),
    file("b", 20),
    file("a", 5),
    gone("removed"),
  ];
  const commits = [
    ref("long", { size: 50 * SMALL_PACK_BYTES }),
    ref("mid", { size: 90 }),
    ref("short", { size: 7 }),
  ];
  expect(names(missingParts({ items, commits }, EMPTY))).toEqual([
    "short",
    "mid",
    "a",
    "b",
    "big",
    "huge",
    "long",
  ]);
});

test("a part has a limit of bytes and of paths, and a larger file is a part of its own", () => {
  const many = Array.from({ length: PART_ITEMS + 1 }, (_, at) => file(`f${at}`, 1));
  expect(missingParts({ items: many, commits: [] }, EMPTY).map((part) => names([part]).length)).toEqual([
    PART_ITEMS,
    1,
  ]);
  const large = [file("x", PART_BYTES), file("y", PART_BYTES + 1), file("z", 1)];
  expect(missingParts({ items: large, commits: [] }, EMPTY).map((part) => names([part]))).toEqual([
    ["z"],
    ["x"],
    ["y"],
  ]);
});

test("stored contents are not asked for, equal contents once, and no pack of a ref within another", () => {
  const stock = new Stock([{ items: [file("kept")], commits: [{ ...ref("kept"), object: id("pack") }] }]);
  const items = [
    file("kept"),
    file("copy", 10, { object: id("kept") }),
    file("new"),
    file("twin", 10, { object: id("new") }),
  ];
  const commits = [ref("kept"), ref("renamed", { commit: id("kept") }), ref("same", { within: "kept" })];
  expect(names(missingParts({ items, commits }, stock))).toEqual(["new"]);
});

test("a part is divided until one path is left, and a ref is not divided", () => {
  const [part] = missingParts({ items: [file("a"), file("b"), file("c")], commits: [] }, EMPTY);
  expect(halves(part as Part).map((half) => names([half]))).toEqual([["a"], ["b", "c"]]);
  expect(halves({ type: "items", items: [file("a")], bytes: 10 })).toEqual([]);
  expect(halves({ type: "commits", commits: ref("x"), bytes: 1 })).toEqual([]);
});

const compared = (
  listing: {
    items?: readonly ListedItem[];
    commits?: readonly ListedCommits[];
    left?: Parameters<typeof compare>[0]["left"];
  },
  stock: Stock,
  former: Parameters<typeof compare>[1]["former"] = null,
  reasons = new Reasons(),
) => compare({ items: [], commits: [], left: [], ...listing }, { stock, former, reasons });

test("a listed path that is not stored is named with its reason, and stays as the former save has it", () => {
  const former = { items: [file("a", 1, { object: id("old") }), file("left")], commits: [] };
  const reasons = new Reasons();
  reasons.noteObject(id("a"), "limit");
  const found = compared({ items: [file("a"), file("b"), gone("c")] }, new Stock([former]), former, reasons);
  expect(found.items).toEqual([file("a", 1, { object: id("old") }), gone("c")]);
  expect(found.pending).toEqual([
    { path: "a", reason: "limit", older: true },
    { path: "b", reason: "not_stored_yet" },
  ]);
});

test("the same path in another stage or of another kind is another entry", () => {
  const former = { items: [file("a", 1, { kind: "index", stage: 2, object: id("old") })], commits: [] };
  const listed = file("a", 1, { kind: "index", stage: 3, object: id("new") });
  expect(compared({ items: [listed] }, EMPTY, former).items).toEqual([]);
});

test("a file that the agent cannot read any more stays as the former save has it", () => {
  const former = { items: [file("a"), file("d/b"), file("db"), file("clean")], commits: [] };
  const left = [
    { path: "a", reason: "unreadable" },
    { path: "d", reason: "unreadable" },
    { path: "new", reason: "unreadable" },
    { path: "clean", reason: "ignored", count: 1 },
  ];
  const found = compared({ left }, new Stock([former]), former);
  expect(found.items).toEqual([file("a"), file("d/b")]);
  expect(found.skipped.map(({ reason }) => reason)).toEqual([
    "unreadable_now",
    "unreadable_now",
    "unreadable",
    "ignored",
  ]);
});

test("a path that is not listed any more leaves the save", () => {
  const former = { items: [file("clean again")], commits: [{ ...ref("pushed now"), object: id("p") }] };
  expect(compared({}, new Stock([former]), former)).toEqual({
    items: [],
    commits: [],
    pending: [],
    skipped: [],
  });
});

test("a ref within another is stored with it, and only with the commit that was listed", () => {
  const commits = [ref("top"), ref("below", { within: "top" })];
  const stock = new Stock([]);
  expect(compared({ commits }, stock).pending.map(({ path }) => path)).toEqual(["top", "below"]);
  const older = { items: [], commits: [{ ...ref("top", { commit: id("older") }), object: id("p") }] };
  const stale = compared({ commits }, new Stock([older]), older);
  expect(stale.commits).toEqual(older.commits);
  expect(stale.pending.map(({ path }) => path)).toEqual(["top", "below"]);
  stock.addPack(ref("top"), id("pack"));
  const { commits: stored, pending } = compared({ commits }, stock);
  expect(pending).toEqual([]);
  expect(stored.map(({ ref: name, object }) => [name, object])).toEqual([
    ["top", id("pack")],
    ["below", null],
  ]);
});

test("a repository inside the workspace is named with its refs", () => {
  const { pending } = compared({ commits: [ref("refs/heads/x", { repository: "lib" })] }, EMPTY);
  expect(pending).toEqual([{ path: "lib: refs/heads/x", reason: "not_stored_yet" }]);
});

test("of many names the first stay, and the others are counted", () => {
  const left = [
    { path: "p1", reason: "limit" },
    { path: "p2", reason: "limit" },
    { path: "p3", reason: "limit" },
    { path: "p4", reason: "limit", count: 5 },
  ];
  expect(namedFirst(left, 2)).toEqual([...left.slice(0, 2), { path: "p3", reason: "limit", count: 6 }]);
  expect(namedFirst(left, 4)).toEqual(left);
});

test("of several saves together, each path is as the last one has it", () => {
  const older = { items: [file("a"), file("b")], commits: [{ ...ref("x"), object: id("p") }] };
  const newer = { items: [gone("a")], commits: [{ ...ref("x", { commit: id("y") }), object: id("q") }] };
  expect(joinSaves([older, newer])).toEqual({ items: [gone("a"), file("b")], commits: newer.commits });
});
