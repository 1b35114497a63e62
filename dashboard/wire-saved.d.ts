/** Saved work, as the API sends it. */
export interface Saved {
  wip: string | null;
  skipped: { path: string; reason: string }[];
  error: string | null;
}

export interface Restored {
  wip: string;
  commits: number;
  files: number;
  skipped: { path: string; reason: string }[];
  error: string | null;
}
