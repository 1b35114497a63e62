/** What the daemon tells about a sandbox's workspace while the agent works in it. */
import * as Schema from "effect/Schema";
import { storableText } from "../text.ts";

/** As long as Linux takes them, in bytes. */
const PATH_MAX = 4096;

/**
 * Whether a relative path leads to something below the workspace. Nothing in `.git` counts, in any case of its letters. A
 * path that JSON and URLs cannot carry without loss does not count either.
 */
export const isInside = (path: string): boolean =>
  Buffer.byteLength(path) <= PATH_MAX &&
  storableText(path) === path &&
  path
    .split("/")
    .every((name) => name !== "" && name !== "." && name !== ".." && name.toLowerCase() !== ".git");

/** The commits with which the work is compared: full commit ids. */
export interface WorkspaceSides {
  /** Before the session's work. */
  readonly base: string;
  /** The newest pushed commit of the session's branch. */
  readonly pushed: string;
}

const Count = Schema.Finite.check(Schema.isInt(), Schema.isGreaterThanOrEqualTo(0));

const ChangedFile = Schema.Struct({
  path: Schema.String,
  status: Schema.Literals(["added", "modified", "removed"]),
  state: Schema.Literals(["uncommitted", "committed", "pushed"]).annotate({
    description:
      "Where its newest version is. `uncommitted`: only in the workspace. `committed`: in a commit that is not pushed.",
  }),
  additions: Count.annotate({ description: "Lines. 0 for a binary file, and for one of more than 10 MiB." }),
  deletions: Count,
});

export const WorkspaceChanges = Schema.Struct({
  base_commit: Schema.String.annotate({
    description: "The commit with which the workspace is compared, as a change request would be.",
  }),
  pushed_commit: Schema.String,
  head_commit: Schema.String,
  unpushed_commits: Count.annotate({ description: "At most 1,000." }),
  uncommitted_total: Count.annotate({ description: "How many files differ from the newest commit." }),
  unpushed_total: Count.annotate({ description: "How many files differ from the pushed commit." }),
  files_changed_total: Count.annotate({
    description: "The total number. `files_changed` lists the first 3,000.",
  }),
  files_changed: Schema.Array(ChangedFile),
}).annotate({ identifier: "WorkspaceChanges" });
export type WorkspaceChanges = typeof WorkspaceChanges.Type;
export type WorkspaceChangedFile = WorkspaceChanges["files_changed"][number];

const Entry = Schema.Struct({
  name: Schema.String,
  kind: Schema.Literals(["file", "directory", "link", "other"]).annotate({
    description:
      "Links are not followed. `other`: a device, a FIFO or a socket, or its name is not UTF-8. It cannot be read.",
  }),
  size: Schema.NullOr(Count).annotate({ description: "Of a file, in bytes." }),
});
export type WorkspaceEntry = typeof Entry.Type;

/** Directories first, then by name. At most 2,000 entries. */
export const WorkspaceDirectory = Schema.Struct({
  kind: Schema.Literal("directory"),
  entries: Schema.Array(Entry),
  truncated: Schema.Boolean.annotate({ description: "Whether it has more entries: 2,000 are listed." }),
}).annotate({ identifier: "WorkspaceDirectory" });
export type WorkspaceDirectory = typeof WorkspaceDirectory.Type;

export const WorkspaceFile = Schema.Struct({
  kind: Schema.Literal("file"),
  size: Count.annotate({ description: "In bytes." }),
  text: Schema.NullOr(Schema.String).annotate({ description: "Null if the file is not UTF-8 text." }),
  truncated: Schema.Boolean.annotate({
    description: "Whether the file is longer than the text, which has at most 1 MiB.",
  }),
}).annotate({ identifier: "WorkspaceFile" });
export type WorkspaceFile = typeof WorkspaceFile.Type;
