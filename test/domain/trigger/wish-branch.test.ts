/** Branches for described changes of triggers. */
import { expect, it } from "vitest";
import { isWishBranch, wishBranch } from "../../../src/domain/trigger/wish-branch.ts";

const ID = "01a22c17-db67-786f-a876-677a8944c6ea";

it.each(["Add", "Change", "Pause", "Resume", "Delete"])("of the verb %s are known by their names", (verb) => {
  const branch = wishBranch(verb, "weekly-report_2", ID);
  expect(branch).toBe(`${verb.toLowerCase()}-trigger-weekly-report_2-8944c6ea`);
  expect(isWishBranch(branch)).toBe(true);
});

it.each(["main", "add-trigger-weekly", "add-trigger-weekly-8944c6e", "my-add-trigger-weekly-8944c6ea"])(
  "%s is another branch",
  (name) => {
    expect(isWishBranch(name)).toBe(false);
  },
);
