import { expect, it } from "vitest";
import { ACTION_WORDS, ACTOR_WORDS, actionText } from "../../../dashboard/audit/words.ts";
import { ACTOR_KINDS, AUDIT_ACTIONS } from "../../../src/domain/person/audit.ts";

it("has words for each action and each kind of actor, and for nothing else", () => {
  expect(Object.keys(ACTION_WORDS).toSorted()).toEqual([...AUDIT_ACTIONS].toSorted());
  expect(Object.keys(ACTOR_WORDS).toSorted()).toEqual([...ACTOR_KINDS].toSorted());
});

it("shows an action that a newer service records as it is", () => {
  const newer = { action: "moon.landed", outcome: "done" } as unknown as Parameters<typeof actionText>[0];
  expect(actionText(newer)).toBe("moon.landed");
  expect(actionText({ action: "sign_in", outcome: "refused" })).toBe("could not sign in");
});
