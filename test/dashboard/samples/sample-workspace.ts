/** A workspace with a pushed file, a committed one and an uncommitted one. */
import type { FakeWorkspace } from "../fakes/fake-workspace.ts";

const DIFF = `diff --git a/bin/greet.sh b/bin/greet.sh
index 5f1a0c3..9b2e7d4 100755
--- a/bin/greet.sh
+++ b/bin/greet.sh
@@ -1,3 +1,4 @@
 #!/bin/sh
-echo "Hello"
+hour=$(date +%H)
+if [ "$hour" -lt 12 ]; then echo "Good morning"; else echo "Hello"; fi
 exit 0
diff --git a/notes/6113728.md b/notes/6113728.md
new file mode 100644
--- /dev/null
+++ b/notes/6113728.md
@@ -0,0 +1 @@
+# Initial commit
diff --git a/todo.txt b/todo.txt
new file mode 100644
--- /dev/null
+++ b/todo.txt
@@ -0,0 +1 @@
+Greet at night, too.
`;

const changed = (path: string, state: string, additions: number, deletions: number) => ({
  path,
  status: deletions > 0 ? "modified" : "added",
  state,
  additions,
  deletions,
});

/** The files of the repository, before the work. */
const PATHS = [
  ".opencode/command/release.md",
  "README.md",
  "LICENSE",
  "bin/greet.sh",
  "bin/release.sh",
  "docs/use/greeting.md",
  "docs/use/release-notes.md",
  "src/greeting/evening.ts",
  "src/greeting/morning.ts",
  "src/greeting/words.ts",
  "src/main.ts",
  "test/greeting/evening.test.ts",
  "test/greeting/morning.test.ts",
  "test/greeting/words.test.ts",
];

export const samplePaths = { commit: "1".repeat(40), paths: PATHS, total: PATHS.length };

const file = (name: string, size: number) => ({ name, kind: "file", size });
const directory = (name: string) => ({ name, kind: "directory", size: null });

export const sampleWorkspace: NonNullable<FakeWorkspace["workspace"]> = {
  changes: {
    base_commit: "1".repeat(40),
    pushed_commit: "2".repeat(40),
    head_commit: "3".repeat(40),
    unpushed_commits: 1,
    uncommitted_total: 1,
    unpushed_total: 2,
    files_changed_total: 3,
    files_changed: [
      changed("bin/greet.sh", "committed", 2, 1),
      changed("notes/6113728.md", "pushed", 1, 0),
      changed("todo.txt", "uncommitted", 1, 0),
    ],
  },
  diff: DIFF,
  files: {
    "": {
      kind: "directory",
      truncated: false,
      entries: [
        directory("bin"),
        directory("notes"),
        file("README.md", 312),
        { name: "latest", kind: "link", size: null },
        file("todo.txt", 21),
      ],
    },
    bin: { kind: "directory", truncated: false, entries: [file("greet.sh", 104)] },
    notes: { kind: "directory", truncated: false, entries: [] },
    "bin/greet.sh": {
      kind: "file",
      size: 104,
      text: '#!/bin/sh\nhour=$(date +%H)\nif [ "$hour" -lt 12 ]; then echo "Good morning"; else echo "Hello"; fi\nexit 0\n',
      truncated: false,
    },
  },
};
