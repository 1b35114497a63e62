/** The author of commits by the platform itself: a repository's first one, and merges. */

import { COMMIT_DOMAIN } from "../domain/repository/commit-author.ts";

const dateVariables = (
  role: "AUTHOR" | "COMMITTER",
  person: { readonly name: string; readonly email: string },
  at: number,
) => ({
  [`GIT_${role}_NAME`]: person.name,
  [`GIT_${role}_EMAIL`]: person.email,
  [`GIT_${role}_DATE`]: `@${Math.floor(at / 1000)} +0000`,
});

export const PLATFORM = { name: "Platform", email: `platform@${COMMIT_DOMAIN}` };

/** @param at the commit's date, ms since the epoch, in UTC. @returns the environment of git's `commit-tree`. */
export const platformIdentity = (at: number): Readonly<Record<string, string>> => ({
  ...dateVariables("AUTHOR", PLATFORM, at),
  ...dateVariables("COMMITTER", PLATFORM, at),
});

/** A commit that the platform makes for a person. */
export const authoredIdentity = (
  author: { readonly name: string; readonly email: string },
  at: number,
): Readonly<Record<string, string>> => ({
  ...dateVariables("AUTHOR", author, at),
  ...dateVariables("COMMITTER", PLATFORM, at),
});
