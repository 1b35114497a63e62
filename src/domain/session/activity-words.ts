/** What people read of a session's activity, on the page and at the command line. The page loads this file, so it imports nothing. */

/** The word, and the group of a list in which the session stands. */
export const ACTIVITY_WORDS = {
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

const STOP_WORDS: Readonly<Record<string, string>> = {
  user_deactivated: "the person who started it was deactivated",
  made_room: "it rested, and made room for a session that waited",
  outdated: "its sandbox was too old for the upgraded service",
};

/** Why it was stopped. The service's other reasons are words. */
export const stopWords = (reason: string): string => STOP_WORDS[reason] ?? reason;

/** A group of a list of sessions. Its word is that of the activity with its name. */
export type ActivityGroup = (typeof ACTIVITY_WORDS)[keyof typeof ACTIVITY_WORDS]["group"];

/** The activities of a group, as the parameter `activity` of a list has them. */
export const activitiesIn = (group: ActivityGroup): string =>
  Object.entries(ACTIVITY_WORDS)
    .filter(([, activity]) => activity.group === group)
    .map(([name]) => name)
    .join(",");
