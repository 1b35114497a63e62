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

/** What a session says of the work of a sandbox that ended by itself. */
export const LOST_WORK = "The sandbox ended by itself. Changes since the last save are lost.";
/** An end without a save leaves what the last one has. */
export const SKIPPED = "The stop made no save. Changes since the last save are lost.";

/**
 * Whether a shortage is of a sandbox that has ended, so that a session that lives again lacks nothing that it still had.
 *
 * @param error of the saved work
 */
export const isOfEnded = (error: string | null): boolean => error === LOST_WORK || error === SKIPPED;

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
