/** What a session says of its saved work, and of what a new sandbox brought back of it (saves.md 5, 6). */
import * as Schema from "effect/Schema";
import { LeftOut } from "./listing.ts";
import { leftOutText } from "./reasons.ts";
import { quantity } from "../counted.ts";

/** A save of an earlier sandbox that no sandbox has brought back whole. */
export const EarlierSave = Schema.Struct({
  id: Schema.String.annotate({ description: "The id of the sandbox that made it." }),
  at: Schema.String.annotate({ description: "When it was made, ISO 8601." }),
  files: Schema.Finite.annotate({ description: "How many changed, added and removed files it has." }),
  commits: Schema.Finite.annotate({ description: "How many refs with unpushed commits it has." }),
  node: Schema.optionalKey(Schema.String).annotate({
    description:
      "The node that has it, if that did not answer when newer work was saved on another. While it answers, the next restart brings this back too, and `git fetch` from its address gives it.",
  }),
});
export type EarlierSave = typeof EarlierSave.Type;

export const Saved = Schema.Struct({
  state: Schema.Literals(["complete", "partial", "failed"]).annotate({
    description:
      "`complete`: everything was saved or pushed when the last save ended. `partial`: all but `pending`, or later changes are lost, as `error` says. `failed`: nothing could be read or saved this time, and what an earlier save has stays.",
  }),
  at: Schema.NullOr(Schema.String).annotate({
    description:
      "When the last part was saved, ISO 8601. Without any work: when everything was seen to be pushed. Null if never, or by an earlier version.",
  }),
  wip: Schema.NullOr(Schema.String).annotate({
    description:
      "The commit that `git fetch origin refs/wip/{session id}` gives. Null if there is no saved work, or if the commit is made when somebody fetches it, as while the session runs and for large saves.",
  }),
  files: Schema.Finite.annotate({ description: "How many changed, added and removed files it has." }),
  commits: Schema.Finite.annotate({ description: "How many refs with unpushed commits it has." }),
  pending: Schema.Array(LeftOut).annotate({
    description:
      "The paths that the sandbox has and the save lacks, with reasons. At most 1,000 paths are named.",
  }),
  skipped: Schema.Array(LeftOut).annotate({
    description: "What no save takes, such as ignored files: the first path of each class, and their count.",
  }),
  error: Schema.NullOr(Schema.String).annotate({ description: "Why it is not complete. Null if it is." }),
  node: Schema.NullOr(Schema.String).annotate({ description: "The node that has it." }),
  sandbox: Schema.optionalKey(Schema.String).annotate({
    description:
      "The id of the sandbox that made it. Absent: nothing is saved, or an earlier version made it.",
  }),
  earlier: Schema.optionalKey(Schema.Array(EarlierSave)).annotate({
    description:
      "Saves of earlier sandboxes that no sandbox has brought back whole, the oldest first. They are restored too, until they are deleted.",
  }),
});
export type Saved = typeof Saved.Type;

/** What a new sandbox took back from a save. */
export const Restored = Schema.Struct({
  wip: Schema.NullOr(Schema.String).annotate({ description: "The saved commit that was restored." }),
  commits: Schema.Finite.annotate({
    description: "How many unpushed commits are on the session branch again.",
  }),
  refs: Schema.Array(Schema.String).annotate({
    description: "Refs that came back, under their own names or as `saved/{branch}`.",
  }),
  files: Schema.Finite.annotate({ description: "How many files were changed, added or removed." }),
  renamed: Schema.Array(Schema.Struct({ path: Schema.String, as: Schema.String })).annotate({
    description: "Files under another name, because the branch or a newer save has another version of them.",
  }),
  skipped: Schema.Array(LeftOut).annotate({ description: "What did not come back, with reasons." }),
  error: Schema.NullOr(Schema.String).annotate({
    description: "Why something, or all, was not restored. Null without a problem.",
  }),
  nodes: Schema.optionalKey(Schema.Array(Schema.String)).annotate({
    description: "Nodes that gave older saves, beside the one of `saved.node`.",
  }),
  notes: Schema.optionalKey(Schema.Array(Schema.String)).annotate({
    description:
      "Sentences on work that could not come back: earlier saves on nodes that do not answer, and what earlier saves never had.",
  }),
});
export type Restored = typeof Restored.Type;

