/**
 * Which refs a caller may write over git's HTTP (api.md 6, threats.md G09), and the protocol between git's hooks and
 * the service.
 *
 *  W1 Only a merge writes the default branch. The one exception is `mayReplaceInitialCommit`: a push may replace the
 *     empty commit of a new repository while it is the branch's only commit.
 *  W2 A session writes its own branch, forwards only, and its own `refs/wip/<sid>`. It deletes nothing.
 *  W3 A person writes any other branch and tags freely. A tag named like a session id can only be deleted. Branches named like a session id belong to sessions, whose
 *     sandboxes push to them without checking: a person may only fast-forward them, and may not create, rewind or
 *     delete them.
 *  W4 Every verdict is for one ref with its exact old and new commit. Git compares these again when it writes.
 *  W5 The default branch is read when the hooks ask, not when the request begins: a push may take an hour, and the
 *     default branch may change meanwhile.
 *  W6 No ref is created under a name that domain/repository/git-ref.ts refuses. A ref whose name is not UTF-8 cannot be written at
 *     all: its name would differ at the repository's server.
 *
 *  W7 A sandbox's push of a branch is refused if its new objects contain one of the sandbox's own tokens, which everyone who reads the
 *     repository could use. Its saved work, refs/wip, is not searched: a refused save would lose the work.
 *  W8 A person who pushes to the branches of sessions steers them: what they read there, as a plugin or instructions, she may have written.
 *     `steers` hears of it after the verdict and before the write. If it fails, nothing is written.
 *
 * Reading is not limited here: every credential that reaches a repository may read all of it.
 */
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import {
  foldedName,
  initialCommit,
  isMangled,
  isSessionBranch,
  parseBranchName,
} from "../../domain/repository/git-ref.ts";
import type { GitError } from "../port.ts";

/** What a push must not change, as of now. */
export interface Protection {
  /** More than one while the default branch changes. */
  readonly defaultBranches: readonly string[];
  readonly mayReplaceInitialCommit: boolean;
}

/** The author of a push. */
export type Writer =
  | { readonly kind: "session"; readonly sessionId: string }
  | { readonly kind: "user" }
  | { readonly kind: "none" };

/** What a credential may write. */
export interface WritePolicy {
  readonly writer: Writer;
  /** See W5. */
  readonly protection: Effect.Effect<Protection, GitError>;
  /** The live tokens of the sandbox that pushes (W7). Absent: no sandbox pushes. */
  readonly ownTokens?: readonly string[];
  /** See W8. Absent: the push steers no session. @param sessionIds the names of branches that have the form of a session's id */
  readonly steers?: (sessionIds: readonly string[]) => Effect.Effect<void, GitError>;
}

/** One ref of a push. Forty zeros mean "absent": as the old commit they make a creation, as the new one a deletion. */
export interface RefUpdate {
  readonly ref: string;
  readonly oldCommit: string;
  readonly newCommit: string;
  /** Whether the old commit is an ancestor of the new one. False for creations and deletions. */
  readonly fastForward: boolean;
}

export const absent = "0".repeat(40);
/** How many refs one push may contain: each costs a process. */
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
  const branch = parseBranchName(name);
  return Result.isFailure(branch) ? branch.failure.message : null;
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
    return `A session branch does not accept a forced push. Keep your files and put them on top of it: git fetch origin ${sessionId}, git reset --soft FETCH_HEAD, commit, and push.`;
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

const judgeTag = (tag: string, update: RefUpdate): string | null =>
  isSessionBranch(tag) && update.newCommit !== absent
    ? `A tag cannot be called ${tag}: git would confuse it with the session's branch. Choose another name.`
    : nameFault(tag, update);

/** @returns null if the update is allowed, otherwise the sentence that git shows to the pusher. */
export const judgeRefUpdate = (writer: Writer, protection: Protection, update: RefUpdate): string | null => {
  if (writer.kind === "none") return "This credential can read the repository but cannot push to it.";
  if (writer.kind === "session") return judgeSession(writer.sessionId, protection, update);
  if (update.ref.startsWith(branchPrefix)) {
    return judgeUserBranch(protection, update.ref.slice(branchPrefix.length), update);
  }
  if (update.ref.startsWith(tagPrefix)) return judgeTag(update.ref.slice(tagPrefix.length), update);
  return `${update.ref} is not a branch or a tag. You can push only branches and tags.`;
};

