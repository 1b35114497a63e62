/**
 * Who approves a change request. A person's newest verdict is hers. An approval counts for the commit that she saw: a push takes it away. Who
 * opened the request, also by her agent, does not approve it.
 */

/** `comment` is no verdict. */
export const REMARK_KINDS = ["comment", "approval", "changes_requested"] as const;
export type RemarkKind = (typeof REMARK_KINDS)[number];
export type VerdictKind = Exclude<RemarkKind, "comment">;

export interface Verdict {
  readonly kind: VerdictKind;
  readonly by: string;
  readonly at: number;
  /** The head commit that the person saw. Null: the branch did not exist. */
  readonly commit: string | null;
}

interface Judged {
  /** The head branch's commit. */
  readonly head: string;
  readonly createdBy: string | null;
}

/** Why an approval does not count, as the part of a sentence. Null: it counts. */
export const whyNotCounted = (
  { by, commit }: Pick<Verdict, "by" | "commit">,
  { head, createdBy }: Judged,
): string | null => {
  if (by === createdBy) return "who opens a request does not approve it";
  return commit === head ? null : "it is of an earlier commit";
};

export const isApproval = (verdict: Verdict, request: Judged): boolean =>
  verdict.kind === "approval" && whyNotCounted(verdict, request) === null;
