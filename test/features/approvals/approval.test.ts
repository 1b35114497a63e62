import { expect, test } from "vitest";
import { approvalPlace } from "../../../src/features/approvals/rules/approval.ts";

test("the sealed parts of two approvals, and of one, have places of their own", () => {
  const [a, b] = ["a", "b"].map((id) => ({ id, projectId: "p" }));
  if (a === undefined || b === undefined) throw new Error("two places");
  const names = [approvalPlace(a, "arguments"), approvalPlace(a, "result"), approvalPlace(b, "result")];
  expect(new Set(names.map(({ name }) => name)).size).toBe(3);
});
