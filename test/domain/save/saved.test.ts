import * as Result from "effect/Result";
import * as Schema from "effect/Schema";
import { describe, expect, it, test } from "vitest";
import {
  countLeft,
  isSafe,
  isWhole,
  lackingWords,
  commitOfSaved,
  nodeOfSave,
  NOTHING_TO_SAVE,
  notRestored,
  notSaved,
  restoredWords,
  Saved,
  savedWords,
  savesElsewhere,
  unfinishedSave,
  type EarlierSave,
  type Restored,
} from "../../../src/domain/save/saved.ts";
import { LOST_WORK } from "../../../src/domain/save/shown.ts";

const WORK: Saved = { ...NOTHING_TO_SAVE, at: "2026-11-20T12:00:00.000Z", wip: "a", files: 2, commits: 1 };
const left = (path: string, reason: string) => ({ path, reason });
const BACK: Restored = { ...notRestored(""), wip: "a", files: 2, error: null };

test("a failed save names no commit and gives the reason", () => {
  const saved = notSaved("the daemon hung");
  expect(saved).toMatchObject({ state: "failed", wip: null, error: "the daemon hung" });
  expect(Result.isSuccess(Schema.decodeUnknownResult(Saved)(saved))).toBe(true);
});

test.each([
  ["nothing was ever saved", null, notSaved("lost")],
  ["a part of the last one", WORK, { ...WORK, state: "partial", error: "lost" }],
  ["the last one failed", notSaved("no"), notSaved("lost")],
])("a save that could not be made leaves what the last one has: %s", (_, last, expected) => {
  expect(unfinishedSave(last, "lost")).toEqual(expected);
});

test("saved work names its error, the missing paths, and files that its agent could not read", () => {
  const skipped = [left("node_modules", "ignored"), left("key", "unreadable")];
  expect([null, WORK, { ...WORK, skipped: skipped.slice(0, 1) }].map(lackingWords)).toEqual([
    null,
    null,
    null,
  ]);
  expect(lackingWords({ ...WORK, pending: [left("big", "limit")], skipped, error: "no room" })).toBe(
    "no room. No save has the newest version of big (no room within the limits), key (unreadable).",
  );
});

test("only a complete save is safe, and a sandbox that was never asked to save", () => {
  expect([null, WORK, unfinishedSave(WORK, "lost"), notSaved("no")].map(isSafe)).toEqual([
    true,
    true,
    false,
    false,
  ]);
});

test("a restoration with a problem is not whole", () => {
  const skipped = [{ path: "a", reason: "no room" }];
  expect([null, BACK, { ...BACK, error: "no" }, { ...BACK, skipped }].map(isWhole)).toEqual([
    false,
    true,
    false,
    false,
  ]);
});

test("a class of paths counts as many", () => {
  expect(
    countLeft([
      { path: "a", reason: "" },
      { path: "b", reason: "", count: 4 },
    ]),
  ).toBe(5);
});

test("a lost sandbox says what its last save has, and when it was made", () => {
  expect(savedWords(null)).toBe("No save of its work was made.");
  expect(savedWords(NOTHING_TO_SAVE)).toBe("It had nothing saved.");
  expect(savedWords({ ...NOTHING_TO_SAVE, wip: "a" })).toContain("its last stop");
  const nothing = { ...NOTHING_TO_SAVE, at: WORK.at };
  // The loss itself is noted before the sentence is made.
  expect(savedWords({ ...nothing, state: "partial", error: LOST_WORK })).toContain(
    "All of its work was pushed",
  );
  expect(savedWords({ ...nothing, state: "failed" })).toContain("Nothing unpushed is saved");
  const words = savedWords({ ...WORK, pending: [{ path: "b", reason: "no room" }] });
  expect(words).toContain("2026-11-20T12:00:00.000Z");
  expect(words).toContain("2 changed files and unpushed commits of 1 branch. 1 path was not saved.");
});

