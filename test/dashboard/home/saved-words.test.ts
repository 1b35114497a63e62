/** What the page says of saved work, without a page. */
import { describe, expect, it } from "vitest";
import { contents, listedPaths, savedSentence, stopOutcome } from "../../../dashboard/saved/report.ts";
import { pathCount } from "../../../dashboard/elements/format.ts";
import { isUnsafe, unsavedWords } from "../../../dashboard/saved/words.ts";
import { LOST_WORK, SKIPPED } from "../../../src/domain/save/shown.ts";
import type { Saved, Session } from "../../../dashboard/wire.d.ts";

const AT = "2026-11-20T12:00:00.000Z";
const saved = (rest: Partial<Saved> = {}): Saved => ({
  state: "complete",
  at: AT,
  wip: "0d5a5e2f27ae82c7b1a177c8d03f9e96e0adf246",
  files: 3,
  commits: 1,
  pending: [],
  skipped: [],
  error: null,
  node: "node-1",
  ...rest,
});
const EMPTY = { at: null, wip: null, files: 0, commits: 0, node: null };
const PENDING = [
  { path: "a", reason: "changes_while_it_is_read" },
  { path: "b", reason: "not_stored_yet", count: 1200 },
];
const words = (rest: Partial<Saved>): string => {
  const { before, at, after } = savedSentence(saved(rest));
  return `${before}${at === null ? "" : " (then)"}${after}`;
};

describe("the sentence for saved work", () => {
  it.each<[string, Partial<Saved>, string]>([
    ["all is saved", {}, "The last save is complete: 3 changed files and commits of 1 branch (then)."],
    ["all is pushed", EMPTY, "All work is pushed. There is nothing to save."],
    [
      "an earlier version has saved",
      { at: null, files: 0, commits: 0, node: null },
      "The last save is complete: a commit.",
    ],
    [
      "only an earlier save has work",
      { at: null, files: 0, commits: 0, node: null, earlier: [{ id: "s", at: AT, files: 1, commits: 0 }] },
      "All work is pushed. There is nothing to save.",
    ],
    [
      "only staged changes are saved",
      { files: 0, commits: 0 },
      "The last save is complete: staged changes (then).",
    ],
    [
      "the sandbox was lost in between",
      { state: "partial", error: "the sandbox was lost" },
      "Part of the work is saved: 3 changed files and commits of 1 branch (then). The sandbox was lost.",
    ],
    [
      "some is missing",
      { state: "partial", commits: 2, pending: PENDING, error: "the limit is reached" },
      "Part of the work is saved: 3 changed files and commits of 2 branches (then). 1,201 paths are not. The limit is reached.",
    ],
    [
      "the only save failed",
      { ...EMPTY, state: "failed", error: "the disk is full" },
      "Nothing is saved. The disk is full.",
    ],
    [
      "all of it is missing",
      { ...EMPTY, state: "partial", pending: PENDING, error: "The disk is full." },
      "Nothing is saved. The disk is full.",
    ],
    [
      "the last save failed",
      { state: "failed", commits: 0, error: "the disk is full" },
      "The last save failed. The disk is full. An earlier one has 3 changed files (then).",
    ],
  ])("says that %s", (_, rest, sentence) => expect(words(rest)).toBe(sentence));

  it("names one of two kinds alone", () => {
    expect(contents({ files: 1, commits: 0 })).toBe("1 changed file");
    expect(contents({ files: 0, commits: 1 })).toBe("commits of 1 branch");
  });
});

describe("the outcome of a stop", () => {
  it.each<[Saved | null, string]>([
    [null, "The session was stopped."],
    [saved(), "The session was stopped. All unpushed work is saved."],
    [saved(EMPTY), "The session was stopped. All work is pushed."],
    [
      saved({ state: "partial", pending: PENDING.slice(0, 1) }),
      "The session was stopped. 1 path could not be saved. The session's page lists them.",
    ],
    [
      saved({ ...EMPTY, state: "failed", error: "x" }),
      "The session was stopped. Not all of its work could be saved. The session's page says why.",
    ],
  ])("%#: is told truly", (work, sentence) => expect(stopOutcome({ saved: work } as Session)).toBe(sentence));
});

describe("a person is told", () => {
  const early = [{ path: "a", reason: "not_stored_yet" }];
  it.each<[boolean, Session["status"], Saved | null]>([
    [false, "running", null],
    [false, "running", saved()],
    [false, "running", saved({ state: "partial", pending: early })],
    [true, "running", saved({ state: "partial", pending: PENDING })],
    [true, "running", saved({ state: "partial", pending: early, error: "x" })],
    [true, "running", saved({ state: "failed" })],
    [false, "running", saved({ state: "partial", pending: PENDING, error: LOST_WORK })],
    [false, "running", saved({ state: "failed", error: SKIPPED })],
    [true, "failed", saved({ state: "partial", error: LOST_WORK })],
    [false, "stopped", saved()],
    [true, "stopped", saved({ state: "partial", pending: early })],
  ])("%s: %s, %j", (isTold, status, work) => expect(isUnsafe({ status, saved: work })).toBe(isTold));

  it("in a few words", () => {
    expect(unsavedWords(saved({ state: "partial", pending: PENDING }))).toBe("1,201 paths are not saved.");
    expect(unsavedWords(saved({ state: "failed" }))).toBe("The last save failed.");
    expect(unsavedWords(saved({ state: "partial" }))).toBe("Not all work is saved.");
  });
});

describe("a list of paths", () => {
  it("counts classes by their paths, and says how many are not listed", () => {
    const many = Array.from({ length: 15 }, (_, at) => ({ path: `p${at}`, reason: "r", count: at + 1 }));
    expect(pathCount(PENDING)).toBe(1201);
    const { lines, rest } = listedPaths(many);
    expect(lines).toHaveLength(10);
    expect(lines[1]).toEqual({ path: "p1", more: 1, reason: "r" });
    expect(rest).toBe(11 + 12 + 13 + 14 + 15);
  });
});
