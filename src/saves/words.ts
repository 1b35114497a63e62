/** What a session says of its saves, for people: paths as text, without secrets, and not too many. */
import type { LeftOut } from "../domain/save/listing.ts";
import { namedFirst } from "../domain/save/parts.ts";
import type { Redactor } from "../domain/secret/redactor.ts";
import {
  NOTHING_TO_SAVE,
  unfinishedSave,
  type EarlierSave,
  type Restored,
  type Saved,
} from "../domain/save/saved.ts";
import { storableText } from "../domain/text.ts";
import type { Save } from "./store.ts";

/** Bytes as latin1 text become text that a row can have. */
export const shownText =
  (redactor: Pick<Redactor, "redact">) =>
  (path: string): string =>
    redactor.redact(storableText(Buffer.from(path, "latin1").toString("utf8")));

const shownLeft =
  (text: (path: string) => string) =>
  (left: readonly LeftOut[]): readonly LeftOut[] =>
    namedFirst(left).map(({ path, ...rest }) => Object.assign(rest, { path: text(path) }));

const fileCount = ({ items }: Pick<Save, "items">): number =>
  items.filter(({ kind }) => kind === "file").length;

const earlierSave = (save: Save): EarlierSave => ({
  id: save.sandboxId,
  at: new Date(save.at).toISOString(),
  files: fileCount(save),
  commits: save.commits.length,
});

/** The state after a save, or in the middle of one. */
export interface Outcome {
  /** The stored save. */
  readonly last: Save | null;
  /** Oldest first. */
  readonly earlier: readonly Save[];
  /** The paths that the sandbox has and the save lacks. Null if the sandbox could not be asked. */
  readonly pending: readonly LeftOut[] | null;
  readonly error: string | null;
  /** The commit by which people fetch it. */
  readonly wip: string | null;
  readonly nodeId: string;
  /** When the sandbox was asked, ms since the epoch. Null if it was not. */
  readonly lookedAt: number | null;
  /** The saves that other nodes have (domain/save/saved.ts). */
  readonly elsewhere: readonly EarlierSave[];
}

export const isEmptySave = (save: Save | null): boolean =>
  save === null || save.items.length + save.commits.length === 0;

/** Whether everything is stored, some of it, or nothing could be asked for. */
const savedState = ({ last, pending, error }: Outcome): Saved["state"] => {
  if (pending === null && error !== null) return "failed";
  return (pending ?? last?.pending ?? []).length === 0 ? "complete" : "partial";
};

/** Without any work, when that was seen. */
const savedTime = ({ last, lookedAt }: Outcome, state: Saved["state"]): string | null => {
  const at = state === "complete" && isEmptySave(last) ? (lookedAt ?? last?.at) : last?.at;
  return at === undefined ? null : new Date(at).toISOString();
};

export const savedWords = (outcome: Outcome, redactor: Pick<Redactor, "redact">): Saved => {
  const { last, earlier: here, elsewhere, wip, nodeId, error } = outcome;
  const earlier = [...elsewhere, ...here.map(earlierSave)];
  const text = shownText(redactor);
  const left = shownLeft(text);
  const state = savedState(outcome);
  return {
    state,
    at: savedTime(outcome, state),
    wip,
    files: last === null ? 0 : fileCount(last),
    commits: last?.commits.length ?? 0,
    pending: left(outcome.pending ?? last?.pending ?? []),
    skipped: left(last?.skipped ?? []),
    // A part that failed and was stored at the second attempt is no error.
    error: state === "complete" || error === null ? null : redactor.redact(storableText(error)),
    node: isEmptySave(last) && here.length === 0 ? null : nodeId,
    ...(last !== null && !isEmptySave(last) && { sandbox: last.sandboxId }),
    ...(earlier.length > 0 && { earlier }),
  };
};

/** A session's words while its saves do not answer: those of its row, and all that the sandbox has. */
export const unreachedWords = (
  outcome: {
    readonly last: Saved | null;
    readonly pending: readonly LeftOut[];
    readonly skipped: readonly LeftOut[];
    readonly error: string;
  },
  redactor: Pick<Redactor, "redact">,
): Saved => {
  const { last, pending, skipped, error } = outcome;
  const left = shownLeft(shownText(redactor));
  if (pending.length === 0)
    return {
      ...(last ?? NOTHING_TO_SAVE),
      state: "complete",
      pending: [],
      skipped: left(skipped),
      error: null,
    };
  const failure = unfinishedSave(last, redactor.redact(storableText(error)));
  return { ...failure, pending: left(pending), skipped: left(skipped) };
};

/** What a save lacks, for people. */
export const shownLack = (
  { pending, skipped }: Pick<Save, "pending" | "skipped">,
  redactor: Pick<Redactor, "redact">,
) => {
  const left = shownLeft(shownText(redactor));
  return { pending: left(pending), skipped: left(skipped) };
};

/** A daemon's answer, for people. */
export const restoredWords = (
  restored: Restored,
  { wip, redactor }: { readonly wip: string | null; readonly redactor: Pick<Redactor, "redact"> },
): Restored => {
  const text = shownText(redactor);
  return {
    ...restored,
    wip,
    refs: restored.refs.map(text),
    renamed: restored.renamed.map(({ path, as }) => ({ path: text(path), as: text(as) })),
    skipped: shownLeft(text)(restored.skipped),
    error: restored.error === null ? null : redactor.redact(storableText(restored.error)),
    ...(restored.notes !== undefined && {
      notes: restored.notes.map((note) => redactor.redact(storableText(note))),
    }),
  };
};
