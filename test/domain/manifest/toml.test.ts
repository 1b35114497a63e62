/** What TOML's specification refuses and its parser here takes. The cases are written from the specification. */
import * as Result from "effect/Result";
import { expect, test } from "vitest";
import { parseToml } from "../../../src/domain/manifest/toml.ts";

const read = (text: string) => parseToml(Buffer.from(text));
const refusal = (text: string) => Result.getOrThrow(Result.flip(read(text)));

test.each([
  "2023-02-29",
  "2023-02-30",
  "2023-04-31",
  "1900-02-29",
  "2100-02-29",
  "2023-02-30T10:00:00",
  "2023-06-31 10:00:00",
  "2023-02-29T10:00:00Z",
  "2023-02-30t10:00:00.5+01:00",
])("an impossible day of a month, %s, is an error with its line", (date) => {
  const day = date.slice(0, 10);
  expect(refusal(`a = 1\n\nwhen = ${date}\n`)).toEqual({
    what: `is not valid TOML: ${day} is not a valid date`,
    line: 3,
  });
  expect(refusal(`a = [\n  2024-02-29,\n  ${date},\n]`).line).toBe(3);
  expect(refusal(`a = { b = ${date} }`).line).toBe(1);
});

test("the first impossible day is named, not one in a string before it", () => {
  const fault = refusal('a = "2023-02-31"\nb = 2023-09-31 # not 2023-02-30\nc = 2023-11-31');
  expect(fault).toEqual({ what: "is not valid TOML: 2023-09-31 is not a valid date", line: 2 });
});

test.each([
  ['a = "2023-02-30"', { a: "2023-02-30" }],
  ["a = '''\n2023-02-30\n'''", { a: "2023-02-30\n" }],
  ["# 2023-02-30\na = 1", { a: 1 }],
  ["2023-02-30 = 1\n2023-02-31 = 2", { "2023-02-30": 1, "2023-02-31": 2 }],
  ["[2023-02-30]", { "2023-02-30": {} }],
])("text that only looks like an impossible day is kept: %j", (text, expected) => {
  expect(Result.getOrThrow(read(text))).toEqual(expected);
});

test.each([
  "2024-02-29",
  "2000-02-29",
  "0000-02-29",
  "2023-12-31",
  "2023-02-28T23:59:59Z",
  "2024-02-29 00:00:00",
])("a day of the calendar, %s, is read", (date) => {
  expect(Result.isSuccess(read(`a = ${date}`))).toBe(true);
});

test("a byte order mark is allowed once at the beginning, and in strings and comments", () => {
  const mark = "\ufeff";
  expect(Result.getOrThrow(read(`${mark}a = 1`))).toEqual({ a: 1 });
  expect(Result.getOrThrow(read(`a = "x${mark}"\n# ${mark}`))).toEqual({ a: `x${mark}` });
  expect(refusal(`${mark}${mark}a = 1`).line).toBe(1);
  expect(refusal(`a = 1\n${mark}b = 2`).line).toBe(2);
  expect(refusal(`a = 1${mark}\n`).line).toBe(1);
  expect(refusal(`a${mark} = 1\n`).line).toBe(1);
});
