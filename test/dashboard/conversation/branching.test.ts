import { expect, it } from "vitest";
import { branchFault } from "../../../dashboard/conversation/foot/branching.ts";
import type { Session } from "../../../dashboard/wire.d.ts";

// eslint-disable-next-line typescript/no-unsafe-type-assertion -- the fields that it reads
const session = (saved: object | null) => ({ saved }) as Pick<Session, "saved">;

it("lets a session begin from the newest turn, once its work is saved", () => {
  expect(branchFault(session({ state: "complete" }), true)).toBeNull();
  expect(branchFault(session({ state: "partial" }), true)).toBeNull();
  expect(branchFault(session({ state: "complete" }), false)).toBe(
    "Only the workspace of the newest turn is kept.",
  );
  expect(branchFault(session(null), true)).toBe("The work of this turn is not saved yet.");
  expect(branchFault(session({ state: "failed" }), true)).toMatch(/^The last save failed\./);
});
