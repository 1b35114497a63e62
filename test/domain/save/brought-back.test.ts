/** What stays of earlier saves when a part of them came back. */
import { expect, test } from "vitest";
import { notBroughtBack, withoutCopies } from "../../../src/domain/save/brought-back.ts";
import type { ListedItem } from "../../../src/domain/save/listing.ts";

const OBJECT = "a".repeat(40);
const item = (path: string, kind: ListedItem["kind"] = "file"): ListedItem => ({
  kind,
  path,
  mode: "100644",
  size: 1,
  object: OBJECT,
});
const commits = (ref: string, repository = "") => ({
  repository,
  ref,
  commit: OBJECT,
  within: null,
  size: 1,
  object: OBJECT,
});
const SAVE = {
  items: [item("back.txt"), item("left.txt"), item("MERGE_HEAD", "state")],
  commits: [commits("refs/heads/a"), commits("refs/heads/b", "inside")],
  heads: [{ repository: "inside", ref: "refs/heads/b", commit: OBJECT }],
};
const same = (path: string): string => path;
const named = (...paths: readonly string[]) => paths.map((path) => ({ path, reason: "not_written" }));

test("only the named paths stay, and commits if any of them did not come back", () => {
  expect(notBroughtBack([SAVE], named("left.txt", ".git/MERGE_HEAD"), same)).toEqual([
    { items: [item("left.txt"), item("MERGE_HEAD", "state")], commits: [], heads: [] },
  ]);
  expect(notBroughtBack([SAVE], named("inside: refs/heads/b"), same)).toEqual([{ ...SAVE, items: [] }]);
});

const masked = (path: string): string => path.replace("left", "***");

test("names are compared as the session shows them", () => {
  expect(notBroughtBack([SAVE], named("***.txt"), masked)).toMatchObject([{ items: [{ path: "left.txt" }] }]);
});

test("nothing is left out if a name is unknown, or stands for several", () => {
  expect(notBroughtBack([SAVE], named("left.txt", ".git/index"), same)).toBe(null);
  expect(notBroughtBack([SAVE], [{ path: "left.txt", reason: "unreadable", count: 2 }], same)).toBe(null);
});

test("an entry of the index that did not come back is not its file", () => {
  const staged = {
    ...SAVE,
    items: [item("a.txt"), item("a.txt", "index"), { ...item("b.txt", "index"), object: null }],
  };
  const left = ["a.txt", "b.txt"].map((path) => ({ path, reason: "staged_elsewhere" }));
  expect(notBroughtBack([staged], left, same)).toMatchObject([{ items: [item("a.txt", "index")] }]);
});

test("items that a newer save has, too, are left out, and commits only if it has all of them", () => {
  const newer = { ...SAVE, items: [item("back.txt"), { ...item("left.txt"), object: "b".repeat(40) }] };
  const rest = [item("left.txt"), item("MERGE_HEAD", "state")];
  expect(withoutCopies(SAVE, newer)).toEqual({ items: rest, commits: [], heads: [] });
  expect(withoutCopies(SAVE, { ...newer, commits: [commits("refs/heads/a")] })).toEqual({
    ...SAVE,
    items: rest,
  });
});
