import { describe, expect, it } from "vitest";
import {
  absent,
  initialCommit,
  judgeRefUpdate,
  maxRefsPerPush,
  pushJudge,
  sayings,
  type RefUpdate,
  type WritePolicy,
} from "../../src/git/ref-policy.ts";

const sessionId = "0190a5a0-0000-7000-8000-000000000001";
const [a, b] = ["a".repeat(40), "b".repeat(40)];
const session: WritePolicy = { kind: "session", sessionId };
const user: WritePolicy = { kind: "user", defaultBranch: "main", mayReplaceInitialCommit: false };
const owner: WritePolicy = { kind: "user", defaultBranch: "main", mayReplaceInitialCommit: true };

const courses: Record<"make" | "forward" | "rewind" | "delete", Omit<RefUpdate, "ref">> = {
  make: { oldCommit: absent, newCommit: b, fastForward: false },
  forward: { oldCommit: a, newCommit: b, fastForward: true },
  rewind: { oldCommit: a, newCommit: b, fastForward: false },
  delete: { oldCommit: a, newCommit: absent, fastForward: false },
};

/** Which of the four courses each policy allows on each ref; every cell that is not named is refused. */
const allowed: readonly (readonly [string, WritePolicy, string, readonly (keyof typeof courses)[]])[] = [
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
  ["user", user, `refs/wip/${sessionId}`, []],
  ["user", user, "refs/replace/x", []],
  ["user", user, "HEAD", []],
  ["owner of a used repository", owner, "refs/heads/main", []],
  ["nobody", { kind: "none" }, "refs/heads/feature", []],
];

const cells = allowed.flatMap(([who, policy, ref, courseNames]) =>
  (["make", "forward", "rewind", "delete"] as const).map(
    (course) => [who, course, ref, courseNames.includes(course), policy] as const,
  ),
);

describe("the write policy", () => {
  it.each(cells)("%s, %s %s: allowed %s [G09]", (_, course, ref, isAllowed, policy) => {
    const refusal = judgeRefUpdate(policy, { ref, ...courses[course] });
    expect(refusal === null).toBe(isAllowed);
    expect(refusal ?? "Allowed.").toMatch(/^\S.*\.$/);
  });

  it("lets the initial commit alone be replaced, and not be deleted", () => {
    const replace = { ref: "refs/heads/main", oldCommit: initialCommit, newCommit: b, fastForward: false };
    expect(judgeRefUpdate(owner, replace)).toBeNull();
    expect(judgeRefUpdate(user, replace)).not.toBeNull();
    expect(judgeRefUpdate(owner, { ...replace, newCommit: absent })).not.toBeNull();
  });
});

describe("what is said of a push that was taken", () => {
  it("is no verdict, and puts no control character on the pusher's terminal", () => {
    expect(sayings(["See \u001b[2J", "accept"])).toBe("say See ?[2J\nsay accept\nover\n");
  });
});

describe("the judge of a push", () => {
  const branch = `refs/heads/${sessionId}`;

  it("drops a push of which no ref may be written, naming every reason once", () => {
    const judge = pushJudge(session);
    expect(judge(`ref ${absent} ${b} other refs/heads/main`)).toBeNull();
    expect(judge(`ref ${a} ${absent} other ${branch}`)).toBeNull();
    expect(judge(`ref ${a} ${absent} other refs/wip/${sessionId}`)).toBeNull();
    expect(judge("end")).toBe(
      `say This session may push to its own branch ${sessionId} only, not to refs/heads/main.\n` +
        "say A session may not delete its branch.\nrefuse\n",
    );
  });

  it("lets a push with a good ref through and answers for each ref", () => {
    const judge = pushJudge(session);
    judge(`ref ${absent} ${b} other refs/heads/main`);
    judge(`ref ${a} ${b} forward ${branch}`);
    expect(judge("end")).toBe("accept\n");
    expect(judge(`update ${a} ${b} other ${branch}`)).toBe("accept\n");
    expect(judge(`update ${absent} ${b} other refs/heads/main`)).toMatch(/^say .+\nrefuse\n$/);
  });

  it("refuses what was not announced exactly so, and what it cannot read", () => {
    const judge = pushJudge(session);
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

  it("keeps a refusal whatever is announced after it", () => {
    const judge = pushJudge(session);
    for (const course of ["other", "forward"]) judge(`ref ${a} ${b} ${course} ${branch}`);
    expect(judge("end")).toMatch(/refuse\n$/);
    expect(judge(`update ${a} ${b} other ${branch}`)).toMatch(/refuse\n$/);
  });

  it("refuses a push that announces nothing, or too much", () => {
    expect(pushJudge(user)("end")).toBe("refuse\n");
    const judge = pushJudge(user);
    for (let n = 0; n <= maxRefsPerPush; n += 1) judge(`ref ${absent} ${b} other refs/heads/n${n}`);
    expect(judge("end")).toMatch(/^say A push may carry 1000 refs.*\nrefuse\n$/);
  });

  it("puts no control character of a ref's name on the pusher's terminal", () => {
    const judge = pushJudge(session);
    judge(`ref ${absent} ${b} other refs/heads/\u001b[2Jx`);
    expect(judge("end")).toContain("refs/heads/?[2Jx");
  });
});
