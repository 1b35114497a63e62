import { describe, expect, it } from "vitest";
import {
  amountWords,
  limitNeedsPrice,
  limitReached,
  NANO,
  spendCounts,
  spendRefusalIn,
  type LimitState,
} from "../../../src/domain/sandbox/spend.ts";
import { isSessionLimit } from "../../../src/domain/session/model-errors.ts";

const state = (fields: Partial<LimitState> = {}): LimitState => ({
  scope: "session",
  unit: "usd",
  amount: 5 * NANO,
  name: "",
  spent: 5.02 * NANO,
  reserved: 0,
  ...fields,
});

const words = (dollars: number) => amountWords({ unit: "usd", amount: Math.round(dollars * NANO) });

describe("the words of a limit of spend", () => {
  it("tell the page whether the limit is the session's own", () => {
    expect(isSessionLimit(limitReached(state()))).toBe(true);
    expect(isSessionLimit(limitReached(state({ scope: "trigger", name: "this session" })))).toBe(false);
  });

  it("name the limit, what is spent and what to do", () => {
    expect(limitReached(state())).toBe(
      "The limit of $5 for this session is reached: $5.02. Raise it, then send a message.",
    );
    expect(
      limitReached(state({ scope: "person", name: "Ada", spent: 4.7 * NANO, reserved: 0.48 * NANO })),
    ).toBe(
      "The limit of $5 for Ada this month is reached: $4.70, and $0.48 reserved for calls under way. Raise it, then send a message.",
    );
    const tokens = state({
      scope: "trigger",
      name: "nightly",
      unit: "tokens",
      amount: 2_000_000,
      spent: 2_000_001,
    });
    expect(limitReached(tokens)).toContain("The limit of 2,000,000 tokens for the trigger nightly today");
  });

  it("show fractions of a cent where there are few", () => {
    expect([5, 0.5, 0.02, 0.0052, 1234.5, 0].map(words)).toEqual([
      "$5",
      "$0.50",
      "$0.02",
      "$0.0052",
      "$1234.50",
      "$0",
    ]);
  });

  it("are found in whatever a runtime puts around them", () => {
    const hostile = 'the "C:\\new" {project}';
    for (const [code, sentence] of [
      ["spend_limit", limitReached(state())],
      ["spend_limit", limitReached(state({ scope: "project", name: hostile }))],
      ["model_without_price", limitNeedsPrice("acme/large", state())],
      ["model_without_price", limitNeedsPrice("acme/large", state({ scope: "person", name: hostile }))],
    ] as const) {
      const body = JSON.stringify({ error: { type: "spend_limit", message: sentence } });
      for (const said of [
        sentence,
        `API Error: 402 ${body}`,
        `Failed: ${JSON.stringify({ error: { message: `402 ${body}` } })} (request 1)`,
        `unexpected status 402: ${sentence} (request 1)`,
      ])
        expect(spendRefusalIn(said)).toEqual({ code, message: sentence });
    }
    expect(spendRefusalIn("The limit of your plan is reached.")).toBe(null);
  });
});

describe("a call", () => {
  const session = { id: "s", projectId: "p", triggerSlug: null, createdBy: "ada" };
  const now = Date.parse("2026-11-30T23:59:59Z");
  const keys = (chain: Parameters<typeof spendCounts>[0], isOwn = false) =>
    spendCounts(chain, { now, isOwn }).map(({ scope, subject, period }) => `${scope} ${subject} ${period}`);

  it("counts for its session and those above it, for a person or a trigger, and for project and account", () => {
    expect(keys([session, { ...session, id: "above" }])).toEqual([
      "session s ",
      "session above ",
      "person ada 2026-11",
      "project p 2026-11",
      "account  2026-11",
    ]);
    expect(keys([{ ...session, triggerSlug: "nightly" }])[1]).toBe("trigger p/nightly 2026-11-30");
    expect(keys([])).toEqual([]);
  });

  it("that a person pays for herself counts for the sessions and for her", () => {
    const fired = { ...session, triggerSlug: "nightly" };
    expect(keys([fired], true)).toEqual(["session s ", "person ada 2026-11"]);
  });
});
