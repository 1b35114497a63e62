import { readFileSync } from "node:fs";
import * as Result from "effect/Result";
import { describe, expect, it } from "vitest";
import { type Jsonc, type JsoncObject, parseJsonc } from "../../../src/domain/environment/jsonc.ts";

const read = (text: string) => parseJsonc(Buffer.from(text));

/** Without places. */
const plain = (value: Jsonc): unknown => {
  if (value instanceof Map) {
    const fields = [...(value as JsoncObject)].map(([name, field]) => [name, plain(field.value)]);
    return Object.fromEntries(fields) as unknown;
  }
  return Array.isArray(value) ? value.map(plain) : value;
};

/** Lists in an object, this deep. */
const deep = (depth: number) => `{"a": ${"[".repeat(depth - 1)}${"]".repeat(depth - 1)}}`;

describe("JSON with comments", () => {
  it("is read with comments and trailing commas", () => {
    const text = `// head
{ "a": [1, -2.5e3, true, null,], /* b */ "b": { "c": "\\u0041\\n\\"" , },
  "constructor": 1, // end
}
`;
    expect(plain(Result.getOrThrow(read(text)))).toEqual({
      a: [1, -2500, true, null],
      b: { c: 'A\n"' },
      constructor: 1,
    });
  });

  it("tells the place of each field", () => {
    const fields = Result.getOrThrow(read('{\n  "a": 1,\n  /* x */ "b": 2 }'));
    expect([...fields.values()].map(({ place }) => place)).toEqual([
      { line: 2, column: 3 },
      { line: 3, column: 11 },
    ]);
  });

  it.each([
    ["nothing", "", "The file is empty.", 1, 1],
    ["blanks", " \n", "The file is empty.", 1, 1],
    ["a comment", "// only", "Unexpected end of input", 1, 1],
    ["a byte order mark", "\ufeff{}", "begins with a byte order mark", 1, 1],
    ["a list", " [1]", "must have one object", 1, 2],
    ["a text", '"x"', "must have one object", 1, 1],
    ["an object that does not end", '{"a": 1', "Unexpected end of input", 1, 8],
    ["a comment that does not end", '{} /* "', "Unexpected end of input", 1, 8],
    ["a missing colon", '{\n"a" 1}', "Unexpected token Number", 2, 5],
    ["a missing value", '{"a":,}', "Unexpected `,`", 1, 6],
    ["a comma alone", "{,}", "Unexpected `,`", 1, 2],
    ["a name without quotes", "{a: 1}", "Unexpected character 'a'", 1, 2],
    ["single quotes", "{'a': 1}", "Unexpected character", 1, 2],
    ["something behind the object", "{}\nx", "Unexpected character 'x'", 2, 1],
    ["a wrong escape", '{"a": "\\x"}', "Unexpected character", 1, 8],
    ["a number of JavaScript", '{"a": NaN}', "Unexpected character", 1, 7],
    ["a line break in a text", '{"a": "x\ny"}', "line break or a control character", 1, 7],
    ["half of a surrogate pair", '{"a": "\\ud800"}', "half of a surrogate pair", 1, 7],
    ["a field twice", '{"a": 1,\n "a": 2}', 'The field "a" is already on line 1.', 2, 2],
    ["a field twice, below", '{"x": {"a": 1, "\\u0061": 2}}', 'The field "a" is already on line 1.', 1, 16],
    ["the field __proto__", '{"x": [{"__proto__": {}}]}', "cannot have the name `__proto__`", 1, 9],
    ["lists in lists", deep(33), "nested more than 32 deep", 1, 38],
  ])("is refused with its place: %s", (_what, text, reason, line, column) => {
    expect(Result.getFailure(read(text)).valueOrUndefined).toEqual({
      reason: expect.stringContaining(reason) as string,
      place: { line, column },
    });
  });

  it("has a bounded depth, before a parser calls itself for each [M07]", () => {
    expect(Result.isSuccess(read(deep(32)))).toBe(true);
    for (const open of ["[", '{"a":', '[{"a":'])
      expect(Result.getFailure(read(`{"a": ${open.repeat(20_000)}`)).valueOrUndefined?.reason).toContain(
        "deep",
      );
  });

  it("is refused if it is not UTF-8", () => {
    expect(Result.getFailure(parseJsonc(Buffer.from([0x7b, 0xff, 0x7d]))).valueOrUndefined).toEqual({
      reason: "The file is not UTF-8 text.",
      place: null,
    });
  });

  it("never makes the reader throw, wherever a file breaks off", () => {
    const text = readFileSync(new URL("../../../package.json", import.meta.url), "utf8").slice(0, 1500);
    for (let end = 0; end < text.length; end += 1)
      expect(Result.isFailure(read(text.slice(0, end))), text.slice(0, end)).toBe(true);
  });
});
