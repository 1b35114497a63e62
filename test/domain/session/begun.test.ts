import { expect, it } from "vitest";
import { begunFrom, keepsBegunFrom, withBegunFrom } from "../../../src/domain/session/begun.ts";

const begun = {
  session_id: "019a7c40-11aa-7c08-b1f7-93d5e2a4f603",
  title: "Rename it",
  at: "2026-11-30T11:02:00.000Z",
};

it("reads what the service says, and nothing in another form", () => {
  expect(begunFrom({ metadata: withBegunFrom({ team: "web" }, begun) })).toEqual(begun);
  const atTurn = { ...begun, turn_id: "a" };
  expect(begunFrom({ metadata: { begun_from: atTurn } })).toEqual(atTurn);
  expect(begunFrom({ metadata: { begun_from: { ...begun, at: "noon" } } })).toEqual({ ...begun, at: null });
  for (const other of [
    undefined,
    null,
    "x",
    {},
    { ...begun, title: 1 },
    { ...begun, session_id: "javascript:alert(1)" },
  ])
    expect(begunFrom({ metadata: { begun_from: other } })).toBeNull();
});

it("lets a caller repeat what the service says, and not change it", () => {
  const { at, title, session_id } = begun;
  expect(keepsBegunFrom({ begun_from: { at, title, session_id } }, begun)).toBe(true);
  expect(keepsBegunFrom({}, begun)).toBe(true);
  for (const other of [
    begun,
    { x: 1 },
    [],
    "x",
    null,
    { ...begun, session_id: begun.session_id.toUpperCase() },
  ]) {
    expect(keepsBegunFrom({ begun_from: other }, null)).toBe(false);
  }
  expect(keepsBegunFrom({ begun_from: { ...begun, turn_id: "a" } }, begun)).toBe(false);
});
