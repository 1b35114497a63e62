/** The words of a change request for the people who have decided. */
import { expect, it } from "vitest";
import { verdictWords } from "../../dashboard/change-requests/words.ts";

type Judged = Parameters<typeof verdictWords>[0];

const COMMIT = "0123456789abcdef0123456789abcdef01234567";
const verdict = (id: string, counts: boolean, kind: Judged["verdicts"][number]["kind"] = "approval") => ({
  by: { id, name: id },
  at: "2026-11-20T06:52:05.618Z",
  commit: COMMIT,
  kind,
  counts,
});
const judged = (verdicts: Judged["verdicts"], status: Judged["status"] = "open"): Judged => ({
  status,
  verdicts,
  created_by: "ada",
});

it("says why an approval does not count", () => {
  expect(verdictWords(judged([verdict("grace", true)]))).toBe("grace approved.");
  expect(verdictWords(judged([verdict("ada", false), verdict("grace", false)]))).toBe(
    "ada approved, which does not count: who opens a request does not approve it; " +
      "grace approved, which does not count: it is of an earlier commit.",
  );
});

it("says no more than the verdicts once the request has ended", () => {
  expect(verdictWords(judged([]))).toBeNull();
  expect(
    verdictWords(judged([verdict("ada", false), verdict("grace", false, "changes_requested")], "merged")),
  ).toBe("ada approved; grace asked for changes.");
});
