import * as fc from "fast-check";
import * as Result from "effect/Result";
import { expect, test } from "vitest";
import {
  BODY_DEPTH_LIMIT,
  HEADER_VALUE_LIMIT,
  cronVariables,
  manualVariables,
  parseWebhookBody,
  renderPrompt,
  webhookVariables,
} from "../../../src/domain/trigger/prompt.ts";
import type { JsonObject, JsonValue } from "../../../src/domain/trigger/prompt.ts";

const seed = 20261120;
const render = (template: string, variables: JsonObject): string =>
  Result.getOrThrow(renderPrompt(template, variables));
const parse = (text: string): JsonValue => parseWebhookBody(Buffer.from(text));

// Variables by kind of fire -----------------------------------------------------------------------------------------

const cronTrigger = { slug: "nightly", type: "cron" } as const;
const webhookTrigger = { slug: "on-push", type: "webhook" } as const;
const at = Date.UTC(2026, 10, 20, 6, 30, 0, 123);

test("a cron fire has the specification's variables and no top-level fired_at", () => {
  const fire = { schedule: "0 0 2 * * *", timezone: "UTC", dueAtMs: at, lastFiredAtMs: at - 86_400_000 };
  expect(cronVariables(cronTrigger, fire)).toEqual({
    trigger: { slug: "nightly", type: "cron", kind: "git" },
    cron: {
      schedule: "0 0 2 * * *",
      timezone: "UTC",
      fired_at: "2026-11-20T06:30:00.123Z",
      last_fired_at: "2026-11-19T06:30:00.123Z",
    },
  });
  const first = cronVariables(cronTrigger, { ...fire, lastFiredAtMs: null });
  expect(render("[{{ cron.last_fired_at }}]", first)).toBe("[]");
});

test("a webhook fire has the specification's variables", () => {
  const headers = { contentType: "application/json", userAgent: undefined, forwardedFor: "203.0.113.7" };
  expect(webhookVariables(webhookTrigger, { firedAtMs: at, body: { a: 1 }, headers })).toEqual({
    trigger: { slug: "on-push", type: "webhook", kind: "git" },
    fired_at: "2026-11-20T06:30:00.123Z",
    body: { a: 1 },
    headers: { content_type: "application/json", user_agent: "", forwarded_for: "203.0.113.7" },
  });
});

test("a manual fire has the specification's variables", () => {
  const fire = { firedAtMs: at, actor: "user-1", text: "please", source: "page", lastFiredAtMs: at - 1000 };
  expect(manualVariables(webhookTrigger, fire)).toEqual({
    trigger: { slug: "on-push", type: "webhook", kind: "git" },
    fired_at: "2026-11-20T06:30:00.123Z",
    source: "manual",
    actor: "user-1",
    message: { text: "please", source: "page" },
  });
  const zoned = { ...cronTrigger, cron: "0 0 9 * * 1", timezone: "Europe/Berlin" };
  expect(manualVariables(zoned, fire)).toMatchObject({
    actor: "user-1",
    cron: {
      schedule: "0 0 9 * * 1",
      timezone: "Europe/Berlin",
      fired_at: "2026-11-20T06:30:00.123Z",
      last_fired_at: "2026-11-20T06:29:59.123Z",
    },
  });
});

test("variables of another kind of fire render as empty text [P10]", () => {
  const template = "[{{cron.fired_at}}{{body.x}}{{headers.user_agent}}{{message.text}}{{actor}}{{fired_at}}]";
  const cron = { schedule: "* * * * * *", timezone: "UTC", dueAtMs: at, lastFiredAtMs: null };
  const headers = { contentType: "c", userAgent: "u", forwardedFor: "f" };
  const manual = { firedAtMs: at, actor: "A", text: "T", source: "S", lastFiredAtMs: null };
  const iso = new Date(at).toISOString();
  expect(render(template, cronVariables(cronTrigger, cron))).toBe(`[${iso}]`);
  const webhook = webhookVariables(webhookTrigger, { firedAtMs: at, body: { x: 1 }, headers });
  expect(render(template, webhook)).toBe(`[1u${iso}]`);
  expect(render(template, manualVariables(webhookTrigger, manual))).toBe(`[TA${iso}]`);
});

test("header values are plain text on one line, cut at the limit [W37]", () => {
  const hostile = `a\r\nb\u0000<script>${"x".repeat(1_000_000)}`;
  const headers = { contentType: undefined, userAgent: undefined, forwardedFor: hostile };
  const value = render(
    "{{ headers.forwarded_for }}",
    webhookVariables(webhookTrigger, { firedAtMs: at, body: {}, headers }),
  );
  expect(value).toHaveLength(HEADER_VALUE_LIMIT);
  expect(value.startsWith("a  b <script>xxx")).toBe(true);
});

// Bodies --------------------------------------------------------------------------------------------------------------

const renderBody = (template: string, body: JsonValue): string => render(template, { body });

test("an empty body is {} [W12]", () => {
  expect(parseWebhookBody(new Uint8Array())).toEqual({});
  expect(parse("\ufeff")).toEqual({});
});

test.each(["nope", "{", '{"a":1} trailing', "a=1&b=2", " ", "{'a':1}", "NaN"])(
  "a body that is not JSON, %j, is kept as body.raw [W13]",
  (text) => {
    expect(parse(text)).toEqual({ raw: text });
  },
);

