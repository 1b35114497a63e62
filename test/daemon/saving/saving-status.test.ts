/** What the workspace program reads from git's output. */
import { describe, expect, test } from "vitest";
import { withWithin } from "../../../daemon/saving/listing/commits.ts";
import { withoutRuntimes } from "../../../daemon/saving/listing/list.ts";
import { isStatePath } from "../../../daemon/saving/listing/operation.ts";
import {
  listedMode,
  readDifferences,
  readStatus,
  unreadableDirectories,
} from "../../../daemon/saving/listing/status.ts";

const [ONE, TWO, ABSENT] = ["1".repeat(40), "2".repeat(40), "0".repeat(40)];
const statusOf = (...records: readonly string[]) =>
  readStatus(Buffer.from([...records, ""].join("\0"), "latin1"));

const headAt = (oid: string, head: string) => statusOf(`# branch.oid ${oid}`, `# branch.head ${head}`).head;

describe("git's status", () => {
  test("says where HEAD is", () => {
    expect(headAt(ONE, "a/b")).toEqual({ ref: "refs/heads/a/b", commit: ONE });
    expect(headAt(ONE, "(detached)")).toEqual({ ref: null, commit: ONE });
    expect(headAt("(initial)", "main")).toEqual({ ref: "refs/heads/main", commit: null });
  });

  test("has changed paths, with any bytes in their names", () => {
    const { changes, untracked, ignored } = statusOf(
      `1 M. N... 100644 100755 100755 ${ONE} ${TWO} a \n\xff b`,
      `1 .D N... 100644 100644 000000 ${ONE} ${ONE} gone`,
      `1 D. N... 100644 000000 000000 ${ONE} ${ABSENT} out`,
      "? new dir/file",
      "? nested/",
      "! build/",
    );
    expect(changes).toMatchObject([
      { path: "a \n\xff b", head: { object: ONE }, index: { mode: "100755", object: TWO }, isStaged: true },
      { path: "gone", head: { object: ONE }, index: { object: ONE }, isStaged: false, mode: "000000" },
      { path: "out", index: null, isStaged: true },
    ]);
    expect([untracked, ignored]).toEqual([["new dir/file", "nested/"], ["build/"]]);
  });

  test("has the versions of a path in conflict", () => {
    const { changes } = statusOf(`u DU N... 100644 000000 100644 100644 ${ONE} ${ABSENT} ${TWO} both`);
    expect(changes).toEqual([
      {
        path: "both",
        head: null,
        index: null,
        isStaged: true,
        mode: "100644",
        stages: [
          { stage: 1, mode: "100644", object: ONE },
          { stage: 3, mode: "100644", object: TWO },
        ],
      },
    ]);
  });

  test("warns of directories that it cannot read", () => {
    const warnings = "warning: could not open directory 'a b/c/': Permission denied\nerror: another\n";
    expect(unreadableDirectories(warnings)).toEqual(["a b/c"]);
  });
});

test("a comparison of trees has the version before and after", () => {
  expect(
    readDifferences([
      `:100644 000000 ${ONE} ${ABSENT} D`,
      "gone",
      `:000000 120000 ${ABSENT} ${TWO} A`,
      "link",
    ]),
  ).toEqual([
    { path: "gone", before: { mode: "100644", object: ONE }, after: null },
    { path: "link", before: null, after: { mode: "120000", object: TWO } },
  ]);
});

test("a listing has the modes of files and links alone", () => {
  expect(["100644", "100755", "100664", "120000", "160000"].map(listedMode)).toEqual([
    "100644",
    "100755",
    "100644",
    "120000",
    null,
  ]);
});

test("a ref names another one that has its commits", () => {
  const parents = new Map([
    ["c", ["b"]],
    ["b", ["a"]],
    ["x", ["a"]],
  ]);
  const tips = [
    { ref: "one", commit: "b" },
    { ref: "two", commit: "c" },
    { ref: "same", commit: "c" },
    { ref: "other", commit: "x" },
  ];
  expect(withWithin(tips, parents).map(({ ref, within }) => [ref, within])).toEqual([
    ["one", "two"],
    ["two", null],
    ["same", "two"],
    ["other", null],
  ]);
});

test("only files of an operation under way are state", () => {
  for (const path of [
    "MERGE_HEAD",
    "MERGE_MSG",
    "rebase-merge/done",
    "sequencer/todo",
    "BISECT_LOG",
    "ORIG_HEAD",
  ])
    expect([path, isStatePath(path)]).toEqual([path, true]);
  for (const path of [
    "config",
    "hooks/x",
    "HEAD",
    "index",
    "rebase-merge/../config",
    "ORIG_HEAD/x",
    "",
    "AUTO_MERGE",
  ])
    expect([path, isStatePath(path)]).toEqual([path, false]);
});

test("files that the agent runtime made for itself are not counted as ignored", () => {
  const own = [".opencode/.gitignore", ".opencode/node_modules/", ".opencode/package.json"];
  expect(withoutRuntimes([...own, "build/", ".opencode/mine"])).toEqual(["build/", ".opencode/mine"]);
  expect(withoutRuntimes([".opencode/node_modules/"])).toEqual([".opencode/node_modules/"]);
});
