/** Turns that go on with another agent's model (daemon/agent/fallback.ts). */
import { expect, test } from "vitest";
import { Fallback } from "../../../daemon/agent/fallback.ts";
import { item } from "../support/feed.ts";

const agents = ["a", "b"].map((name) => ({ name, model: `x/${name}`, mode: name === "b" ? "plan" : null }));
const error = { code: "model_out_of_credit", message: "Pay. It said: Payment required" };
const refused = { state: "failed", error } as const;
const NONE = { model: null, agent: null };

const start = (chosen: { readonly model: string | null; readonly agent: string | null } = NONE) => {
  const told: string[] = [];
  let nowMs = 10;
  const fallback = new Fallback({
    agents,
    model: "x/own",
    item: ({ native_id: id }) => told.push(id),
    now: () => nowMs,
  });
  const begins = (id: string, choice: typeof chosen = NONE) => {
    fallback.begins(id, choice);
    fallback.item(item(id, { role: "user", message_id: id, turn_id: id }));
  };
  const fails = (id: string, change: object = {}) =>
    fallback.item(item(id, { status: "failed", content: [], error, turn_id: "m", ...change }));
  begins("m", chosen);
  return { fallback, told, begins, fails, pass: (ms: number) => (nowMs += ms) };
};

test("a turn whose model refused goes on with the next agent, without the item of the failure (F2)", () => {
  const { fallback, told, fails, pass } = start();
  fails("first");
  expect(fallback.ends(refused)).toMatchObject({
    agent: { name: "a", model: "x/a" },
    note: expect.stringContaining("x/own refused") as string,
  });
  pass(10);
  // opencode tells it again, and late.
  fails("first");
  fails("late", { created_at: 9 });
  fails("second", { created_at: 20 });
  expect(fallback.ends(refused)).toMatchObject({ agent: { name: "b", mode: "plan" } });
  pass(10);
  fails("third", { created_at: 30 });
  expect(fallback.ends(refused)).toBe(null);
  expect(told).toEqual(["m", "third"]);
});

test("the item of the failure that was left out stays out in each later version (F2)", () => {
  const { fallback, told, fails } = start();
  fails("first");
  fallback.ends(refused);
  fails("first", { created_at: 10 });
  fails("first", { error: null });
  expect(told).toEqual(["m"]);
});

test.each([
  ["a text", { content: [{ type: "text", text: "I see." }] }],
  ["a thought", { kind: "thought", content: [{ type: "text", text: "Hm." }] }],
  ["a tool", { kind: "tool", content: [] }],
  ["a question", { kind: "request", content: [] }],
] as const)("a turn that has %s does not go on", (_, change) => {
  const { fallback, told, fails } = start();
  fallback.item(item("said", { turn_id: "m", ...change }));
  fails("failed");
  expect(fallback.ends(refused)).toBe(null);
  expect(told).toEqual(["m", "said", "failed"]);
});

test("items of former turns are no words of this one (F1)", () => {
  const { fallback } = start();
  fallback.item(item("old", { turn_id: "before" }));
  expect(fallback.ends(refused)).not.toBe(null);
});

test("another end tells the item that was held, and ends the turn", () => {
  const { fallback, told, fails } = start();
  fails("failed");
  expect(told).toEqual(["m"]);
  expect(fallback.ends({ state: "interrupted", error: null })).toBe(null);
  expect(told).toEqual(["m", "failed"]);
});

test("the turns that follow stay with the last agent, until a person chooses a model", () => {
  const { fallback, begins } = start();
  fallback.ends(refused);
  begins("n");
  expect(fallback.ends(refused)?.agent.name).toBe("b");
  begins("o");
  expect(fallback.ends(refused)).toBe(null);
  begins("p", { model: "x/a", agent: null });
  expect(fallback.ends(refused)?.agent.name).toBe("b");
});

test("a mode that a person chose stays", () => {
  const { fallback, begins } = start({ model: null, agent: "build" });
  fallback.ends(refused);
  begins("n");
  expect(fallback.ends(refused)?.agent).toEqual({ name: "b", model: "x/b", mode: null });
});

test("a turn that is seen at rest before its end was told stays open for a while (F3)", () => {
  const { fallback } = start();
  expect([fallback.isOver(0), fallback.isOver(2999), fallback.isOver(3000)]).toEqual([false, false, true]);
  fallback.ends(refused);
  expect([fallback.isOver(4000), fallback.isOver(6999), fallback.isOver(7000)]).toEqual([false, false, true]);
  fallback.ends({ state: "completed", error: null });
  expect(fallback.isOver(0)).toBe(true);
});
