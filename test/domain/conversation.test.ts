import { expect, test } from "vitest";
import { addUsage, isClosed, NO_USAGE, SentStatus, WorkStatus } from "../../src/domain/conversation.ts";

test("knows which items are finished", () => {
  const open = [...SentStatus.literals, ...WorkStatus.literals].filter((status) => !isClosed(status));
  expect(open).toEqual(["queued", "sending", "pending", "running"]);
});

test("adds tokens and cost", () => {
  const usage = { input_tokens: 1, output_tokens: 2, cached_tokens: 3, cost_usd: 0.5 };
  expect(addUsage(usage, NO_USAGE)).toEqual(usage);
  expect(addUsage(usage, usage)).toEqual({
    input_tokens: 2,
    output_tokens: 4,
    cached_tokens: 6,
    cost_usd: 1,
  });
});
