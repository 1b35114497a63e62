import { expect, test } from "vitest";
import { NO_USAGE } from "../../../src/domain/conversation/conversation.ts";
import { addUsage, utcDay, oneCount, usageSince } from "../../../src/domain/conversation/usage.ts";

const usage = { input_tokens: 1, output_tokens: 2, cached_tokens: 3, cost_usd: 0.1 };

test("adds tokens and cost, and rounds dollars", () => {
  expect(addUsage(usage, NO_USAGE)).toEqual(usage);
  expect(addUsage(usage, { ...usage, cost_usd: 0.2 })).toEqual({
    input_tokens: 2,
    output_tokens: 4,
    cached_tokens: 6,
    cost_usd: 0.3,
  });
});

test("says what was used since", () => {
  expect(usageSince(null, usage)).toEqual(usage);
  expect(usageSince(usage, usage)).toEqual(NO_USAGE);
  expect(usageSince(usage, addUsage(usage, usage))).toEqual(usage);
  expect(usageSince(usage, null).input_tokens).toBe(-1);
});

const row = (day: string, model: string) => ({ day, model, usage });

test("counts a call once: what passed the service wins over what the runtime reports, and takes its cost", () => {
  const counted = { input_tokens: 10, output_tokens: 20, cached_tokens: 0, cost_usd: 0 };
  const passed = [{ day: "2026-02-01", model: "acme/large", usage: counted, calls: 2 }];
  const rows = oneCount(
    [
      row("2026-02-01", "acme/large"),
      row("2026-02-01", "large"),
      row("2026-02-01", "anthropic/x"),
      row("2026-01-31", "acme/large"),
    ],
    passed,
  );
  expect(rows).toEqual([
    { ...passed[0], calls: undefined, usage: { ...counted, cost_usd: 0.2 }, passed: passed[0] },
    { ...row("2026-02-01", "anthropic/x"), passed: null },
    { ...row("2026-01-31", "acme/large"), passed: null },
  ]);
});

test("names days in UTC", () => {
  expect(utcDay(Date.UTC(2026, 1, 1) - 1)).toBe("2026-01-31");
});
