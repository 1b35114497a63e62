/**
 * Why a save or a restoration left something out. The API has codes, so that programs can tell them apart. Most of them
 * are words already. Page and command line show these words.
 */
export const LEFT_OUT_WORDS: Readonly<Record<string, string>> = {
  ignored: "ignored by git",
  directory: "a directory where git has a file",
  fifo: "a named pipe",
  worktree: "another worktree",
  limit: "no room within the limits",
  not_stored_yet: "no time for it yet",
  node_away: "the node with the saved work does not answer",
  missing: "the save lacks its content",
  staged_elsewhere: "staged on an older state of the branch, and kept in the save",
  newer_save: "a newer save has another version",
  unreadable_now: "unreadable now, and the save has an older version",
  refused_path: "git refuses to check out this path",
  history_too_large: "the agent runtime's own record of the conversation, which is too large to be saved",
  in_the_way: "something else is in its place",
};

/** A path's reason, and whether an earlier version of it is saved, in words. */
export const leftOutText = ({ reason, older }: { readonly reason: string; readonly older?: true }): string =>
  `${leftOutWords(reason)}${older === true ? ", and an earlier version is saved" : ""}`;

/** In words. Saves of earlier versions have sentences, which stay. */
export const leftOutWords = (reason: string): string =>
  Object.hasOwn(LEFT_OUT_WORDS, reason) ? (LEFT_OUT_WORDS[reason] ?? reason) : reason.replaceAll("_", " ");
