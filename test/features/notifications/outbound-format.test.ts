import { expect, it } from "vitest";
import { eventRecord, OUTBOUND_EVENTS } from "../../../src/features/notifications/rules/events.ts";
import type { OutboundMessage } from "../../../src/features/notifications/rules/outbound-event.ts";
import { formattedBody } from "../../../src/features/notifications/rules/outbound-format.ts";

const message = (project_name: string): OutboundMessage => ({
  id: "evt_1",
  type: "queue.full",
  at: 0,
  data: { project_name, limit: 2, url: "https://p/#/x" },
});

it("escapes what Slack and Discord would obey, and makes one line of a name", () => {
  const hostile = message("<!channel>\n@everyone [x](https://evil) *b*");
  expect(JSON.parse(formattedBody("slack", hostile))).toEqual({
    text: "&lt;!channel&gt; @everyone [x](https://evil) *b*: the queue is full (2). <https://p/#/x|Open>",
  });
  const { content, allowed_mentions: mentions } = JSON.parse(formattedBody("discord", hostile)) as Record<
    string,
    unknown
  >;
  expect(content).toContain("\\<!channel\\> \\@everyone \\[x\\]\\(https\\://evil\\) \\*b\\*");
  expect(mentions).toEqual({ parse: [] });
});

it("cuts a long name between characters, and keeps emoji and scripts whole", () => {
  expect(formattedBody("slack", message(`${"x".repeat(99)}😀`))).toContain(`"${"x".repeat(99)}:`);
  expect(formattedBody("slack", message("👩‍💻 می‌خواهم\u202e"))).toContain('"👩‍💻 می‌خواهم:');
});

it("writes the standard body the same each time", () => {
  expect(formattedBody("standard", message("a"))).toBe(
    '{"type":"queue.full","timestamp":"1970-01-01T00:00:00.000Z","data":{"project_name":"a","limit":2,"url":"https://p/#/x"}}',
  );
});

const told = (data: OutboundMessage["data"]) =>
  (
    JSON.parse(formattedBody("slack", { id: "e", type: "session.turn_ended", at: 0, data })) as {
      text: string;
    }
  ).text;

it("says how a turn ended, and in which session", () => {
  const ended = { project_name: "a", session_name: "Fix <it>", change_request: null, code: null, url: "u" };
  expect(told({ ...ended, state: "completed", change_request: 7 })).toBe(
    "a: the agent has finished in Fix &lt;it&gt;, change request 7 is open. <u|Open>",
  );
  expect(told({ ...ended, state: "failed", code: "no_model", session_name: null })).toBe(
    "a: the agent failed (no_model). <u|Open>",
  );
  expect(told({ ...ended, state: "interrupted" })).toBe(
    "a: the agent was interrupted in Fix &lt;it&gt;. <u|Open>",
  );
});

it.each(OUTBOUND_EVENTS)("says %s in words, though its row was written before a field existed", (type) => {
  const record = eventRecord(type);
  const fields = record.fields({ sessionId: null, data: {} });
  expect(record.sentence(fields)).not.toMatch(/undefined|null|NaN/);
});
