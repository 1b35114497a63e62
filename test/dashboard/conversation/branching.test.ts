import { expect, it } from "vitest";
import { beginningAt } from "../../../dashboard/conversation/foot/branching.ts";
import type { Session } from "../../../dashboard/wire.d.ts";

// eslint-disable-next-line typescript/no-unsafe-type-assertion -- the fields that it reads
const session = (saved: object | null) => ({ id: "s", saved }) as Pick<Session, "id" | "saved">;
const kept = (...ids: readonly string[]) => ids.map((id) => ({ id }));
const [older, newest] = [
  { id: "a", isNewest: false },
  { id: "b", isNewest: true },
];

it("lets a session begin from each turn whose save is kept", () => {
  const saved = session({ state: "complete" });
  expect(beginningAt(saved, older, kept("a", "b"))).toEqual({
    from: { session_id: "s", turn_id: "a" },
  });
  expect(beginningAt(saved, older, kept("b"))).toEqual({
    fault: expect.stringMatching(/^No save of this turn/),
  });
  expect(beginningAt(saved, { id: null, isNewest: false }, kept("a"))).toHaveProperty("fault");
});

it("lets a session begin from the newest save where the newest turn has no own one", () => {
  for (const state of ["complete", "partial"])
    expect(beginningAt(session({ state }), newest, [])).toEqual({ from: { session_id: "s" } });
  expect(beginningAt(session(null), newest, kept("a"))).toEqual({
    fault: "The work of this turn is not saved yet.",
  });
  expect(beginningAt(session({ state: "failed" }), newest, [])).toEqual({
    fault: expect.stringMatching(/^The last save failed\./),
  });
});
