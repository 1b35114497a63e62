/** The words for what a session does, and the group of a list in which it stands. The older pages use them, too. */
export const ACTIVITIES = {
  queued: { word: "Queued", group: "working" },
  starting: { word: "Starting", group: "working" },
  working: { word: "Working", group: "working" },
  needs_you: { word: "Needs you", group: "needs_you" },
  ready_for_review: { word: "Ready for review", group: "ready_for_review" },
  resting: { word: "Resting", group: "done" },
  asleep: { word: "Asleep", group: "done" },
  failed: { word: "Failed", group: "needs_you" },
  done: { word: "Done", group: "done" },
} as const;
