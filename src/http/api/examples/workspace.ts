/** Examples of the operations that read a session's workspace. */
import { BASE_COMMIT, COMMIT } from "./records.ts";

export const WORKSPACE_EXAMPLES = {
  "sessions.workspaceChanges": {
    summary: "Show what the workspace of a running session has changed, pushed or not.",
    response: {
      base_commit: BASE_COMMIT,
      pushed_commit: BASE_COMMIT,
      head_commit: COMMIT,
      unpushed_commits: 1,
      uncommitted_total: 1,
      unpushed_total: 1,
      files_changed_total: 1,
      files_changed: [
        { path: "src/checkout.ts", status: "modified", state: "uncommitted", additions: 4, deletions: 1 },
      ],
    },
  },
  "sessions.workspaceDiff": {
    summary: "Show the diff of what the workspace of a running session has changed.",
    response:
      "diff --git a/src/checkout.ts b/src/checkout.ts\n--- a/src/checkout.ts\n+++ b/src/checkout.ts\n@@ -1 +1,2 @@\n",
  },
  "sessions.workspaceFiles": {
    summary: "List a directory of a running session's workspace, or show a file's text.",
    response: {
      kind: "directory",
      entries: [
        { name: "src", kind: "directory", size: null },
        { name: "README.md", kind: "file", size: 312 },
      ],
      truncated: false,
    },
  },
};
