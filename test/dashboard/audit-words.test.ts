import { expect, it } from "vitest";
import { ACTION_WORDS, ACTOR_WORDS } from "../../dashboard/audit-words.js";
import { ACTOR_KINDS, AUDIT_ACTIONS } from "../../src/domain/audit.ts";

it("has words for each action and each kind of actor, and for nothing else", () => {
  expect(Object.keys(ACTION_WORDS).toSorted()).toEqual([...AUDIT_ACTIONS].toSorted());
  expect(Object.keys(ACTOR_WORDS).toSorted()).toEqual([...ACTOR_KINDS].toSorted());
});
