import { expect, test } from "vitest";
import { cronVariables, webhookVariables } from "../../../src/domain/trigger/prompt.ts";
import { fireTitle } from "../../../src/domain/trigger/title.ts";

const common = { slug: "nightly", name: "Nightly", prompt: "p", agent: "default", enabled: true } as const;
const webhook = { ...common, type: "webhook", secretEnv: "S" } as const;
const cron = { ...common, type: "cron", cron: "0 0 1 * * *", timezone: "Asia/Tokyo" } as const;
const headers = { contentType: undefined, userAgent: undefined, forwardedFor: undefined };
const delivery = (title: string) =>
  webhookVariables(webhook, { firedAtMs: 0, body: { issue: { number: 12, title } }, headers });
const TITLE = "Triage #{{ body.issue.number }} {{ body.issue.title }}";

test("a title says what the fire is about, in one line of at most 200 characters", () => {
  expect(fireTitle({ ...webhook, title: TITLE }, delivery("Total is\n\u0007 rounded wrong"))).toBe(
    "Triage #12 Total is rounded wrong",
  );
  expect(fireTitle({ ...webhook, title: TITLE }, delivery("x".repeat(90_000)))).toHaveLength(200);
});

test("without a title, or with an empty one, it is the trigger's name, and the day of a schedule in its zone", () => {
  expect(fireTitle(webhook, delivery("a"))).toBe("Nightly");
  expect(fireTitle({ ...webhook, title: "{{ body.none }}" }, delivery("a"))).toBe("Nightly");
  const instant = { schedule: cron.cron, timezone: cron.timezone, lastFiredAtMs: null };
  const variables = cronVariables(cron, { ...instant, dueAtMs: Date.UTC(2026, 10, 30, 16) });
  expect(fireTitle(cron, variables)).toBe("Nightly, 2026-12-01");
});
