import { expect, test } from "vitest";
import { isApproval, type Verdict } from "../../../src/features/change-requests/rules/verdicts.ts";

const verdict: Verdict = { kind: "approval", by: "ben", at: 1, commit: "c1" };

test.each([
  ["another person's of the head", {}, true],
  ["of an earlier commit", { commit: "c0" }, false],
  ["of a branch that did not exist", { commit: null }, false],
  ["of the person who opened the request", { by: "ada" }, false],
  ["that asks for changes", { kind: "changes_requested" }, false],
] as const)("an approval %s", (_, fields, counts) => {
  expect(isApproval({ ...verdict, ...fields }, { head: "c1", createdBy: "ada" })).toBe(counts);
});
