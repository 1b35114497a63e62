/** Turns that end with a plan (daemon/agent/planning.ts). */
import { describe, expect, test } from "vitest";
import { Planning } from "../../../daemon/agent/planning.ts";
import { TurnBook } from "../../../daemon/agent/turn-book.ts";
import type { LaunchPlan } from "../../../src/domain/sandbox/launch.ts";
import { item, startFeed } from "../support/feed.ts";

const PLAN: LaunchPlan = { mode: "plan", next: ["build", "careful"] };
const done = { hasBegun: true, nowMs: 0 };

/** An agent that says something in each of its turns. */
const start = (
  plan: LaunchPlan | null = PLAN,
  {
    own = "plan",
    chosen = null,
    modes = [],
  }: {
    readonly own?: string | null;
    readonly chosen?: string | null;
    readonly modes?: readonly string[];
  } = {},
) => {
  const { feed, versions } = startFeed();
  const planning = new Planning({ feed, plan, own, chosen, modes: () => modes, now: () => 5 });
  const book = new TurnBook(planning.turn);
  const begin = (id: string) => {
    const number = book.begin(id);
    book.handed(number, done);
    planning.item(item(id, { role: "user", message_id: id, turn_id: id }));
    return number;
  };
  const end = (number: number, state: "completed" | "interrupted" = "completed") => {
    planning.turnEnds({ state, error: null });
    book.sawRest(number, done);
  };
  const turn = (id: string, state: "completed" | "interrupted" = "completed") => {
    const number = begin(id);
    planning.item(item(`${id}-1`, { turn_id: id }));
    planning.item(item(`${id}-2`, { turn_id: id, content: [{ type: "text", text: `Plan of ${id}` }] }));
    end(number, state);
  };
  const plans = () => versions().filter(({ kind }) => kind === "request");
  return { feed, planning, begin, end, turn, plans, now: () => feed.turnNow };
};

const waits = { state: "requires_action", waiting_for: "plan_1", rests: true };
const idle = { state: "idle", waiting_for: null };

describe("a turn in the mode that plans", () => {
  test("ends with its last message as a plan, which waits between two turns (P1)", () => {
    const { turn, plans, now, feed } = start();
    turn("a");
    expect(plans()).toMatchObject([
      {
        native_id: "plan_1",
        status: "pending",
        turn_id: "a",
        request: {
          kind: "plan",
          plan: {
            text: "Plan of a",
            modes: [
              { id: "build", name: "build" },
              { id: "careful", name: "careful" },
            ],
          },
        },
      },
    ]);
    expect([now(), feed.turnsEnded]).toEqual([waits, 1]);
  });

  test("has no plan if it was interrupted, said nothing, or was in another mode", () => {
    const interrupted = start();
    interrupted.turn("a", "interrupted");
    const silent = start();
    silent.end(silent.begin("a"));
    const other = start();
    other.planning.chose("build");
    other.turn("a");
    const before = start(PLAN, { chosen: "build" });
    before.turn("a");
    const never = start(null);
    never.turn("a");
    const asUsual = start(PLAN, { own: null });
    asUsual.turn("a");
    for (const { plans, now } of [interrupted, silent, other, before, never, asUsual])
      expect([plans(), now()]).toEqual([[], idle]);
  });

  test("has a plan if a message chose it, which is carried out in the agent's own mode", () => {
    const { turn, plans, planning } = start(PLAN, { own: "careful" });
    planning.chose("plan");
    turn("a");
    expect(plans()[0]?.request?.plan?.modes.map(({ id }) => id)).toEqual(["careful", "build"]);
  });

  test("is carried out in the runtime's own mode, if its record names none", () => {
    const { turn, plans } = start({ mode: "plan", next: [] }, { modes: ["plan", "quick", "slow"] });
    turn("a");
    expect(plans()[0]?.request?.plan?.modes.map(({ id }) => id)).toEqual(["quick", "slow"]);
    const nowhere = start({ mode: "plan", next: [] }, { modes: ["plan"] });
    nowhere.turn("a");
    expect(nowhere.plans()).toEqual([]);
  });
});

describe("a plan that waits", () => {
  test("is settled by its answer (P2)", () => {
    const { turn, plans, now, planning } = start();
    turn("a");
    expect(planning.answer("other", { declined: "expired" })).toBe(false);
    expect(planning.answer("plan_1", { approve: true, mode: "build" })).toBe(true);
    expect(planning.answer("plan_1", { approve: true, mode: "build" })).toBe(false);
    expect(plans()).toMatchObject([{ status: "completed", content: [{ text: "approved" }] }]);
    expect(now()).toEqual(idle);
  });

  test("is settled by the next turn, which ends with the next plan", () => {
    const { turn, begin, plans, now } = start();
    turn("a");
    begin("b");
    expect(plans()).toMatchObject([{ native_id: "plan_1", status: "completed", content: [] }]);
    expect(now()).toEqual({ state: "running", waiting_for: null });
    const again = start();
    again.turn("a");
    again.turn("b");
    expect(again.plans().map(({ native_id, status }) => [native_id, status])).toEqual([
      ["plan_1", "completed"],
      ["plan_2", "pending"],
    ]);
    expect(again.plans()[1]?.request?.plan?.text).toBe("Plan of b");
  });

  test("ends with the runtime", () => {
    const { turn, plans, now, planning, feed } = start();
    turn("a");
    feed.runtimeEnded();
    planning.lose();
    planning.turn({ state: "idle", waiting_for: null }, 1);
    expect([plans()[0]?.status, now()]).toEqual(["interrupted", idle]);
  });
});
