/**
 * Who may write which ref over git's HTTP (api.md 6, threats.md G09), and the talk between git's hooks and the service.
 *
 *  W1 nothing but a merge writes the default branch. The one exception is `mayReplaceInitialCommit`: the empty commit a
 *     new repository starts with may be pushed away while it is the branch's only commit.
 *  W2 a session writes its own branch, forwards only, and its own `refs/wip/<sid>`; it deletes nothing.
 *  W3 a person writes any other branch and tags as they like. Branches named like a session id belong to sessions, whose
 *     sandboxes push to them without looking: a person may take them forward, and neither make, rewind nor delete them.
 *  W4 every verdict belongs to one ref and its exact old and new commit, which git compares again when it writes.
 *  W5 which branch is the default one is read when the hooks ask, not when the request began: a push may take an hour, and
 *     the default branch may change meanwhile.
 *  W6 no ref is made under a name that domain/git-ref.ts refuses, and none is touched whose name is not UTF-8: it would
 *     have another name at the repository's server.
 *
 * Reading is not limited here: every credential that reaches a repository may read all of it.
 */
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import { foldedName, isMangled, isSessionBranch, parseBranchName } from "../../domain/git-ref.ts";
import type { GitError } from "../port.ts";

/** What a push must leave alone, as it is now. */
export interface Protection {
  /** Several while the default branch changes. */
  readonly defaultBranches: readonly string[];
  readonly mayReplaceInitialCommit: boolean;
}

/** Who writes. */
export type Writer =
  | { readonly kind: "session"; readonly sessionId: string }
  | { readonly kind: "user" }
  | { readonly kind: "none" };

/** What a credential may write. */
export interface WritePolicy {
  readonly writer: Writer;
  /** Reads W5. */
  readonly protection: Effect.Effect<Protection, GitError>;
}

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
const tagPrefix = "refs/tags/";

const protects = ({ defaultBranches }: Protection, branch: string): boolean =>
  defaultBranches.some((name) => foldedName(name) === foldedName(branch));

const defaultBranchFault = (branch: string): string =>
  `You cannot push to the default branch ${branch}. Push another branch and open a change request.`;

/** W6. */
const nameFault = (name: string, update: RefUpdate): string | null => {
  if (isMangled(name)) return "The name of a ref is not valid UTF-8. Rename the ref, then push again.";
  if (update.oldCommit !== absent) return null;
  const parsed = parseBranchName(name);
  return Result.isFailure(parsed) ? parsed.failure.message : null;
};

const judgeSession = (sessionId: string, protection: Protection, update: RefUpdate): string | null => {
  const own = update.ref === `${branchPrefix}${sessionId}`;
  const wip = update.ref === `refs/wip/${sessionId}`;
  if (!own && !wip) {
    return `This session can push only to its own branch ${sessionId}, not to ${update.ref}.`;
  }
  if (own && protects(protection, sessionId)) return defaultBranchFault(sessionId);
  if (update.newCommit === absent) return "A session cannot delete its branch.";
  if (own && update.oldCommit !== absent && !update.fastForward) {
    return "A session branch does not accept a forced push. Pull first, then push without force.";
  }
  return null;
};

const judgeUserBranch = (protection: Protection, branch: string, update: RefUpdate): string | null => {
  if (protects(protection, branch)) {
    const replacesInitial =
      protection.mayReplaceInitialCommit &&
      protection.defaultBranches.includes(branch) &&
      update.oldCommit === initialCommit &&
      update.newCommit !== absent;
    return replacesInitial ? null : defaultBranchFault(branch);
  }
  if (isSessionBranch(branch) && !update.fastForward) {
    return `${branch} is a session branch. You can push new commits to it, but you cannot create, rewind or delete it.`;
  }
  return nameFault(branch, update);
};

/** @returns null where the update may be made, else the sentence that git shows to the person who pushes. */
export const judgeRefUpdate = (writer: Writer, protection: Protection, update: RefUpdate): string | null => {
  if (writer.kind === "none") return "This credential can read the repository but cannot push to it.";
  if (writer.kind === "session") return judgeSession(writer.sessionId, protection, update);
  if (update.ref.startsWith(branchPrefix)) {
    return judgeUserBranch(protection, update.ref.slice(branchPrefix.length), update);
  }
  if (update.ref.startsWith(tagPrefix)) return nameFault(update.ref.slice(tagPrefix.length), update);
  return `${update.ref} is not a branch or a tag. You can push only branches and tags.`;
};

const oneLine = (text: string): string =>
  // oxlint-disable-next-line no-control-regex -- what a client put into a ref's name must not steer a terminal
  text.replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, "?");

const words = (sentences: readonly string[], last: string): string =>
  [...sentences.map((sentence) => `say ${oneLine(sentence)}`), last, ""].join("\n");

const reply = (accept: boolean, sentences: readonly string[]): string =>
  words(sentences, accept ? "accept" : "refuse");

/** Refuses what a hook asks about. */
export const refuseHook = (sentence: string): string => reply(false, [sentence]);

/** What is said of a push that was taken. Its last word is no verdict: a hook that waits for one takes it for a refusal. */
export const sayings = (sentences: readonly string[]): string => words(sentences, "over");

