import { expect, test } from "vitest";
import { isApproval, type Verdict } from "../../../src/features/change-requests/rules/verdicts.ts";

const verdict: Verdict = { kind: "approval", by: "ben", at: 1, commit: "c1", isActive: true, role: "member" };

test.each([
  ["another person's of the head", {}, true],
  ["of an earlier commit", { commit: "c0" }, false],
  ["of a branch that did not exist", { commit: null }, false],
  ["of the person who opened the request", { by: "ada" }, false],
  ["of an owner", { role: "owner" }, true],
  ["of a person who only reads now", { role: "viewer" }, false],
  ["of a person who is no member any more", { role: null }, false],
  ["of a person who is deactivated", { isActive: false }, false],
  ["that asks for changes", { kind: "changes_requested" }, false],
] as const)("an approval %s", (_, fields, counts) => {
  expect(isApproval({ ...verdict, ...fields }, { head: "c1", createdBy: "ada" })).toBe(counts);
});