test("a note says what came back, under which names, and what did not and why", () => {
  expect(restoredWords(BACK)).toBe("Of the saved work, 2 files came back.");
  const words = restoredWords({
    ...BACK,
    refs: ["saved/main"],
    renamed: [{ path: "a.txt", as: "a.txt.saved" }],
    skipped: Array.from({ length: 25 }, (_, index) => ({ path: `p${index}`, reason: "no room" })),
    error: "the disk is full",
  });
  expect(words).toContain("Unpushed commits are on saved/main.");
  expect(words).toContain("a.txt is a.txt.saved");
  expect(words).toContain("p0 (no room)");
  expect(words).toContain("and 5 more");
  expect(words).toContain("the disk is full. The save stays.");
});

describe("saves on other nodes", () => {
  const AT = "2026-11-20T12:00:00.000Z";
  const row: Saved = { ...NOTHING_TO_SAVE, at: AT, files: 3, commits: 1, node: "far", sandbox: "first" };
  const here: Parameters<typeof savesElsewhere>[1] = { nodeId: "near", sandboxId: "second", hasAll: false };
  const leftThere = { id: "first", at: AT, files: 3, commits: 1, node: "far" };
  const earlier = { id: "zero", at: AT, files: 1, commits: 0 };

  it.each<[string, Saved | null, Partial<typeof here>, readonly EarlierSave[]]>([
    ["of another sandbox stay", row, {}, [leftThere]],
    ["of the same sandbox are in its new save", row, { sandboxId: "first" }, []],
    [
      "of the same sandbox stay while its new save lacks paths",
      row,
      { sandboxId: "first", isLacking: true },
      [leftThere],
    ],
    [
      "that stayed for that go with the next whole save",
      { ...row, node: "near", earlier: [leftThere] },
      { sandboxId: "first" },
      [],
    ],
    ["that were brought back are in the new save", row, { hasAll: true }, []],
    ["without content are none", { ...row, files: 0, commits: 0 }, {}, []],
    ["on this node are its own", row, { nodeId: "far" }, []],
    [
      "keep those that were left before",
      { ...row, earlier: [earlier] },
      {},
      [{ ...earlier, node: "far" }, leftThere],
    ],
    ["stay as they are named", { ...row, node: "near", earlier: [leftThere, earlier] }, {}, [leftThere]],
    [
      "stay if this node brought back its own",
      { ...row, node: "near", earlier: [leftThere, earlier] },
      { hasAll: true },
      [leftThere],
    ],
    [
      "stay if a third node brought back its own",
      { ...row, earlier: [earlier, { ...leftThere, node: "third" }] },
      { hasAll: true },
      [{ ...leftThere, node: "third" }],
    ],
    [
      "are in the new save if they were given too",
      { ...row, node: "near", earlier: [leftThere] },
      { hasAll: true, givers: ["far"] },
      [],
    ],
    ["are none before the first save", null, {}, []],
  ])("%s", (_, before, change, expected) => {
    expect(savesElsewhere(before, { ...here, ...change })).toEqual(expected);
  });

  it("are named to a sandbox that starts, also without a commit", () => {
    expect(commitOfSaved({ ...row, wip: "c0ffee" })).toBe("c0ffee");
    expect(commitOfSaved({ ...row, wip: null, files: 1 })).toBe("");
    expect(commitOfSaved({ ...NOTHING_TO_SAVE, earlier: [leftThere] })).toBe("");
    expect(commitOfSaved(NOTHING_TO_SAVE)).toBeNull();
    expect(commitOfSaved(null)).toBeNull();
  });

  it("decide where the work is: with the last save, else with the newest earlier one", () => {
    expect(nodeOfSave(row)).toBe("far");
    expect(nodeOfSave({ ...row, node: "near", earlier: [leftThere] })).toBe("near");
    expect(nodeOfSave({ ...row, node: "near", earlier: [leftThere] }, "first")).toBe("far");
    expect(nodeOfSave({ ...row, node: "near", earlier: [earlier] }, "zero")).toBe("near");
    expect(nodeOfSave({ ...NOTHING_TO_SAVE, earlier: [leftThere] })).toBe("far");
    expect(nodeOfSave(null)).toBeNull();
  });
});
