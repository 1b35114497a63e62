import * as Effect from "effect/Effect";
import { describe, expect, it } from "vitest";
import { initialCommit } from "../../../src/domain/repository/git-ref.ts";
import { GitError } from "../../../src/git/port.ts";
import {
  absent,
  judgeRefUpdate,
  maxRefsPerPush,
  pushJudge,
  sayings,
  type RefUpdate,
  type Protection,
  type Writer,
} from "../../../src/git/server/ref-policy.ts";

const sessionId = "0190a5a0-0000-7000-8000-000000000001";
const [a, b] = ["a".repeat(40), "b".repeat(40)];
const main: Protection = { defaultBranches: ["main"], mayReplaceInitialCommit: false };
const session: Writer = { kind: "session", sessionId };
const user: Writer = { kind: "user" };

const courses: Record<"make" | "forward" | "rewind" | "delete", Omit<RefUpdate, "ref">> = {
  make: { oldCommit: absent, newCommit: b, fastForward: false },
  forward: { oldCommit: a, newCommit: b, fastForward: true },
  rewind: { oldCommit: a, newCommit: b, fastForward: false },
  delete: { oldCommit: a, newCommit: absent, fastForward: false },
};

/** Which of the four courses each policy allows on each ref; every cell that is not named is refused. */
const allowed: readonly (readonly [string, Writer, string, readonly (keyof typeof courses)[]])[] = [
  ["session", session, `refs/heads/${sessionId}`, ["make", "forward"]],
  ["session", session, `refs/wip/${sessionId}`, ["make", "forward", "rewind"]],
  ["session", session, `refs/wip/${sessionId}/x`, []],
  ["session", session, "refs/heads/main", []],
  ["session", session, "refs/heads/feature", []],
  ["session", session, "refs/tags/v1", []],
  ["session", session, "refs/notes/commits", []],
  ["session", session, "refs/heads/0190a5a0-0000-7000-8000-000000000002", []],
  ["session", session, "HEAD", []],
  ["user", user, "refs/heads/main", []],
  ["user", user, "refs/heads/feature", ["make", "forward", "rewind", "delete"]],
  ["user", user, "refs/heads/main/x", ["make", "forward", "rewind", "delete"]],
  ["user", user, `refs/heads/${sessionId}`, ["forward"]],
  ["user", user, "refs/heads/HEAD", ["forward", "rewind", "delete"]],
  ["user", user, "refs/heads/-x", ["forward", "rewind", "delete"]],
  ["user", user, "refs/tags/v1", ["make", "forward", "rewind", "delete"]],
  ["user", user, "refs/notes/commits", []],
  ["user", user, `refs/tags/${sessionId}`, ["delete"]],
  ["user", user, `refs/wip/${sessionId}`, []],
  ["user", user, "refs/heads/MAIN", []],
  ["user", user, "refs/heads/x\u200b", ["forward", "rewind", "delete"]],
  ["user", user, "refs/heads/\ufffd\ufffd", []],
  ["user", user, "refs/tags/\ufffd", []],
  ["user", user, "refs/tags/refs/heads/main", ["forward", "rewind", "delete"]],
  ["user", user, "refs/tags/HEAD", ["forward", "rewind", "delete"]],
  ["user", user, "refs/replace/x", []],
  ["user", user, "HEAD", []],
  ["reader", { kind: "none" }, "refs/heads/feature", []],
];

const cells = allowed.flatMap(([who, writer, ref, courseNames]) =>
  (["make", "forward", "rewind", "delete"] as const).map(
    (course) => [who, course, ref, courseNames.includes(course), writer] as const,
  ),
);

