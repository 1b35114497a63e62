/** What a session says of its saved work, in sentences. Loaded with the panel that shows it. */
import { counted, pathCount, pathsAre, pathsOf, sentence } from "../elements/format.ts";
import { leftOutText } from "../../src/domain/save/reasons.ts";
import { hasContents } from "../../src/domain/save/shown.ts";

/** @typedef {import("../wire.d.ts").Session} Session */
/** @typedef {import("../wire.d.ts").Saved} Saved */
/** @typedef {Saved["pending"]} Paths */

/** How many paths a page lists. The API has more. */
const LISTED = 10;

/**
 * What a list shows: the first paths, each with its reason, and how many more there are.
 *
 * @param {Paths} paths
 * @returns {{lines: {path: string, more: number, reason: string}[], rest: number}}
 */
export const listedPaths = (paths) => ({
  lines: paths
    .slice(0, LISTED)
    .map(({ path, count = 1, ...why }) => ({ path, more: count - 1, reason: leftOutText(why) })),
  rest: pathCount(paths.slice(LISTED)),
});

/** @param {{files: number, commits: number}} work commits: how many branches and stashes have some */
export const contents = ({ files, commits }) =>
  [
    files > 0 && counted(files, "changed file"),
    commits > 0 && `commits of ${commits === 1 ? "1 branch" : `${commits} branches`}`,
  ]
    .filter((part) => part !== false)
    .join(" and ");

/**
 * The saved work, in a sentence around the instant of the last save.
 *
 * @param {Saved} saved
 * @returns {{before: string, at: string | null, after: string}}
 */
export const savedSentence = (saved) => {
  const { state, at, error, pending } = saved;
  // A save of an earlier version is not counted, and has no time.
  const stored = contents(saved) || (at === null ? "a commit" : "staged changes");
  const why = error === null ? "" : ` ${sentence(error)}`;
  if (!hasContents(saved)) {
    if (state === "complete")
      return at === null
        ? { before: "All work is pushed. There is nothing to save.", at, after: "" }
        : { before: "All work was pushed", at, after: ". There was nothing to save." };
    return { before: `Nothing is saved.${why}`, at: null, after: "" };
  }
  if (state === "complete") return { before: `The last save is complete: ${stored}`, at, after: "." };
  if (state === "failed")
    return { before: `The last save failed.${why} An earlier one has ${stored}`, at, after: "." };
  const missing = pending.length === 0 ? "" : ` ${pathsAre(pathCount(pending))} not.`;
  return { before: `Part of the work is saved: ${stored}`, at, after: `.${missing}${why}` };
};

/** How a stop that was carried out is told. @param {Session} session */
export const stopOutcome = ({ saved }) => {
  if (saved === null) return "The session was stopped.";
  if (saved.state === "complete")
    return `The session was stopped. ${hasContents(saved) ? "All unpushed work is saved." : "All work is pushed."}`;
  const missing = pathCount(saved.pending);
  return missing > 0
    ? `The session was stopped. ${pathsOf(missing)} could not be saved. The session's page lists them.`
    : "The session was stopped. Not all of its work could be saved. The session's page says why.";
};