const question = /^(ref|update) ([0-9a-f]{40}) ([0-9a-f]{40}) (forward|other) (.+)$/s;

/** What the server that keeps the repository made of a push. */
export interface Forwarded {
  /** Why a ref was not taken, by its name; refs without one were. */
  readonly refusals: ReadonlyMap<string, string>;
  /** For whoever pushes. */
  readonly said: readonly string[];
}

/** Hands the updates on to the server that keeps the repository, all of them together where they are `atomic`. */
export type Forward = (
  updates: readonly RefUpdate[],
  /** `quarantine`: the name of the directory in which their objects wait; empty for deletions, which bring none. */
  push: { readonly quarantine: string; readonly atomic: boolean },
) => Effect.Effect<Forwarded>;

interface Announced {
  update: RefUpdate;
  refusal: string | null;
}

/** The answer to `end`: whether any ref may be written. */
const verdict = (announced: readonly Announced[], said: readonly string[]): string => {
  const refused = announced.flatMap(({ refusal }) => refusal ?? []);
  return refused.length === announced.length
    ? reply(false, [...said, ...new Set(refused)])
    : reply(true, said);
};

const forwarded = (
  announced: readonly Announced[],
  forward: Forward,
  push: Parameters<Forward>[1],
): string | Effect.Effect<string> => {
  const allowed = announced.filter(({ refusal }) => refusal === null);
  const refused = announced.flatMap(({ refusal }) => refusal ?? []);
  if (allowed.length === 0) return verdict(announced, []);
  // What is to be written together is not begun where a part of it is refused.
  if (push.atomic && refused.length > 0) return reply(false, [...new Set(refused)]);
  if (new Set(allowed.map(({ update }) => update.ref)).size < allowed.length) {
    return reply(false, ["A push must not name the same ref twice."]);
  }
  return Effect.map(
    forward(
      allowed.map(({ update }) => update),
      push,
    ),
    ({ refusals, said }) => {
      for (const entry of allowed) entry.refusal = refusals.get(entry.update.ref) ?? null;
      return verdict(announced, said);
    },
  );
};

/**
 * Answers the hooks of one push (hooks.ts), line by line: `quarantine …` names where the objects wait, `ref …` announces
 * an update, `end` asks whether any may be made (if none may, git drops the push with its objects still in quarantine),
 * `update …` asks for one of them. What was not announced exactly so is refused. With `forward` the updates are the
 * other server's first: `end` is answered when it has taken them, and what it refused is refused.
 *
 * @param isAtomic whether the client asked for all refs or none; known before the hooks run.
 * @returns the answer to write back, null where the line asks nothing.
 */
export const pushJudge = (
  { writer, protection }: WritePolicy,
  forward: Forward | null = null,
  isAtomic: () => boolean = () => false,
): ((line: string) => string | Effect.Effect<string> | null) => {
  const announced = new Map<string, Announced>();
  let quarantine: string | null = null;
  /** Answers by what stands now; where nobody can say, nothing is written. */
  const judging = (
    entries: readonly Announced[],
    answer: () => string | Effect.Effect<string>,
  ): Effect.Effect<string> =>
    protection.pipe(
      Effect.flatMap((now) => {
        // What was refused once stays refused.
        for (const entry of entries) entry.refusal ??= judgeRefUpdate(writer, now, entry.update);
        const said = answer();
        return typeof said === "string" ? Effect.succeed(said) : said;
      }),
      Effect.catch(({ message }) => Effect.succeed(reply(false, [message]))),
    );
  return (line) => {
    if (line === "end") {
      if (announced.size > maxRefsPerPush) {
        return reply(false, [
          `A push can have at most ${maxRefsPerPush} refs. This push has ${announced.size}.`,
        ]);
      }
      const all = [...announced.values()];
      if (forward === null) return judging(all, () => verdict(all, []));
      if (quarantine === null) return reply(false, ["The push is not in quarantine."]);
      const push = { quarantine, atomic: isAtomic() };
      return judging(all, () => forwarded(all, forward, push));
    }
    const place = /^quarantine ([\w-]*)$/.exec(line)?.[1];
    if (place !== undefined && announced.size === 0) {
      quarantine = place;
      return null;
    }
    const [, verb, oldCommit, newCommit, course, ref] = question.exec(line) ?? [];
    if (oldCommit === undefined || newCommit === undefined || ref === undefined) {
      return reply(false, ["The push could not be understood."]);
    }
    const key = `${oldCommit} ${newCommit} ${ref}`;
    const known = announced.get(key);
    if (verb === "ref") {
      // Announced twice, it is what the worse of the two says.
      const fastForward = course === "forward" && (known?.update.fastForward ?? true);
      const update = { ref, oldCommit, newCommit, fastForward };
      if (announced.size <= maxRefsPerPush) announced.set(key, { update, refusal: null });
      return null;
    }
    if (known === undefined)
      return reply(false, ["The push changed while the service checked it. Push again."]);
    const answer = (): string => (known.refusal === null ? reply(true, []) : reply(false, [known.refusal]));
    // The other server has it already, or has refused it.
    return forward === null ? judging([known], answer) : answer();
  };
};
