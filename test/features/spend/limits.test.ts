import { describe, expect, it } from "vitest";
import type { SpendCount } from "../../../src/domain/sandbox/spend.ts";
import {
  countKey,
  limitedCounts,
  limitStates,
  nearNote,
  refusingLimit,
} from "../../../src/features/spend/rules/limits.ts";

const session: SpendCount = { scope: "session", subject: "s", period: "" };
const project: SpendCount = { scope: "project", subject: "p", period: "2026-11" };
const account: SpendCount = { scope: "account", subject: "", period: "2026-11" };
const limit = (scope: "session" | "each_session" | "project" | "account", subject: string, amount: number) =>
  ({ scope, subject, unit: "tokens", amount }) as const;

describe("limits of spend", () => {
  it("apply to sums of their subject, a session's own before the one for each, the nearest first", () => {
    const limits = [limit("account", "", 1), limit("each_session", "", 2), limit("project", "other", 3)];
    expect(limitedCounts([account, project, session], limits).map((one) => one.limit.amount)).toEqual([2, 1]);
    const own = [...limits, limit("session", "s", 4)];
    expect(limitedCounts([account, session], own).map((one) => one.limit.amount)).toEqual([4, 1]);
  });

  it("refuse a call once what is spent and reserved reaches them, the nearest by name", () => {
    const limited = limitedCounts([session, account], [limit("session", "s", 100), limit("account", "", 50)]);
    const sums = (spent: number, reserved: number) =>
      new Map(
        [session, account].map((count) => [
          countKey(count),
          { spent: { tokens: spent, cost: 0 }, reserved: { tokens: reserved, cost: 0 }, name: "" },
        ]),
      );
    const refusal = (spent: number, reserved: number) =>
      refusingLimit(limitStates(limited, sums(spent, reserved)), null)?.limit.scope ?? null;
    expect(refusal(40, 9)).toBe(null);
    expect(refusal(40, 10)).toBe("account");
    expect(refusal(100, 0)).toBe("session");
    expect(refusingLimit(limitStates(limited, new Map()), null)).toBe(null);
  });

  it("have a note of the service, with an id for its sum, amount and time", () => {
    const state = {
      scope: "session",
      unit: "tokens",
      amount: 100,
      name: "",
      spent: 80,
      reserved: 0,
    } as const;
    const note = nearNote({
      sessionId: "0190f3b2-0000-7000-8000-000000000001",
      count: session,
      limit: state,
      now: 7,
    });
    expect(note).toMatchObject({
      text: "80 % of the limit of 100 tokens for this session is spent: 80 tokens.",
      author: { kind: "service" },
      at: 7,
    });
    expect(nearNote({ ...note, count: session, limit: state, now: 7 }).id).toBe(note.id);
    expect(nearNote({ ...note, count: session, limit: { ...state, amount: 90 }, now: 7 }).id).not.toBe(
      note.id,
    );
  });
});
