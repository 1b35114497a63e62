/** What a session says of its saved work, in sentences. Loaded with the panel that shows it. */
import { counted, pathCount, pathsAre, pathsOf, sentence } from "../elements/format.ts";
import { leftOutText } from "../../src/domain/save/reasons.ts";
import { hasContents } from "../../src/domain/save/shown.ts";
import type { Saved, Session } from "../wire.d.ts";

/** How many paths a page lists. The API has more. */
const LISTED = 10;

interface ListedPaths {
  readonly lines: readonly { readonly path: string; readonly more: number; readonly reason: string }[];
  readonly rest: number;
}

/** What a list shows: the first paths, each with its reason, and how many more there are. */
export const listedPaths = (paths: Saved["pending"]): ListedPaths => ({
  lines: paths
    .slice(0, LISTED)
    .map(({ path, count = 1, ...why }) => ({ path, more: count - 1, reason: leftOutText(why) })),
  rest: pathCount(paths.slice(LISTED)),
});

/** @param work `commits`: how many branches and stashes have some */
export const contents = ({ files, commits }: { readonly files: number; readonly commits: number }): string =>
  [
    files > 0 && counted(files, "changed file"),
    commits > 0 && `commits of ${counted(commits, "branch", "branches")}`,
  ]
    .filter((part) => part !== false)
    .join(" and ");

interface Sentence {
  readonly before: string;
  readonly at: string | null;
  readonly after: string;
}

/** The saved work, in a sentence around the instant of the last save. */
export const savedSentence = (saved: Saved): Sentence => {
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

/** How a stop that was carried out is told. */
export const stopOutcome = ({ saved }: Pick<Session, "saved">): string => {
  if (saved === null) return "The session was stopped.";
  if (saved.state === "complete")
    return `The session was stopped. ${hasContents(saved) ? "All unpushed work is saved." : "All work is pushed."}`;
  const missing = pathCount(saved.pending);
  return missing > 0
    ? `The session was stopped. ${pathsOf(missing)} could not be saved. The session's page lists them.`
    : "The session was stopped. Not all of its work could be saved. The session's page says why.";
};
