import * as Result from "effect/Result";
import * as Schema from "effect/Schema";
import { expect, test } from "vitest";
import { afterSave, isWhole, notSaved, Saved, type Restored } from "../../src/domain/saved.ts";

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

const restored = (change: Partial<Restored> = {}): Restored => ({
  wip: "a",
  commits: 1,
  files: 1,
  skipped: [],
  error: null,
  ...change,
});
const WORK: Saved = { wip: "a", skipped: [], error: null };
const NOTHING: Saved = { wip: null, skipped: [], error: null };

test.each([
  ["a later save replaces it", restored(), { ...WORK, wip: "b" }, "b"],
  ["nothing is left after all of it was restored", restored(), NOTHING, null],
  ["the restart did not ask for it", null, NOTHING, "a"],
  ["a file was left out", restored({ skipped: [{ path: "x", reason: "a submodule" }] }), NOTHING, "a"],
  ["the restoration failed", restored({ error: "no" }), NOTHING, "a"],
  ["the sandbox was lost", restored(), notSaved("lost"), "a"],
])("saved work stays named until a sandbox took it back and a save succeeded: %s", (_, back, saved, wip) => {
  expect(afterSave({ saved: WORK, restored: back }, saved)).toEqual({ ...saved, wip });
});

test("a restoration with a problem is not whole", () => {
  expect([isWhole(null), isWhole(restored()), isWhole(restored({ error: "no" }))]).toEqual([
    false,
    true,
    false,
  ]);
});