/** What several deliveries of one restoration brought back, in their order. The last one knows all commits of the branch. */
export const restoredTogether = (first: Restored, next: Restored): Restored => ({
  ...next,
  files: first.files + next.files,
  refs: [...new Set([...first.refs, ...next.refs])],
  renamed: [...first.renamed, ...next.renamed],
  skipped: [...first.skipped, ...next.skipped],
  error: first.error ?? next.error,
  ...((first.notes ?? next.notes) !== undefined && {
    notes: [...(first.notes ?? []), ...(next.notes ?? [])],
  }),
});

/** A sandbox that has nothing beside what was pushed. */
export const NOTHING_TO_SAVE: Saved = {
  state: "complete",
  at: null,
  wip: null,
  files: 0,
  commits: 0,
  pending: [],
  skipped: [],
  error: null,
  node: null,
};

/**
 * The saves that stay on other nodes while one is made on this node: of work that another sandbox left there, and that this one lacks.
 * A save of the same sandbox is no longer needed once its new one lacks nothing.
 *
 * @param row what the session says so far
 * @param here this node, the sandbox that is saved, whether it has brought back everything, whether its new save lacks paths, and which
 *   other nodes gave saves then
 */
export const savesElsewhere = (
  row: Saved | null,
  here: {
    readonly nodeId: string;
    readonly sandboxId: string;
    readonly hasAll: boolean;
    readonly isLacking?: boolean;
    readonly givers?: readonly string[];
  },
): readonly EarlierSave[] => {
  if (row === null) return [];
  const { node, sandbox, at, files, commits } = row;
  const isThere = node !== null && node !== here.nodeId;
  /** Whether the new save has all of a former one. */
  const isReplaced = (id: string | undefined): boolean => id === here.sandboxId && here.isLacking !== true;
  const elsewhere = (row.earlier ?? []).flatMap((save) => {
    const on = save.node ?? node;
    // The node that the row names gave its saves, and perhaps others did.
    const isBack = here.hasAll && on !== null && (on === node || here.givers?.includes(on) === true);
    return on === null || on === here.nodeId || isBack || isReplaced(save.id)
      ? []
      : [Object.assign({}, save, { node: on })];
  });
  const isLast = isThere && !here.hasAll && !isReplaced(sandbox);
  if (!isLast || at === null || files + commits === 0) return elsewhere;
  return [...elsewhere, { id: sandbox ?? node, at, files, commits, node }];
};

/**
 * The commit of a session's saved work, for a sandbox that starts. Empty: there is saved work, and its commit is made when somebody
 * fetches it. Null if no work is saved.
 */
export const commitOfSaved = (saved: Saved | null): string | null => {
  if (saved === null) return null;
  const { wip, files, commits, earlier = [] } = saved;
  return wip ?? (files + commits + earlier.length > 0 ? "" : null);
};

/** The node with a session's saved work, or with one earlier save. Null if no node has any: the next save decides. */
export const nodeOfSave = (saved: Saved | null, earlierId?: string): string | null => {
  if (saved === null) return null;
  const { node, earlier = [] } = saved;
  if (earlierId !== undefined) return earlier.find(({ id }) => id === earlierId)?.node ?? node;
  return node ?? earlier.at(-1)?.node ?? null;
};

/** A failed save with its reason. */
export const notSaved = (reason: string): Saved => ({ ...NOTHING_TO_SAVE, state: "failed", error: reason });

/** A restoration that failed as a whole. */
export const notRestored = (reason: string): Restored => ({
  wip: null,
  commits: 0,
  refs: [],
  files: 0,
  renamed: [],
  skipped: [],
  error: reason,
});

