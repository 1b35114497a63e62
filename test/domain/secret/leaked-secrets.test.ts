import { describe, expect, it } from "vitest";
import { leaksIn, leakMessage, maskedWork } from "../../../src/domain/secret/leaked-secrets.ts";
import { cutLine } from "../../../src/domain/repository/diff-cut.ts";
import { Redactor } from "../../../src/domain/secret/redactor.ts";

const SECRET = "hunter2-hunter2";
const diffOf = (...lines: readonly string[]) =>
  [
    "diff --git a/x/env.txt b/x/env.txt",
    "--- a/x/env.txt",
    "+++ b/x/env.txt",
    "@@ -1 +1,2 @@",
    ...lines,
  ].join("\n");

describe("pushed work that people read who may not read secrets", () => {
  it("has no value of a secret and no token, in no text of the answer", () => {
    const token = `platform_pat_${"a".repeat(43)}`;
    const work = {
      commits: [{ subject: `leak ${SECRET}`, at: 1 }],
      files: [token],
      diff: `+A=${token}\n+B=${SECRET}`,
    };
    const shown = JSON.stringify(maskedWork(work, new Redactor([SECRET])));
    expect(shown).not.toContain(SECRET);
    expect(shown).not.toContain(token);
    expect(JSON.parse(shown)).toMatchObject({ commits: [{ at: 1 }], files: ["platform_***"] });
  });
});

describe("a diff", () => {
  const secrets = [
    { name: "KEY", value: SECRET },
    { name: "OTHER", value: "another-value" },
  ];

  it("names the file to which it adds a secret's value, once", () => {
    expect(leaksIn(diffOf(`+A=${SECRET}`, `+B=${encodeURIComponent(SECRET)}`), secrets)).toEqual({
      leaks: [{ file: "x/env.txt", secret: "KEY" }],
      cutIn: null,
    });
  });

  it("that was cut names the file in which the search ended", () => {
    expect(leaksIn(diffOf("+A=nothing", cutLine(1000), ""), secrets)).toEqual({
      leaks: [],
      cutIn: "x/env.txt",
    });
    expect(leaksIn(diffOf(`+${cutLine(1000)}`), secrets).cutIn).toBe(null);
  });

  it.each([` A=${SECRET}`, `-A=${SECRET}`, "+A=nothing"])("adds none with the line %j", (line) => {
    expect(leaksIn(diffOf(line), secrets).leaks).toEqual([]);
  });

  it("has a warning that names the secret and no value", () => {
    expect(leakMessage("KEY")).toContain("the value of the secret KEY");
  });
});
