/**
 * Who approves a change request. A person's newest verdict is hers. An approval counts for the commit that she saw: a push takes it away. Who
 * opened the request, herself or by her agent, does not approve it. An approval counts while its person may review: not after she is deactivated, or
 * has lost the role.
 */
import { POWERS, PRIVILEGES } from "../../../domain/person/privileges.ts";
import { type Lapse, type PersonNow, type ProjectRole, whyLapsed } from "../../../domain/person/role.ts";

/** The lowest role that may review. */
export const REVIEWER_ROLE: ProjectRole = POWERS[PRIVILEGES.review_change_request.power].role;

/** `comment` is not a verdict. */
export const REMARK_KINDS = ["comment", "approval", "changes_requested"] as const;
export type RemarkKind = (typeof REMARK_KINDS)[number];
export type VerdictKind = Exclude<RemarkKind, "comment">;

export interface Verdict extends PersonNow {
  readonly kind: VerdictKind;
  readonly by: string;
  readonly at: number;
  /** The head commit that the person saw. Null if the branch did not exist. */
  readonly commit: string | null;
}

interface Judged {
  /** The head branch's commit. */
  readonly head: string;
  readonly createdBy: string | null;
}

const LAPSED: Readonly<Record<Lapse, string>> = {
  user_deactivated: "this person is deactivated",
  role_lost: `this person no longer has the role ${REVIEWER_ROLE} in the project`,
};

/** Why an approval does not count, as the part of a sentence. Null if it counts. */
export const whyNotCounted = (
  { by, commit, ...person }: Omit<Verdict, "kind" | "at">,
  { head, createdBy }: Judged,
): string | null => {
  if (by === createdBy) return "who opens a request does not approve it";
  const lapse = whyLapsed(person, REVIEWER_ROLE);
  if (lapse !== null) return LAPSED[lapse];
  return commit === head ? null : "it is of an earlier commit";
};

export const isApproval = (verdict: Verdict, request: Judged): boolean =>
  verdict.kind === "approval" && whyNotCounted(verdict, request) === null;
