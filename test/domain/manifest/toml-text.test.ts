import { describe, expect, it } from "vitest";
import { applySplices, readStatements } from "../../../src/domain/manifest/toml-text.ts";

const TEXT = `\ufeff# "no [value]
a.b = [ # ]
  "]", '''
[x]''' ]  # end
[ "c d" . 'e' ] # [f]
g = { h = "}" }

  [[i]]
  j = """
k = 1\\"""""" # """
l = 07:32:00`;

const at = (from: number, to: number, text: string) => ({ from, to, text });

describe("the statements of a document", () => {
  it("have their paths and their places, whatever strings and comments hold", () => {
    const found = readStatements(TEXT).map((statement) => [
      statement.path.join("/"),
      statement.kind === "pair"
        ? TEXT.slice(statement.valueFrom, statement.valueTo)
        : TEXT.slice(statement.from, statement.to),
    ]);
    expect(found).toEqual([
      ["a/b", "[ # ]\n  \"]\", '''\n[x]''' ]"],
      ["c d/e", "[ \"c d\" . 'e' ] # [f]\n"],
      ["c d/e/g", '{ h = "}" }'],
      ["i", "  [[i]]\n"],
      ["i/j", '"""\nk = 1\\""""""'],
      ["i/l", "07:32:00"],
    ]);
  });

  it("are replaced and added to at their places, in their order", () => {
    expect(applySplices("0123456789", [at(5, 5, "b"), at(2, 4, ""), at(5, 7, "c"), at(5, 5, "d")])).toBe(
      "014bdc789",
    );
  });
});