describe("the write policy", () => {
  it.each(cells)("%s, %s %s: allowed %s [G09]", (_, course, ref, isAllowed, writer) => {
    const refusal = judgeRefUpdate(writer, main, { ref, ...courses[course] });
    expect(refusal === null).toBe(isAllowed);
    expect(refusal ?? "Allowed.").toMatch(/^\S.*\.$/);
  });

  it("says after an amend how to put the work on top of the branch, without a conflict with itself", () => {
    const ref = `refs/heads/${sessionId}`;
    expect(judgeRefUpdate(session, main, { ref, ...courses.rewind })).toContain(
      `git fetch origin ${sessionId}, git reset --soft FETCH_HEAD, commit, and push.`,
    );
  });

  it("lets only the initial commit be replaced, and does not let the branch be deleted", () => {
    const replace = { ref: "refs/heads/main", oldCommit: initialCommit, newCommit: b, fastForward: false };
    const fresh = { ...main, mayReplaceInitialCommit: true };
    expect(judgeRefUpdate(user, fresh, replace)).toBeNull();
    expect(judgeRefUpdate(user, main, replace)).not.toBeNull();
    expect(judgeRefUpdate(user, fresh, { ...replace, newCommit: absent })).not.toBeNull();
    for (const course of Object.values(courses))
      expect(judgeRefUpdate(user, fresh, { ref: "refs/heads/main", ...course })).not.toBeNull();
  });

  it("lets no session write a default branch that has the session branch's name", () => {
    const protection = { ...main, defaultBranches: [sessionId] };
    const forward = { ref: `refs/heads/${sessionId}`, ...courses.forward };
    expect(judgeRefUpdate(session, protection, forward)).toContain("cannot push to the default branch");
    expect(judgeRefUpdate(user, protection, forward)).toContain("cannot push to the default branch");
  });
});

describe("the message about an accepted push", () => {
  it("is not a verdict, and puts no control character on the pusher's terminal", () => {
    expect(sayings(["See \u001b[2J", "accept"])).toBe("say See ?[2J\nsay accept\nover\n");
  });
});

/** The judge, its answers as they come; `protection` is asked each time. */
const judgeOf = (
  writer: Writer,
  protection: () => Effect.Effect<Protection, GitError> = () => Effect.succeed(main),
) => {
  const judge = pushJudge({ writer, protection: Effect.suspend(protection) });
  return (line: string): string | null => {
    const answer = judge(line);
    return Effect.isEffect(answer) ? Effect.runSync(answer) : answer;
  };
};

/** The answer to a push of one ref in which the hooks found the text. */
const answers = (found: string, ref: string) => {
  const judge = pushJudge({
    writer: session,
    protection: Effect.succeed(main),
    ownTokens: ["platform_pat_own"],
  });
  judge(`token ${found}`);
  judge(`ref ${a} ${b} forward ${ref}`);
  const answer = judge("end");
  return Effect.isEffect(answer) ? Effect.runSync(answer) : answer;
};