const oneLine = (text: string): string =>
  // oxlint-disable-next-line no-control-regex -- what a client put into a ref's name must not steer a terminal
  text.replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, "?");

const words = (sentences: readonly string[], last: string): string =>
  [...sentences.map((sentence) => `say ${oneLine(sentence)}`), last, ""].join("\n");

const reply = (accept: boolean, sentences: readonly string[]): string =>
  words(sentences, accept ? "accept" : "refuse");

/** Refuses a hook's question. */
export const refuseHook = (sentence: string): string => reply(false, [sentence]);

/**
 * Messages about an accepted push. Their last word is not a verdict: a hook that waits for a verdict reads it as a
 * refusal.
 */
export const sayings = (sentences: readonly string[]): string => words(sentences, "over");

const question = /^(ref|update) ([0-9a-f]{40}) ([0-9a-f]{40}) (forward|other) (.+)$/s;

/** The upstream server's answer to a push. */
export interface Forwarded {
  /** Why a ref was refused, by its name. Refs without an entry were accepted. */
  readonly refusals: ReadonlyMap<string, string>;
  /** Messages for the pusher. */
  readonly said: readonly string[];
}

/** Forwards the updates to the upstream server, all of them together if they are `atomic`. */
export type Forward = (
  updates: readonly RefUpdate[],
  /** `quarantine`: the name of the directory where their objects wait. Empty for deletions, which have none. */
  push: { readonly quarantine: string; readonly atomic: boolean },
) => Effect.Effect<Forwarded>;

/** The sessions whose branches a push will write. */
const steeredBy = (updates: readonly Announced[], isAtomic: boolean): readonly string[] => {
  const allowedUpdates = updates.filter(({ refusal }) => refusal === null);
  // If one ref of an atomic push is refused, nothing is written.
  if (isAtomic && allowedUpdates.length < updates.length) return [];
  return allowedUpdates.flatMap(({ update: { ref } }) => {
    const branch = ref.startsWith(branchPrefix) ? ref.slice(branchPrefix.length) : "";
    return isSessionBranch(branch) ? [branch] : [];
  });
};

interface Announced {
  update: RefUpdate;
  refusal: string | null;
}

/** The answer to `end`: whether any ref may be written. */
const verdict = (updates: readonly Announced[], answers: readonly string[]): string => {
  const refusals = updates.flatMap(({ refusal }) => refusal ?? []);
  return refusals.length === updates.length
    ? reply(false, [...answers, ...new Set(refusals)])
    : reply(true, answers);
};

const forwardUpdates = (
  updates: readonly Announced[],
  forward: Forward,
  push: Parameters<Forward>[1],
): string | Effect.Effect<string> => {
  const allowedUpdates = updates.filter(({ refusal }) => refusal === null);
  const ownRefusals = updates.flatMap(({ refusal }) => refusal ?? []);
  if (allowedUpdates.length === 0) return verdict(updates, []);
  // If one ref of an atomic push is refused, nothing is written.
  if (push.atomic && ownRefusals.length > 0) return reply(false, [...new Set(ownRefusals)]);
  if (new Set(allowedUpdates.map(({ update }) => update.ref)).size < allowedUpdates.length) {
    return reply(false, ["A push must not name the same ref twice."]);
  }
  return Effect.map(
    forward(
      allowedUpdates.map(({ update }) => update),
      push,
    ),
    ({ refusals, said }) => {
      for (const entry of allowedUpdates) entry.refusal = refusals.get(entry.update.ref) ?? null;
      return verdict(updates, said);
    },
  );
};

const asEffect = <E>(text: string | Effect.Effect<string, E>): Effect.Effect<string, E> =>
  typeof text === "string" ? Effect.succeed(text) : text;

