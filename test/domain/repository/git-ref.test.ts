import * as Result from "effect/Result";
import * as fc from "fast-check";
import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import {
  isCommitId,
  isSessionBranch,
  maxRefNameBytes,
  parseBaseRef,
  parseBranchName,
  parseDefaultBranch,
  type RefFault,
} from "../../../src/domain/repository/git-ref.ts";

const refused: readonly (readonly [string, RefFault["code"]])[] = [
  ["", "empty"],
  ["a".repeat(maxRefNameBytes + 1), "too_long"],
  ["ä".repeat(maxRefNameBytes / 2 + 1), "too_long"],
  ["--upload-pack=touch x", "forbidden_character"],
  ["--upload-pack=x", "option"],
  ["-x", "option"],
  ["-", "option"],
  ["HEAD", "pseudo_ref"],
  ["FETCH_HEAD", "pseudo_ref"],
  ["ORIG_HEAD", "pseudo_ref"],
  ["@", "pseudo_ref"],
  ["refs/heads/x", "full_ref_path"],
  ["refs/tags/v1", "full_ref_path"],
  ["refs", "full_ref_path"],
  ["a..b", "revision_syntax"],
  ["a...b", "revision_syntax"],
  ["@{-1}", "revision_syntax"],
  ["main@{1}", "revision_syntax"],
  ["main~1", "revision_syntax"],
  ["main^", "revision_syntax"],
  ["main^{commit}", "revision_syntax"],
  [":/text", "revision_syntax"],
  ["a:b", "revision_syntax"],
  ["+x", "revision_syntax"],
  ["*", "revision_syntax"],
  ["a*", "revision_syntax"],
  ["a?", "revision_syntax"],
  ["a[b]", "revision_syntax"],
  ["a\\b", "revision_syntax"],
  ["\n", "forbidden_character"],
  ["main\n", "forbidden_character"],
  ["a b", "forbidden_character"],
  ["a\u0000b", "forbidden_character"],
  ["a\u007fb", "forbidden_character"],
  ["a\u0085b", "forbidden_character"],
  ["a\ud800", "forbidden_character"],
  ["\ufffd\ufffd", "forbidden_character"],
  ["main\u200b", "invisible_character"],
  ["\ufeffmain", "invisible_character"],
  ["ma\u00adin", "invisible_character"],
  ["main\u2060", "invisible_character"],
  ["\u202emain", "invisible_character"],
  ["a\u2066b", "invisible_character"],
  ["a\u200fb", "invisible_character"],
  ["a\u00a0b", "invisible_character"],
  ["a\u2028b", "invisible_character"],
  ["a\u3164b", "invisible_character"],
  ["a\ufe0f", "invisible_character"],
  ["a\u{e0041}", "invisible_character"],
  ["cafe\u0301", "not_normal"],
  ["\u212b", "not_normal"],
  ["Refs/heads/main", "full_ref_path"],
  [".lock", "malformed"],
  ["x.lock", "malformed"],
  ["x.lock/y", "malformed"],
  [".hidden", "malformed"],
  ["a/.b", "malformed"],
  ["a//b", "malformed"],
  ["/a", "malformed"],
  ["a/", "malformed"],
  ["a.", "malformed"],
];

const accepted = [
  "main",
  "feature/login",
  "heads/x",
  "head",
  "v1.2.3",
  "c++",
  "user@host",
  "a-b",
  "äöü",
  "日本",
  "lock",
  "x.lockfile",
  "0190a5a0-0000-7000-8000-000000000001",
  "a".repeat(maxRefNameBytes),
];

describe("a default branch", () => {
  const session = "0190a5a0-0000-7000-8000-000000000001";

  it.each([session, session.toUpperCase(), `wip/${session}`])(
    "is not %j, which sessions write [G09]",
    (name) => {
      expect(Result.getFailure(parseDefaultBranch(name))).toMatchObject({
        value: { code: "session_branch" },
      });
    },
  );

  it.each(["main", `${session}-x`, `release/${session}`, "wip/mine"])("may be %j", (name) => {
    expect(parseDefaultBranch(name)).toEqual(Result.succeed(name));
  });

  it("is refused if no branch can have its name", () => {
    expect(Result.getFailure(parseDefaultBranch("-x"))).toMatchObject({ value: { code: "option" } });
  });
});

describe("base_ref", () => {
  it.each(refused)("refuses %j as %s [G01]", (text, code) => {
    const parsed = parseBaseRef(text);
    expect(Result.isFailure(parsed) ? parsed.failure.code : "accepted").toBe(code);
    expect(Result.isFailure(parsed) ? parsed.failure.message : "").toMatch(/^[A-Z].+\.$/);
  });

  it.each(accepted)("accepts %j as a branch or a tag [G01]", (text) => {
    expect(parseBaseRef(text)).toEqual(Result.succeed({ name: text, commit: null }));
    expect(parseBranchName(text)).toEqual(Result.succeed(text));
  });

  it("accepts 40 hexadecimal digits as a name that may be a commit [G01]", () => {
    const upper = "ABCDEF0123".repeat(4);
    expect(parseBaseRef(upper)).toEqual(Result.succeed({ name: upper, commit: upper.toLowerCase() }));
    expect(parseBaseRef(upper.slice(1))).toEqual(Result.succeed({ name: upper.slice(1), commit: null }));
  });

  it("explains the error without repeating its input", () => {
    const parsed = parseBaseRef("secret token");
    expect(Result.isFailure(parsed) ? parsed.failure.message : "").not.toContain("secret");
  });
});

describe("a branch name", () => {
  const pieces =
    "a b / . .. - @ { } ~ ^ : ? * [ \\ .lock lock HEAD refs ä \u2028 \u007f + % $ ` ' \" ; | & < > ( ) # ! ,";
  const names = fc.array(fc.constantFrom(" ", ...pieces.split(" ")), { minLength: 1, maxLength: 5 });

  it("is accepted here only if git accepts it [G01]", () => {
    const tried = fc.sample(names, { numRuns: 600, seed: 20_261_120 }).map((parts) => parts.join(""));
    const taken = [...new Set(tried)].filter((name) => Result.isSuccess(parseBranchName(name)));
    const refusedByGit = taken.filter(
      (name) => spawnSync("git", ["check-ref-format", "--branch", name]).status !== 0,
    );
    expect(taken.length).toBeGreaterThan(100);
    expect(refusedByGit).toEqual([]);
  });
});

describe("the shapes of names", () => {
  it("recognise a full commit id in lower case", () => {
    expect(isCommitId("0123456789".repeat(4))).toBe(true);
    for (const text of ["0123456789".repeat(4).slice(1), `${"a".repeat(40)}\n`, "A".repeat(40), ""]) {
      expect(isCommitId(text)).toBe(false);
    }
  });

  it("recognise a session's branch by the shape of its id", () => {
    expect(isSessionBranch("0190a5a0-0000-7000-8000-000000000001")).toBe(true);
    expect(isSessionBranch("0190A5A0-0000-7000-8000-000000000001")).toBe(false);
    expect(isSessionBranch("x0190a5a0-0000-7000-8000-000000000001")).toBe(false);
  });
});
