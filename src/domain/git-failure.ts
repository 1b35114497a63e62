/** The codes under which a repository's failure is reported (git/port.ts `GitError`), and stored with a refused merge. */
export const GIT_FAILURE_CODES = [
  "unknown_repository",
  "unknown_ref",
  "branch_conflict",
  "ref_moved",
  // A session's branch cannot be the default one.
  "reserved_branch",
  "import_failed",
  "file_too_large",
  "not_a_file",
  "timeout",
  // The node that has the repository cannot be reached now: nothing is known to have happened, and it passes.
  "away",
  // Of a repository that is kept elsewhere: its server cannot be reached, or does not do its work; it passes.
  "unavailable",
  // Its server said no: to the credential, or to what was asked.
  "refused",
  "git_failed",
] as const;
export type GitFailureCode = (typeof GIT_FAILURE_CODES)[number];
