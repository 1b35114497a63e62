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

/** @param head the head branch's commit */
export const isApproval = (
  { kind, by, commit }: Verdict,
  { head, createdBy }: { readonly head: string; readonly createdBy: string | null },
): boolean => kind === "approval" && commit === head && by !== createdBy;
