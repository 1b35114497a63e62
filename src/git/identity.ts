/** The author of commits by the platform itself: a repository's first one, and merges. */

/** @param at the commit's date, ms since the epoch, in UTC. @returns the environment of git's `commit-tree`. */
export const platformIdentity = (at: number): Readonly<Record<string, string>> => {
  const person = {
    NAME: "Platform",
    EMAIL: "platform@platform.invalid",
    DATE: `@${Math.floor(at / 1000)} +0000`,
  };
  return Object.fromEntries(
    Object.entries(person).flatMap(([key, value]) => [
      [`GIT_AUTHOR_${key}`, value],
      [`GIT_COMMITTER_${key}`, value],
    ]),
  );
};
