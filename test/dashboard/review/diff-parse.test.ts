import { describe, expect, it } from "vitest";
import { pairLines, parseDiff } from "../../../dashboard/diff/parse.ts";

const DIFF = String.raw`diff --git a/notes.md b/notes.md
new file mode 100644
index 0000000..1111111
--- /dev/null
+++ b/notes.md
@@ -0,0 +1,2 @@
+one
+diff --git a/x b/x
diff --git a/old name.sh b/new name.sh
similarity index 90%
rename from old name.sh
rename to new name.sh
--- a/old name.sh	
+++ b/new name.sh	
@@ -7,3 +7,3 @@ main() {
 same
--- removed
+++ added
\ No newline at end of file
diff --git "a/\303\244\t.md" "b/\303\244\t.md"
deleted file mode 100644
--- "a/\303\244\t.md"
+++ /dev/null
@@ -1 +0,0 @@
-x
diff --git a/a b/b b/a b/b
Binary files a/a b/b and b/a b/b differ
[The diff is longer than 1048576 bytes and was cut here.]
`;

describe("a diff", () => {
  it("is read as files with their paths, notes and counts", () => {
    const { files, cut } = parseDiff(DIFF);
    expect(files.map(({ path, from, note, added, removed }) => [path, from, note, added, removed])).toEqual([
      ["notes.md", null, "new file", 2, 0],
      ["new name.sh", "old name.sh", "", 1, 1],
      ["ä\t.md", null, "deleted", 0, 1],
      ["a b/b", null, "binary", 0, 0],
    ]);
    expect(cut).toBe("The diff is longer than 1048576 bytes and was cut here.");
  });

  it("has the numbers of its lines", () => {
    const [, renamed] = parseDiff(DIFF).files;
    expect(renamed?.lines.map(({ kind, before, after }) => [kind, before, after])).toEqual([
      ["hunk", null, null],
      ["same", 7, 7],
      ["removed", 8, null],
      ["added", null, 8],
      ["note", null, null],
    ]);
  });

  it("is read without heads too, and a diff without changes is empty", () => {
    const { files } = parseDiff("diff --git a/x b/x\n-old\n+new\n");
    expect(files.map(({ path, added, removed }) => [path, added, removed])).toEqual([["x", 1, 1]]);
    expect(parseDiff("\n")).toEqual({ files: [], cut: null });
  });

  it("has what was removed beside what was added", () => {
    const [file] = parseDiff("diff --git a/x b/x\n@@ -1,3 +1,2 @@\n-a\n-b\n+c\n same\n+d\n").files;
    const rows = pairLines(file?.lines ?? []).map((row) => row.map((line) => line?.text ?? null));
    expect(rows).toEqual([
      ["@@ -1,3 +1,2 @@", "@@ -1,3 +1,2 @@"],
      ["-a", "+c"],
      ["-b", null],
      [" same", " same"],
      [null, "+d"],
    ]);
  });
});