const TOKEN_PUSHED =
  "The push contains this sandbox's own token: the value of PLATFORM_CLI_TOKEN or PLATFORM_TOKEN. Everyone who can read the repository could use " +
  "it. Remove it from every commit that you push, for example with an amended commit, and push again.";

/**
 * Answers the hooks of one push (hooks.ts), line by line. `quarantine …` names the directory where the objects wait.
 * `ref …` announces an update. `end` asks whether any update is allowed; if none is, git drops the push with its
 * objects still in quarantine. `update …` asks about one of them, and is refused unless exactly that update was
 * announced. With `forward`, the upstream server gets the updates first: `end` is answered after it has accepted them,
 * and its refusals are passed on.
 *
 * @param isAtomic whether the client asked for all refs or none; known before the hooks run.
 * @returns the answer to write back. Null if the line is not a question.
 */
export const pushJudge = (
  { writer, protection, ownTokens = [], steers }: WritePolicy,
  forward: Forward | null = null,
  isAtomic: () => boolean = () => false,
): ((line: string) => string | Effect.Effect<string> | null) => {
  const updates = new Map<string, Announced>();
  let quarantine: string | null = null;
  let hasOwnToken = false;
  /** Answers by the current protection. If it cannot be read, nothing is written. */
  const judging = (
    entries: readonly Announced[],
    answer: () => string | Effect.Effect<string, GitError>,
  ): Effect.Effect<string> =>
    protection.pipe(
      Effect.flatMap((now) => {
        // A refusal is final.
        for (const entry of entries)
          entry.refusal ??=
            judgeRefUpdate(writer, now, entry.update) ??
            (hasOwnToken && entry.update.ref.startsWith(branchPrefix) ? TOKEN_PUSHED : null);
        return asEffect(answer());
      }),
      Effect.catch(({ message }) => Effect.succeed(reply(false, [message]))),
    );
  return (line) => {
    if (line === "end") {
      if (updates.size > maxRefsPerPush) {
        return reply(false, [
          `A push can have at most ${maxRefsPerPush} refs. This push has ${updates.size}.`,
        ]);
      }
      const all = [...updates.values()];
      const steering = Effect.suspend(() => {
        const ids = steeredBy(all, isAtomic());
        return steers === undefined || ids.length === 0 ? Effect.void : steers(ids);
      });
      if (forward === null) return judging(all, () => Effect.as(steering, verdict(all, [])));
      if (quarantine === null) return reply(false, ["The push is not in quarantine."]);
      const push = { quarantine, atomic: isAtomic() };
      return judging(all, () => Effect.flatMap(steering, () => asEffect(forwardUpdates(all, forward, push))));
    }
    const place = /^quarantine ([\w-]*)$/.exec(line)?.[1];
    if (place !== undefined && updates.size === 0) {
      quarantine = place;
      return null;
    }
    if (line.startsWith("token ")) {
      // A text may go on behind the token.
      hasOwnToken ||= ownTokens.some((token) => line.startsWith(token, "token ".length));
      return null;
    }
    const [, verb, oldCommit, newCommit, course, ref] = question.exec(line) ?? [];
    if (oldCommit === undefined || newCommit === undefined || ref === undefined) {
      return reply(false, ["The push could not be understood."]);
    }
    const key = `${oldCommit} ${newCommit} ${ref}`;
    const entry = updates.get(key);
    if (verb === "ref") {
      // If a ref is announced twice, the stricter result counts.
      const fastForward = course === "forward" && (entry?.update.fastForward ?? true);
      const update = { ref, oldCommit, newCommit, fastForward };
      if (updates.size <= maxRefsPerPush) updates.set(key, { update, refusal: null });
      return null;
    }
    if (entry === undefined)
      return reply(false, ["The push changed while the service checked it. Push again."]);
    const answer = (): string => (entry.refusal === null ? reply(true, []) : reply(false, [entry.refusal]));
    // The upstream server has already accepted or refused it.
    return forward === null ? judging([entry], answer) : answer();
  };
};