describe("the push policy hook", () => {
  const branch = `refs/heads/${sessionId}`;

  it("rejects a push without any writable ref, and names every reason once", () => {
    const judge = judgeOf(session);
    expect(judge(`ref ${absent} ${b} other refs/heads/main`)).toBeNull();
    expect(judge(`ref ${a} ${absent} other ${branch}`)).toBeNull();
    expect(judge(`ref ${a} ${absent} other refs/wip/${sessionId}`)).toBeNull();
    expect(judge("end")).toBe(
      `say This session can push only to its own branch ${sessionId}, not to refs/heads/main.\n` +
        "say A session cannot delete its branch.\nrefuse\n",
    );
  });

  it("lets a push with an allowed ref through and answers for each ref", () => {
    const judge = judgeOf(session);
    judge(`ref ${absent} ${b} other refs/heads/main`);
    judge(`ref ${a} ${b} forward ${branch}`);
    expect(judge("end")).toBe("accept\n");
    expect(judge(`update ${a} ${b} other ${branch}`)).toBe("accept\n");
    expect(judge(`update ${absent} ${b} other refs/heads/main`)).toMatch(/^say .+\nrefuse\n$/);
  });

  it("refuses a sandbox's branch with its own token, and not its saved work or another token", () => {
    expect(answers("platform_pat_own", branch)).toMatch(
      /^say The push contains this sandbox's own token.+\nrefuse\n$/,
    );
    expect(answers("platform_pat_own-and-more", branch)).toMatch(/refuse\n$/);
    expect(answers("platform_pat_other", branch)).toBe("accept\n");
    expect(answers("platform_pat_own", `refs/wip/${sessionId}`)).toBe("accept\n");
  });

  /** A person's push to a session's branch, a branch and main. @returns the answer, and the steered sessions */
  const steering = (isAtomic: boolean, fails = false) => {
    const steered: string[] = [];
    const steers = (ids: readonly string[]) =>
      Effect.suspend(() => {
        steered.push(...ids);
        return fails
          ? Effect.fail(new GitError({ code: "unavailable", message: "Push again." }))
          : Effect.void;
      });
    const policy = { writer: { kind: "user" }, protection: Effect.succeed(main), steers } as const;
    const judge = pushJudge(policy, null, () => isAtomic);
    judge(`ref ${a} ${b} forward ${branch}`);
    judge(`ref ${a} ${b} forward refs/heads/other`);
    judge(`ref ${a} ${b} forward refs/heads/main`);
    const answer = judge("end");
    return { steered, answer: Effect.isEffect(answer) ? Effect.runSync(answer) : answer };
  };

  it("tells whose sessions a person steers before it accepts, and refuses if that fails", () => {
    expect(steering(false)).toEqual({ steered: [sessionId], answer: "accept\n" });
    // One of its refs is refused, so nothing is written.
    expect(steering(true).steered).toEqual([]);
    expect(steering(false, true)).toEqual({ steered: [sessionId], answer: "say Push again.\nrefuse\n" });
  });

  it("refuses refs that were not announced exactly, and input that it cannot read", () => {
    const judge = judgeOf(session);
    judge(`ref ${a} ${b} forward ${branch}`);
    judge("end");
    const strange = [
      `update ${b} ${a} other ${branch}`,
      `update ${a} ${b} other ${branch}x`,
      "update",
      "",
      "say accept",
    ];
    for (const line of strange) expect(judge(line), line).toMatch(/refuse\n$/);
  });

  it("keeps a refusal regardless of later announcements", () => {
    const judge = judgeOf(session);
    for (const course of ["other", "forward"]) judge(`ref ${a} ${b} ${course} ${branch}`);
    expect(judge("end")).toMatch(/refuse\n$/);
    expect(judge(`update ${a} ${b} other ${branch}`)).toMatch(/refuse\n$/);
  });

  it("asks for the default branch at the end of a push and at each of its refs", () => {
    let now = main;
    const judge = judgeOf(user, () => Effect.succeed(now));
    const next = `${a} ${b} other refs/heads/next`;
    judge(`ref ${next}`);
    now = { ...main, defaultBranches: ["next"] };
    expect(judge("end")).toContain("the default branch next");
    const late = judgeOf(user, () => Effect.succeed(now));
    now = main;
    late(`ref ${next}`);
    expect(late("end")).toBe("accept\n");
    now = { ...main, defaultBranches: ["next"] };
    expect(late(`update ${next}`)).toContain("the default branch next");
    now = main;
    expect(late(`update ${next}`)).toMatch(/refuse\n$/);
  });

  it("refuses the push if the default branch is unknown", () => {
    const judge = judgeOf(user, () =>
      Effect.fail(new GitError({ code: "unavailable", message: "Push again." })),
    );
    judge(`ref ${a} ${b} other refs/heads/next`);
    expect(judge("end")).toBe("say Push again.\nrefuse\n");
    expect(judge(`update ${a} ${b} other refs/heads/next`)).toBe("say Push again.\nrefuse\n");
  });

  it("refuses a push that announces nothing, or too much", () => {
    expect(judgeOf(user)("end")).toBe("refuse\n");
    const judge = judgeOf(user);
    for (let n = 0; n <= maxRefsPerPush; n += 1) judge(`ref ${absent} ${b} other refs/heads/n${n}`);
    expect(judge("end")).toMatch(/^say A push can have at most 1000 refs.*\nrefuse\n$/);
  });

  it("puts no control character of a ref's name on the pusher's terminal", () => {
    const judge = judgeOf(session);
    judge(`ref ${absent} ${b} other refs/heads/\u001b[2Jx`);
    expect(judge("end")).toContain("refs/heads/?[2Jx");
  });
});
