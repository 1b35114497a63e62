import * as Result from "effect/Result";
import * as Schema from "effect/Schema";
import { expect, test } from "vitest";
import { notSaved, Saved } from "../../src/domain/saved.ts";

const decode = Schema.decodeUnknownResult(Saved);

test("a failed save names no commit and gives the reason", () => {
  const saved = notSaved("the daemon hung");
  expect(saved).toEqual({ wip: null, skipped: [], error: "the daemon hung" });
  expect(Result.isSuccess(decode(saved))).toBe(true);
});

test.each([
  { wip: 7, skipped: [], error: null },
  { wip: null, skipped: [{ path: "a" }], error: null },
  { wip: null, skipped: null, error: null },
  { skipped: [], error: null },
  "saved",
])("a daemon's answer of another shape is invalid: %j", (answer) => {
  expect(Result.isFailure(decode(answer))).toBe(true);
});
