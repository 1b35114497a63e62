/** The workspace of a running session in the API. */

/** The changes in a running session's workspace. */
export interface WorkspaceChanges {
  base_commit: string;
  pushed_commit: string;
  head_commit: string;
  unpushed_commits: number;
  uncommitted_total: number;
  unpushed_total: number;
  files_changed_total: number;
  files_changed: {
    path: string;
    status: "added" | "modified" | "removed";
    state: "uncommitted" | "committed" | "pushed";
    additions: number;
    deletions: number;
  }[];
}

export interface WorkspaceEntry {
  name: string;
  kind: "file" | "directory" | "link" | "other";
  size: number | null;
}

export type WorkspaceFiles =
  | { kind: "directory"; entries: WorkspaceEntry[]; truncated: boolean }
  | { kind: "file"; size: number; text: string | null; truncated: boolean };
