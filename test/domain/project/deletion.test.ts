import { expect, it } from "vitest";
import { deletionAt, inactivity, isRestorable } from "../../../src/domain/project/deletion.ts";

const DAY = 24 * 60 * 60 * 1000;

it("is gone a week after it is deleted, counted from the first time", () => {
  expect(deletionAt({ deletesAt: null }, 5)).toBe(5 + 7 * DAY);
  expect(deletionAt({ deletesAt: 9 }, 5)).toBe(9);
});

it("can be restored until it is gone, and only when it is deleted", () => {
  expect(isRestorable({ deletesAt: 10 }, 9)).toBe(true);
  expect(isRestorable({ deletesAt: 10 }, 10)).toBe(false);
  expect(isRestorable({ deletesAt: null }, 9)).toBe(false);
});

it("says why a project starts nothing", () => {
  expect(inactivity({ status: "active" })).toBe(null);
  expect(inactivity({ status: "archived" })).toBe("project_archived");
  expect(inactivity({ status: "deleted" })).toBe("project_deleted");
});
