/** A change request in words: its verdicts, and what a merge still needs. */
import { counted } from "../elements/format.ts";
import type { Change, Remark } from "./request.ts";

export const VERDICTS: Readonly<Record<Remark["kind"], string>> = {
  comment: "",
  approval: "approved",
  changes_requested: "asked for changes",
};

type Decided = Pick<Change, "status" | "verdicts" | "approvals_required">;

/** What a merge still needs of people. Null: nothing. */
export const lackedApprovals = ({
  status,
  verdicts,
  approvals_required: required,
}: Decided): string | null => {
  const given = verdicts.filter(({ counts }) => counts).length;
  if (status !== "open" || given >= required) return null;
  return `A merge needs ${counted(required - given, given === 0 ? "approval" : "more approval")} of the newest commit.`;
};

type Judged = Pick<Change, "verdicts">;

const uncounted = ({ why_not: why }: Change["verdicts"][number]): string =>
  why === null ? "" : `, which does not count: ${why}`;

/** Who has decided what, and why an approval does not count. Null: no person has. */
export const verdictWords = ({ verdicts }: Judged): string | null => {
  const said = verdicts.map((verdict) => `${verdict.by.name} ${VERDICTS[verdict.kind]}${uncounted(verdict)}`);
  return said.length === 0 ? null : `${said.join("; ")}.`;
};

/** The answer of a person who was asked for a review. An approval of an earlier commit says so. */
export const answerWords = (
  { status, verdicts }: Pick<Change, "status" | "verdicts">,
  { id, answer }: Change["reviewers"][number],
): string => {
  if (answer === null) return status === "open" ? "is asked" : "did not answer";
  if (answer === "comment") return "commented";
  const verdict = verdicts.find(({ by }) => by.id === id);
  return `${VERDICTS[answer]}${verdict === undefined ? "" : uncounted(verdict)}`;
};

/** The people whose review is still waited for. Null: no review is. */
export const waitedFor = ({ reviewers }: Pick<Change, "reviewers">): string | null => {
  const names = reviewers.filter(({ answer }) => answer === null).map(({ name }) => name);
  return names.length === 0 ? null : `Waits for a review by ${names.join(", ")}.`;
};

type Warning = Change["warnings"][number];

export const warningPlace = ({ file, line }: Warning): string =>
  line === null ? file : `${file}, line ${line}`;

/** Names of branches may hold what a shell obeys. */
const word = (name: string): string =>
  /^[\w./-]+$/.test(name) ? name : `'${name.replaceAll("'", String.raw`'\''`)}'`;

/** The commands that resolve a conflict in a clone. */
export const conflictCommands = ({ base_ref: base, head_ref: head }: Change): string =>
  [
    "git fetch origin",
    `git switch ${word(head)}`,
    `git merge ${word(`origin/${base}`)}`,
    "# resolve the conflicts in the files above, then:",
    "git commit --all --no-edit",
    `git push origin ${word(head)}`,
  ].join("\n");

/** The message that asks an agent to solve a conflict. */
export const conflictAsk = ({ base_ref: base, conflicts }: Change): string => {
  const files = conflicts.length === 0 ? "" : ` in ${conflicts.slice(0, 5).join(", ")}`;
  return `Run git fetch origin, merge origin/${base} into your branch, resolve the conflicts${files}, commit, and push.`;
};
