import { describe, expect, it } from "vitest";
import {
  hereDocumentLine,
  parseDockerfile,
  fromReference,
} from "../../../src/domain/environment/dockerfile.ts";

/** Line and keyword of each instruction, by stage. */
const outline = (source: string): readonly string[][] => {
  const parsed = parseDockerfile(source);
  if (parsed.kind === "error") throw new Error(`${parsed.line}: ${parsed.problem}`);
  return parsed.stages.map((stage) => stage.map(({ line, keyword }) => `${line} ${keyword}`));
};

describe("a Dockerfile", () => {
  it("has stages of instructions with their lines", () => {
    const source =
      "# syntax\nARG A=1\n\nFROM a AS one\r\nrun x\n  # comment\nFROM --platform=x b\n\tCOPY c d";
    expect(outline(source)).toEqual([
      ["4 FROM", "5 RUN"],
      ["7 FROM", "8 COPY"],
    ]);
  });

  it("continues an instruction over comments and empty lines", () => {
    expect(outline("FROM a\nRUN one \\\n# two\n\n  three \\\n four\nUSER x\n")).toEqual([
      ["1 FROM", "2 RUN", "7 USER"],
    ]);
  });

  it("continues with the escape character of its directive", () => {
    expect(outline("# escape=`\nFROM a\nRUN one `\n two\nRUN c:\\\nUSER x\n")).toEqual([
      ["2 FROM", "3 RUN", "5 RUN", "6 USER"],
    ]);
  });

  it("skips here-documents, also several of one instruction", () => {
    expect(
      outline("FROM a\nRUN <<EOF cat <<-'TWO'\nFOO\nEOF\nBAR\n\tTWO\nCOPY <<X /x\nRUN y\nX\nUSER z\n"),
    ).toEqual([["1 FROM", "2 RUN", "7 COPY", "10 USER"]]);
  });

  it.each([
    ["", 1, "there is no FROM"],
    ["ARG A\n# FROM a\n", 1, "there is no FROM"],
    ["\nRUN x\nFROM a\n", 2, "RUN is before the first FROM, where only ARG can be"],
    ["FROM a\nRNU x\n", 2, "unknown instruction: RNU"],
    ["FROM a\nRUN\n", 2, "RUN needs an argument"],
    ["FROM\n", 1, "FROM needs an argument"],
  ])("is refused with the line of the first problem: %j", (source, line, problem) => {
    expect(parseDockerfile(source)).toEqual({ kind: "error", line, problem });
  });

  it.each([
    ["FROM a\n\nRUN <<EOF\nset -e\nEOF\n", 3],
    ["FROM a\nCOPY <<-'X' /etc/x\nFROM nothing\n\tX\n", 2],
    ["FROM a\nRUN <<'END-OF-FILE'\nset -e\nEND-OF-FILE\n", 2],
    ["FROM a\nCOPY <<EOF.txt /x\nFROM nothing\nEOF.txt\n", 2],
    ['FROM a\nRUN cat <<"A B"\nx\nA B\n', 2],
    ["FROM a\nONBUILD RUN <<EOF\nset -e\nEOF\n", 2],
    ["FROM a\nRUN cat <<< word\n", null],
    ["FROM a\nRUN echo $((1<<A))\nCOPY a b\n", null],
    ["FROM a\nRUN echo '<<EOF'\n", null],
  ])("has its first here-document at a line: %j", (source, line) => {
    expect(hereDocumentLine(source)).toBe(line);
  });

  it("names its base without flags", () => {
    const parsed = parseDockerfile("FROM --platform=linux/amd64 host.example/a:1 AS x\n");
    expect(parsed.kind === "stages" ? parsed.stages.map(([from]) => fromReference(from)) : []).toEqual([
      "host.example/a:1",
    ]);
  });
});
