import { describe, expect, it } from "vitest";
import { entrySubject, entryText } from "../../../src/domain/service/news-words.ts";

type Entry = Parameters<typeof entryText>[0];

const entry = (rest: Partial<Entry>): Entry => ({
  kind: "session.turn_ended",
  project: { name: "shop" },
  session: null,
  change_request: null,
  trigger_slug: null,
  person: null,
  reviewer: null,
  state: null,
  ...rest,
});
const [ada, ben] = [
  { id: "a", name: "Ada" },
  { id: "b", name: "Ben" },
];

describe("an entry", () => {
  it("calls its reader you, and others by their names", () => {
    const asked = entry({ kind: "change_request.review_requested", person: ada, reviewer: ben });
    expect([entryText(asked, "b"), entryText(asked, "a"), entryText(asked, null)]).toEqual([
      "Ada asks you for a review",
      "You ask Ben for a review",
      "Ada asks Ben for a review",
    ]);
    const said = entry({ kind: "change_request.remarked", person: ben, state: "changes_requested" });
    expect([entryText(said, "b"), entryText(said, "a")]).toEqual([
      "You ask for changes",
      "Ben asks for changes",
    ]);
    expect(entryText({ ...said, state: "comment" }, "a")).toBe("Ben commented");
  });

  it("has the name of its change request, its session, its trigger or its project", () => {
    const session = { name: "Fix it" };
    expect([
      entrySubject(entry({ change_request: { number: 7, title: "Fix" }, session })),
      entrySubject(entry({ session })),
      entrySubject(entry({ trigger_slug: "nightly" })),
      entrySubject(entry({})),
    ]).toEqual(["#7 Fix", "Fix it", "nightly", "shop"]);
  });
});
