/** The codes under which a repository's failure is reported (git/port.ts `GitError`), and stored with a refused merge. */
export const GIT_FAILURE_CODES = [
  "unknown_repository",
  "unknown_ref",
  "branch_conflict",
  "ref_moved",
  // A session's branch cannot be the default branch.
  "reserved_branch",
  "import_failed",
  "file_too_large",
  "not_a_file",
  "timeout",
  // The repository's node is unreachable now. The operation may or may not have happened. Temporary.
  "away",
  // The upstream server is unreachable or fails. Temporary.
  "unavailable",
  // The upstream server refused the credential, or the request.
  "refused",
  // The disk of this node's repositories is full. Temporary.
  "disk_full",
  "git_failed",
] as const;
export type GitFailureCode = (typeof GIT_FAILURE_CODES)[number];
