/** The shapes that groups of endpoints share (src/http/api/schemas.ts). */
import * as Result from "effect/Result";
import * as Schema from "effect/Schema";
import { HttpApiError } from "effect/http-api";
import { describe, expect, it } from "vitest";
import { invalidRequest } from "../../src/http/answers/issues.ts";
import { distinctBy, Moment, nameText, optionalText } from "../../src/http/api/schemas.ts";

/** The sentence of a refused body. Null if it is fine. */
const refusal = <T>(schema: Schema.Codec<T>, value: unknown): string | null => {
  const result = Schema.decodeUnknownResult(schema)(value);
  return Result.isSuccess(result)
    ? null
    : invalidRequest(new HttpApiError.HttpApiSchemaError({ kind: "Payload", cause: result.failure })).error;
};

describe("an instant that a client chooses", () => {
  it.each([
    "0000-01-01T00:00:00Z",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00",
    "2026-02-30T00:00:00Z",
    "2026-13-01T00:00:00Z",
    "2026-02-01",
  ])("is not %s", (text) => {
    expect(refusal(Moment, text)).toBe("The body must be an instant such as 2027-01-31T00:00:00Z.");
  });

  it.each(["0001-01-01T00:00:00Z", "2028-02-29T23:59:59.999+02:00", "9999-12-31T23:59Z"])(
    "may be %s",
    (text) => expect(refusal(Moment, text)).toBeNull(),
  );
});

it("counts the characters of a text, and the entries of a list", () => {
  expect(refusal(optionalText(3), "😀😀😀")).toBeNull();
  expect(refusal(optionalText(3), "😀😀😀😀")).toBe("The body must have at most 3 characters.");
  const list = Schema.Array(optionalText(3)).check(Schema.isMaxLength(1));
  expect(refusal(Schema.Struct({ models: list }), { models: ["a", "b"] })).toBe(
    "`models` must have at most 1 entries.",
  );
});

it("refuses a name of two lines", () => {
  expect(refusal(nameText(9), "a b")).toBeNull();
  expect(refusal(nameText(9), "a\nb")).toBe("The body must be one line without control characters.");
});

it("names the entry that stands in a list twice", () => {
  const list = Schema.Array(Schema.Struct({ id: Schema.String })).check(distinctBy("id"));
  expect(refusal(list, [{ id: "a" }, { id: "b" }])).toBeNull();
  expect(refusal(list, [{ id: "a" }, { id: "b" }, { id: "a" }])).toBe(
    "`2.id` must not be in the list twice.",
  );
});
