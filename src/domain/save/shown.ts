/** What page and command line conclude from a session's saved work, in the API's form. It has no imports, because browsers load it. */

interface Saved {
  readonly at: string | null;
  readonly wip: string | null;
  readonly files: number;
  readonly commits: number;
  readonly earlier?: readonly unknown[];
}

interface Session {
  readonly status: string;
  readonly saved: Saved | null;
  readonly restored: { readonly error: string | null } | null;
  readonly running_at: string | null;
}

/** Whether the last save has any work. The commit may be that of an earlier save. */
export const hasContents = ({ wip, files, commits, earlier = [] }: Omit<Saved, "at">): boolean =>
  files + commits > 0 || (wip !== null && earlier.length === 0);

/** Whether a session runs in a sandbox that began without its saved work. */
export const runsWithoutSave = ({ status, saved, restored, running_at: since }: Session): boolean =>
  status === "running" &&
  saved !== null &&
  hasContents(saved) &&
  saved.at !== null &&
  since !== null &&
  saved.at < since &&
  restored?.error !== null;