/** The last save of a lost sandbox, as a sentence. */
export const savedWords = (saved: Saved | null): string => {
  if (saved === null) return "No save of its work was made.";
  if (saved.at === null)
    return saved.wip === null ? "It had nothing saved." : "Its last save is from its last stop.";
  const { at, files, commits, pending } = saved;
  const lacks = countLeft(pending);
  if (saved.state !== "failed" && files + commits + lacks === 0)
    return `All of its work was pushed at ${at}. Later changes are lost.`;
  const has = [
    ...(files === 0 ? [] : [quantity(files, "changed file", "changed files")]),
    ...(commits === 0 ? [] : [`unpushed commits of ${quantity(commits, "branch", "branches")}`]),
  ].join(" and ");
  const summary = has === "" ? "Nothing unpushed is saved" : `Kept from its last save at ${at}: ${has}`;
  const rest = lacks === 0 ? "" : ` ${quantity(lacks, "path was", "paths were")} not saved.`;
  return `${summary}.${rest} Later changes are lost.`;
};

/** How many names a sentence has. */
const NAMED = 20;

const listNames = (names: readonly string[], count = names.length): string => {
  const more = count - Math.min(names.length, NAMED);
  return `${names.slice(0, NAMED).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
};

const listedLeft = (left: readonly LeftOut[]): string =>
  listNames(
    left.map((one) => `${one.path} (${leftOutText(one)})`),
    countLeft(left),
  );

/** What a sandbox brought back, as the note in the conversation says it. */
export const restoredWords = ({ files, refs, renamed, skipped, error, notes = [] }: Restored): string =>
  [
    `Of the saved work, ${quantity(files, "file", "files")} came back.`,
    ...(refs.length === 0 ? [] : [`Unpushed commits are on ${listNames(refs)}.`]),
    ...(renamed.length === 0
      ? []
      : [
          `Something else is in the place of some files, so these have other names: ${listNames(renamed.map(({ path, as }) => `${path} is ${as}`))}.`,
        ]),
    ...(skipped.length === 0 ? [] : [`Not back: ${listedLeft(skipped)}.`]),
    ...(error === null ? [] : [`Not everything could be restored: ${error}. The save stays.`]),
    ...notes,
  ].join(" ");

/** How many paths these are. */
export const countLeft = (left: readonly LeftOut[]): number =>
  left.reduce((sum, { count = 1 }) => sum + count, 0);

/** Reasons by which a version of a file is in no save, although the save is complete. */
const UNREADABLE: ReadonlySet<string> = new Set(["unreadable", "unreadable_now"]);

/** What saved work lacks of what its sandbox had, as sentences for the next agent. Null if nothing does, as far as is known. */
export const lackingWords = (saved: Saved | null): string | null => {
  if (saved === null) return null;
  const { error } = saved;
  const words = [...(error === null ? [] : [`${error.replace(/\.$/, "")}.`]), ...lackingPaths(saved)];
  return words.length === 0 ? null : words.join(" ");
};

/** Whether a save lacks the newest version of a path. */
export const isLacking = ({ pending, skipped }: Pick<Saved, "pending" | "skipped">): boolean =>
  pending.length > 0 || skipped.some(({ reason }) => UNREADABLE.has(reason));

/** The paths whose newest version a save does not have, as a sentence. None: it has all. */
export const lackingPaths = ({ pending, skipped }: Pick<Saved, "pending" | "skipped">): readonly string[] => {
  const paths = [...pending, ...skipped.filter(({ reason }) => UNREADABLE.has(reason))];
  return paths.length === 0 ? [] : [`No save has the newest version of ${listedLeft(paths)}.`];
};

/** A save that stays, because its node does not answer. @param at when it was made, ISO 8601 */
export const awayWords = (at: string): string =>
  `The save of ${at} is not here, because its node does not answer. It stays, and the next restart asks for it again.`;

/** What a session says if a save could not be made: what the last one has stays. */
export const unfinishedSave = (last: Saved | null, error: string): Saved =>
  last === null ? notSaved(error) : { ...last, state: last.state === "failed" ? "failed" : "partial", error };

/** Whether a sandbox took everything back. */
export const isWhole = (restored: Restored | null): boolean =>
  restored !== null && restored.error === null && restored.skipped.length === 0;

/** Whether everything that a sandbox had is stored or pushed, so that it may go. */
export const isSafe = (saved: Saved | null): boolean => saved === null || saved.state === "complete";
