/**
 * Who may write which ref over git's HTTP (api.md 6, threats.md G09), and the talk between git's hooks and the service.
 *
 *  W1 nothing but a merge writes the default branch. The one exception is `mayReplaceInitialCommit`: the empty commit a
 *     new repository starts with may be pushed away while it is the branch's only commit.
 *  W2 a session writes its own branch, forwards only, and its own `refs/wip/<sid>`; it deletes nothing.
 *  W3 a person writes any other branch and tags as they like. Branches named like a session id belong to sessions, whose
 *     sandboxes push to them without looking: a person may take them forward, and neither make, rewind nor delete them.
 *  W4 every verdict belongs to one ref and its exact old and new commit, which git compares again when it writes.
 *
 * Reading is not limited here: every credential that reaches a repository may read all of it.
 */
import * as Result from "effect/Result";
import { isSessionBranch, parseBranchName } from "../domain/git-ref.ts";

/** What a credential may write. */
export type WritePolicy =
  | { readonly kind: "session"; readonly sessionId: string }
  | { readonly kind: "user"; readonly defaultBranch: string; readonly mayReplaceInitialCommit: boolean }
  | { readonly kind: "none" };

/** One ref of a push; forty zeros stand for "absent": an old one makes a creation, a new one a deletion. */
export interface RefUpdate {
  readonly ref: string;
  readonly oldCommit: string;
  readonly newCommit: string;
  /** Whether the new commit has the old one among its ancestors; false for creations and deletions. */
  readonly fastForward: boolean;
}

export const absent = "0".repeat(40);
/** The commit every new hosted repository starts with: no files, no parent, fixed author and date, so one id for all. */
export const initialCommit = "ca89aa538e9ff24422381b6e1b6baab587ad24b8";
/** Refs one push may carry: each costs a process. */
export const maxRefsPerPush = 1000;

const branchPrefix = "refs/heads/";

const judgeSession = (sessionId: string, update: RefUpdate): string | null => {
  const own = update.ref === `${branchPrefix}${sessionId}`;
  const wip = update.ref === `refs/wip/${sessionId}`;
  if (!own && !wip) {
    return `This session may push to its own branch ${sessionId} only, not to ${update.ref}.`;
  }
  if (update.newCommit === absent) return "A session may not delete its branch.";
  if (own && update.oldCommit !== absent && !update.fastForward) {
    return "The session branch moves forward only: pull first, then push without force.";
  }
  return null;
};

const judgeUserBranch = (
  policy: Extract<WritePolicy, { kind: "user" }>,
  branch: string,
  update: RefUpdate,
): string | null => {
  if (branch === policy.defaultBranch) {
    const replacesInitial =
      policy.mayReplaceInitialCommit && update.oldCommit === initialCommit && update.newCommit !== absent;
    return replacesInitial
      ? null
      : `${branch} is the default branch: it changes only when a change request is merged. Push another branch and open one.`;
  }
  if (isSessionBranch(branch) && !update.fastForward) {
    return `${branch} belongs to a session: it can be moved forward, and neither made, rewound nor deleted by a push.`;
  }
  if (update.oldCommit === absent) {
    const parsed = parseBranchName(branch);
    if (Result.isFailure(parsed)) return parsed.failure.message;
  }
  return null;
};

/** @returns null where the update may be made, else the sentence that git shows to whoever pushes. */
export const judgeRefUpdate = (policy: WritePolicy, update: RefUpdate): string | null => {
  if (policy.kind === "none") return "This credential may read the repository and not push to it.";
  if (policy.kind === "session") return judgeSession(policy.sessionId, update);
  if (update.ref.startsWith(branchPrefix)) {
    return judgeUserBranch(policy, update.ref.slice(branchPrefix.length), update);
  }
  if (update.ref.startsWith("refs/tags/")) return null;
  return `${update.ref} is neither a branch nor a tag: only those can be pushed.`;
};

const oneLine = (text: string): string =>
  // oxlint-disable-next-line no-control-regex -- what a client put into a ref's name must not steer a terminal
  text.replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, "?");

const reply = (accept: boolean, sentences: readonly string[]): string =>
  [...sentences.map((sentence) => `say ${oneLine(sentence)}`), accept ? "accept" : "refuse", ""].join("\n");

const question = /^(ref|update) ([0-9a-f]{40}) ([0-9a-f]{40}) (forward|other) (.+)$/s;

/**
 * Answers the hooks of one push (hooks.ts), line by line: `ref …` announces an update, `end` asks whether any may be
 * made (if none may, git drops the push with its objects still in quarantine), `update …` asks for one of them. What
 * was not announced exactly so is refused.
 * @returns the answer to write back, null where the line asks nothing.
 */
export const pushJudge = (policy: WritePolicy): ((line: string) => string | null) => {
  const refusals = new Map<string, string | null>();
  return (line) => {
    if (line === "end") {
      if (refusals.size > maxRefsPerPush) {
        return reply(false, [`A push may carry ${maxRefsPerPush} refs, this one has ${refusals.size}.`]);
      }
      const sentences = [...refusals.values()];
      const refused = sentences.filter((sentence) => sentence !== null);
      return refused.length === sentences.length ? reply(false, [...new Set(refused)]) : reply(true, []);
    }
    const [, verb, oldCommit, newCommit, course, ref] = question.exec(line) ?? [];
    if (oldCommit === undefined || newCommit === undefined || ref === undefined) {
      return reply(false, ["The push could not be understood."]);
    }
    const key = `${oldCommit} ${newCommit} ${ref}`;
    if (verb === "ref") {
      const update = { ref, oldCommit, newCommit, fastForward: course === "forward" };
      // What was refused once stays refused, however often it is announced.
      if (refusals.size <= maxRefsPerPush)
        refusals.set(key, refusals.get(key) ?? judgeRefUpdate(policy, update));
      return null;
    }
    const refusal = refusals.get(key);
    if (refusal === undefined) return reply(false, ["The push changed while it was being judged."]);
    return refusal === null ? reply(true, []) : reply(false, [refusal]);
  };
};
