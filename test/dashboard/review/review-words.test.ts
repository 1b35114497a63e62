/** The words of a change request for the people who have decided. */
import { expect, it } from "vitest";
import { verdictWords } from "../../../dashboard/change-requests/words.ts";

type Judged = Parameters<typeof verdictWords>[0];

const COMMIT = "0123456789abcdef0123456789abcdef01234567";
const verdict = (
  id: string,
  why: string | null = null,
  kind: Judged["verdicts"][number]["kind"] = "approval",
) => ({
  by: { id, name: id },
  at: "2026-11-20T06:52:05.618Z",
  commit: COMMIT,
  kind,
  counts: why === null,
  why_not: why,
});

it("says why an approval does not count", () => {
  expect(verdictWords({ verdicts: [verdict("grace")] })).toBe("grace approved.");
  expect(verdictWords({ verdicts: [verdict("ada", "it is hers"), verdict("grace", "it is old")] })).toBe(
    "ada approved, which does not count: it is hers; grace approved, which does not count: it is old.",
  );
});

it("says nothing without a verdict, and who asked for changes", () => {
  expect(verdictWords({ verdicts: [] })).toBeNull();
  expect(verdictWords({ verdicts: [verdict("grace", null, "changes_requested")] })).toBe(
    "grace asked for changes.",
  );
});
