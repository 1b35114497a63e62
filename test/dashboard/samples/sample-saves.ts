/** Saved work of sessions, for the page to show. */
type Json = Readonly<Record<string, unknown>>;

export const EARLIER_ID = "01995e90-5555-7a60-9a0d-cc4e8b1f7701";

const ago = (now: number, seconds: number) => new Date(now - seconds * 1000).toISOString();

/** Everything is saved. */
export const sampleSaved = (now: number, rest: Json = {}): Json => ({
  state: "complete",
  at: ago(now, 190),
  wip: "0d5a5e2f27ae82c7b1a177c8d03f9e96e0adf246",
  files: 3,
  commits: 1,
  pending: [],
  skipped: [{ path: "node_modules/", reason: "ignored", count: 4012 }],
  error: null,
  node: "node-1",
  ...rest,
});

export const PENDING = [
  {
    path: "data/dump-of-the-whole-production-database.sql",
    reason: "limit",
  },
  { path: "notes/today.md", reason: "changes_while_it_is_read" },
  { path: "assets/film-00001.mp4", reason: "not_stored_yet", count: 38 },
];

/** Some paths are missing, and two earlier saves wait for a sandbox. */
export const samplePartial = (now: number): Json =>
  sampleSaved(now, {
    state: "partial",
    pending: PENDING,
    error: "The project has 5 GiB of saved work, which is its limit.",
    earlier: [
      { id: EARLIER_ID, at: ago(now, 90_000), files: 12, commits: 2 },
      { id: "01995e90-5555-7a60-9a0d-cc4e8b1f7702", at: ago(now, 7_200), files: 1, commits: 0 },
    ],
  });

/** Not all came back. */
export const sampleRestored: Json = {
  wip: "0d5a5e2f27ae82c7b1a177c8d03f9e96e0adf246",
  commits: 1,
  files: 3,
  refs: ["saved/greeting", "experiment"],
  renamed: [{ path: "greet.sh", as: "greet.sh.saved" }],
  skipped: [{ path: "vendor/.git/config", reason: "refused_path" }],
  error: null,
};

/** An idle session waits for its save. */
export const sampleUnsaved = (now: number): Json => ({
  since: ago(now, 4_000),
  tries: 6,
  next_try_at: ago(now, -900),
});

export const sampleSizes = (sessions: readonly Json[]): Json => {
  const sizes = sessions.map(({ id, name, status }, index) => ({
    id,
    name,
    status,
    bytes: Math.round(734_003_200 / (index + 1) ** 4),
  }));
  return { bytes: sizes.reduce((sum, { bytes }) => sum + bytes, 0), sessions: sizes, away: [] };
};