const FORM = "application/x-www-form-urlencoded";
const parseForm = (text: string, contentType = FORM): JsonValue =>
  parseWebhookBody(Buffer.from(text), contentType);
const encoded = (json: string): string => `payload=${encodeURIComponent(json).replaceAll("%20", "+")}`;

test("the JSON in a form's field payload is the body", () => {
  const json = '{"action": "opened", "title": "a+b & \u00e4 = 100 %"}';
  for (const text of [encoded(json), `x=1&${encoded(json)}&y=2`, encoded(`\ufeff${json}`)])
    expect(parseForm(text)).toEqual({ action: "opened", title: "a+b & \u00e4 = 100 %" });
  expect(parseForm(encoded(json), "Application/X-WWW-Form-Urlencoded; charset=utf-8")).toMatchObject({
    action: "opened",
  });
  expect(parseForm(encoded("5"))).toBe(5);
  expect(parseForm(encoded("null"))).toBeNull();
});

test("JSON under the content type of forms stays JSON", () => {
  expect(parseForm('{"payload": 1}')).toEqual({ payload: 1 });
});

test.each([
  "a=1",
  "payload",
  "payload=",
  "payload=nope",
  "payload=%7",
  "payload=%ff",
  "apayload=5",
  "payload=1&payload=2",
  "a=1&payload=1&b=2&payload=2",
  encoded("[".repeat(BODY_DEPTH_LIMIT + 1) + "]".repeat(BODY_DEPTH_LIMIT + 1)),
])("a form without one readable payload, %j, is kept as body.raw", (text) => {
  expect(parseForm(text)).toEqual({ raw: text });
});

test.each([undefined, "", "text/plain", "application/json", "application/x-www-form-urlencoded-x"])(
  "a payload under the content type %j is not a form",
  (contentType) => {
    expect(parseWebhookBody(Buffer.from("payload=%7B%7D"), contentType)).toEqual({ raw: "payload=%7B%7D" });
  },
);

test("bytes that are not UTF-8 become body.raw with replacement characters [W14]", () => {
  expect(parseWebhookBody(Buffer.from([0x7b, 0xff, 0x7d]))).toEqual({ raw: "{\ufffd}" });
  // Its text would parse, but it is not what was sent.
  expect(parseWebhookBody(Buffer.from('{"a":"\u00ff"}', "latin1"))).toEqual({ raw: '{"a":"\ufffd"}' });
});

test("a replacement character in the request is kept [W14]", () => {
  expect(parse('{"a":"\ufffd"}')).toEqual({ a: "\ufffd" });
});

test("a byte order mark is stripped [W15]", () => {
  expect(parse('\ufeff{"a":1}')).toEqual({ a: 1 });
});

test.each(["5", '"text"', "[1,2]", "null", "true"])("a top-level %s renders as itself [W16]", (json) => {
  const body = parse(json);
  expect(renderBody("[{{ body.x }}]", body)).toBe("[]");
  expect(renderBody("{{ body }}", body)).toBe(json === "null" ? "" : json.replaceAll('"', ""));
});

test("a compressed body is not inflated but kept as text [W19]", () => {
  const body = parseWebhookBody(Buffer.from([0x1f, 0x8b, 0x08, 0x00]));
  expect(body).toEqual({ raw: "\u001f\ufffd\u0008\0" });
});

const nested = (levels: number): string => `${"[".repeat(levels)}${"]".repeat(levels)}`;

test("a body that is nested too deeply is kept as text [W22]", () => {
  expect(renderBody("{{ body }}", parse(nested(BODY_DEPTH_LIMIT)))).toBe(nested(BODY_DEPTH_LIMIT));
  const deeper = nested(BODY_DEPTH_LIMIT + 1);
  expect(parse(deeper)).toEqual({ raw: deeper });
  const million = `${'{"a":'.repeat(1_000_000)}1${"}".repeat(1_000_000)}`;
  expect(parse(million)).toEqual({ raw: million });
});

test("keys named like prototypes are own keys and change nothing [W23]", () => {
  const before = Object.getOwnPropertyNames(Object.prototype);
  const body = parse('{"__proto__":{"polluted":"yes"},"constructor":{"prototype":{"polluted":"also"}}}');
  expect(renderBody("{{ body.polluted }}|{{ body.__proto__.polluted }}", body)).toBe("|yes");
  expect(renderBody("{{ body.constructor.prototype.polluted }}", body)).toBe("also");
  expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(before);
  expect("polluted" in {}).toBe(false);
});

test("numbers are doubles and the last of repeated keys counts, every time [W24]", () => {
  const body = parse('{"a":1,"a":2,"id":12345678901234567890,"big":1e400,"f":1.10,"z":-0}');
  const template = "{{body.a}} {{body.id}} {{body.big}} {{body.f}} {{body.z}}";
  expect(renderBody(template, body)).toBe("2 12345678901234567000 Infinity 1.1 0");
  expect(renderBody(template, body)).toBe(renderBody(template, body));
});

test("any JSON within the depth limit renders as the same JSON", () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 8 }), (json) => {
      const value: unknown = JSON.parse(json);
      if (typeof value !== "object" || value === null) return;
      expect(parse(json)).toEqual(value);
      expect(renderBody("{{ body }}", parse(json))).toBe(JSON.stringify(value).replaceAll("\0", ""));
    }),
    { seed },
  );
});
