import { expect, it } from "vitest";
import { isStartedBy } from "../../../src/domain/person/own-session.ts";

it("a session is its person's own, unless a trigger or an agent of hers started it", () => {
  const own = { createdBy: "ada", triggerSlug: null, parentSessionId: null };
  expect([
    isStartedBy(own, "ada"),
    isStartedBy(own, "bob"),
    isStartedBy({ ...own, triggerSlug: "nightly" }, "ada"),
    isStartedBy({ ...own, parentSessionId: "s" }, "ada"),
  ]).toEqual([true, false, false, false]);
});
