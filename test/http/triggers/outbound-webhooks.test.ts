/** Outbound webhooks over the API, and what real receivers get. */
import { randomBytes, randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { OUTBOUND_EVENTS } from "../../../src/features/notifications/rules/events.ts";
import {
  errorCode,
  eventually,
  expectStatus,
  fields,
  issuesOf,
  listOf,
  makeProject,
  runSession,
  stopSession,
  type Fields,
} from "../../support/service/requests.ts";
import { readEvents } from "../../support/service/event-stream.ts";
import { startTestService, type TestService } from "../../support/service/service.ts";
import { answering, ReceiverServer, type Received } from "../../support/servers/receiver.ts";
import { auditOf } from "../people/audit-rows.ts";

let service: TestService;
let receiver: ReceiverServer;
let pid = "";
/** How many projects were made: each has a name of its own. */
let projectCount = 0;
beforeAll(async () => {
  receiver = await ReceiverServer.open();
  // Its receivers are allowed, and its links are compared.
  service = await startTestService({
    PLATFORM_WEBHOOK_ALLOW_HOSTS: "127.0.0.1",
    PLATFORM_PUBLIC_URL: "https://platform.example.org",
    PLATFORM_TIER_CAPS: '{"free": 1000}',
  });
});
beforeEach(async () => {
  receiver.behaviour = answering(204);
  projectCount += 1;
  pid = await makeProject(service, { name: `greeter & <co> ${projectCount}` });
});
afterAll(async () => {
  await service.close();
  await receiver.close();
});

const at = (rest = "") => `/v1/projects/${pid}/webhooks${rest}`;
const add = async (fieldsOf: Fields = {}): Promise<Fields> =>
  fields(
    expectStatus(
      await service.request("POST", at(), {
        body: { url: `${receiver.url}/${randomUUID()}`, events: OUTBOUND_EVENTS, ...fieldsOf },
      }),
      201,
    ),
  );
const pathOf = (webhook: Fields): string => new URL(String(webhook["url"])).pathname;
const get = async (id: unknown): Promise<Fields> =>
  fields(expectStatus(await service.request("GET", at(`/${String(id)}`)), 200));
const deliveriesOf = async (id: unknown): Promise<readonly Fields[]> =>
  listOf(expectStatus(await service.request("GET", at(`/${String(id)}/deliveries`)), 200), "deliveries");

/** The requests at a receiver's path, once there are so many. */
const receivedAt = (path: string, count: number): Promise<readonly Received[]> =>
  eventually(() => {
    const found = receiver.received.filter((request) => request.path === path);
    expect(found.length).toBeGreaterThanOrEqual(count);
    return found;
  });
const verified = (secret: unknown, { body, headers }: Received): unknown =>
  new Webhook(String(secret)).verify(body, headers as Record<string, string>);

/** Ends a session, which is an event. */
const happen = async (): Promise<string> => {
  const sid = await runSession(service, pid);
  await stopSession(service, pid, sid);
  return sid;
};

describe("an outbound webhook", () => {
  it("gets each event that it wants as a signed, small message with a link", async () => {
    const webhook = await add({ events: ["session.stopped"] });
    const sid = await happen();
    const [request] = await receivedAt(pathOf(webhook), 1);
    if (request === undefined) return expect.unreachable();
    expect(verified(webhook["secret"], request)).toEqual({
      type: "session.stopped",
      timestamp: expect.stringMatching(/Z$/) as string,
      data: {
        project_id: pid,
        project_name: `greeter & <co> ${projectCount}`,
        session_id: sid,
        stop_reason: "requested",
        url: `https://platform.example.org/#/projects/${pid}/sessions/${sid}`,
      },
    });
    expect(request.headers["content-type"]).toBe("application/json");
    const [delivery] = await eventually(async () => {
      const found = await deliveriesOf(webhook["id"]);
      expect(found[0]).toMatchObject({ status: "delivered" });
      return found;
    });
    expect(delivery).toMatchObject({
      event_id: request.headers["webhook-id"],
      type: "session.stopped",
      tries: 1,
      next_try_at: null,
      last_try: { status: 204, error: null, answer: "" },
      data: { session_id: sid },
    });
    expect((await get(webhook["id"]))["last_delivery"]).toEqual(delivery);
    expect(await deliveriesOf(webhook["id"])).toHaveLength(1);
  });

  it("shows its secret once, and is stored sealed", async () => {
    const secret = `whsec_${randomBytes(24).toString("base64")}`;
    const made = await add({ secret });
    expect(made["secret"]).toBe(secret);
    const fresh = await add();
    expect(fresh["secret"]).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    const answers = [
      await service.request("GET", at()),
      await service.request("GET", at(`/${String(made["id"])}`)),
      await service.request("GET", at(`/${String(made["id"])}/deliveries`)),
    ];
    for (const { text } of answers) expect(text).not.toContain("whsec_");
    const stored = await service.inside(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient;
        return yield* sql`SELECT outbound_webhooks::text AS row, encode(envelope, 'escape') AS envelope
          FROM outbound_webhooks`;
      }),
    );
    expect(JSON.stringify(stored)).not.toContain(secret.slice(6, 20));
    expect(service.logs.join("\n")).not.toContain(secret.slice(6, 20));
  });

  it("is signed by both secrets while one replaces the other", async () => {
    const webhook = await add({ events: ["session.stopped"] });
    const path = pathOf(webhook);
    const rotated = fields(
      expectStatus(await service.request("POST", at(`/${String(webhook["id"])}/rotate`), { body: {} }), 200),
    );
    expect(rotated["secret"]).not.toBe(webhook["secret"]);
    expect((await get(webhook["id"]))["previous_secret_valid_until"]).toBe(rotated["previous_valid_until"]);
    await happen();
    const [request] = await receivedAt(path, 1);
    if (request === undefined) return expect.unreachable();
    for (const secret of [rotated["secret"], webhook["secret"]])
      expect(verified(secret, request)).toMatchObject({ type: "session.stopped" });
    const stranger = `whsec_${randomBytes(32).toString("base64")}`;
    expect(() => verified(stranger, request)).toThrow(/No matching signature/);
  });

  it("for a chat gets one escaped line with a link, unsigned, and its address is never shown", async () => {
    const webhook = async (format: string) => {
      const url = `${receiver.url}/services/T000/${randomUUID()}`;
      const made = await add({ url, format, events: ["session.stopped"] });
      expect(made["secret"]).toBe(null);
      expect(made["url"]).toBe(`${receiver.url}/…${url.slice(-4)}`);
      expect((await service.request("GET", at())).text).not.toContain(new URL(url).pathname);
      return { id: made["id"], path: new URL(url).pathname };
    };
    const [slack, discord] = [await webhook("slack"), await webhook("discord")];
    const sid = await happen();
    const link = `https://platform.example.org/#/projects/${pid}/sessions/${sid}`;
    const [first] = await receivedAt(slack.path, 1);
    expect(JSON.parse(first?.body ?? "")).toEqual({
      text: `greeter &amp; &lt;co&gt; ${projectCount}: a session stopped (requested). <${link}|Open>`,
    });
    expect(first?.headers["webhook-signature"]).toBe(undefined);
    const [second] = await receivedAt(discord.path, 1);
    expect(JSON.parse(second?.body ?? "")).toEqual({
      content: `greeter & \\<co\\> ${projectCount}\\: a session stopped \\(requested\\). <${link}>`,
      allowed_mentions: { parse: [] },
    });
    const rotate = await service.request("POST", at(`/${String(slack.id)}/rotate`), { body: {} });
    expect([rotate.status, errorCode(rotate)]).toEqual([409, "no_signature"]);
  });

  it("can be tested: the answer comes back, and no delivery is left", async () => {
    const webhook = await add({ events: ["queue.full"] });
    const test = async () =>
      fields(expectStatus(await service.request("POST", at(`/${String(webhook["id"])}/test`)), 200));
    receiver.behaviour = answering(418, "I am a teapot");
    expect(await test()).toMatchObject({
      delivered: false,
      status: 418,
      error: null,
      answer: "I am a teapot",
    });
    receiver.behaviour = answering(200, "ok");
    expect(await test()).toMatchObject({ delivered: true, status: 200, answer: "ok" });
    const requests = await receivedAt(pathOf(webhook), 2);
    expect(verified(webhook["secret"], requests[1] ?? expect.unreachable())).toMatchObject({
      type: "webhook.test",
      data: { project_id: pid },
    });
    expect(await deliveriesOf(webhook["id"])).toEqual([]);
  });

  it("that fails is tried again under the same id, and can be sent again by hand", async () => {
    const webhook = await add({ events: ["session.stopped"] });
    const path = pathOf(webhook);
    receiver.behaviour = answering(500, "broken", { "retry-after": "7200" });
    await happen();
    const delivery = await eventually(async () => {
      const [found] = await deliveriesOf(webhook["id"]);
      expect(found?.["last_try"]).toMatchObject({ status: 500, answer: "broken" });
      return found ?? {};
    });
    expect(delivery).toMatchObject({ status: "pending", tries: 1 });
    // The second try is due after 5 s, but the receiver asked for two hours.
    const wait = Date.parse(String(delivery["next_try_at"])) - Date.parse(String(delivery["created_at"]));
    expect(wait).toBeGreaterThan(7_190_000);
    expect((await get(webhook["id"]))["failing_since"]).toMatch(/Z$/);
    receiver.behaviour = answering(200, "fine");
    const replay = at(`/${String(webhook["id"])}/deliveries/${String(delivery["id"])}/replay`);
    expect(fields(expectStatus(await service.request("POST", replay), 202))["status"]).toBe("pending");
    await eventually(async () =>
      expect((await deliveriesOf(webhook["id"]))[0]).toMatchObject({ status: "delivered", tries: 2 }),
    );
    const ids = receiver.ids(path);
    expect([ids.length, new Set(ids).size]).toEqual([2, 1]);
    expect((await get(webhook["id"]))["failing_since"]).toBe(null);
    const unknown = at(`/${String(webhook["id"])}/deliveries/${randomUUID()}/replay`);
    expectStatus(await service.request("POST", unknown), 404);
    expect(await auditOf(service, "webhook.delivery_replayed")).toEqual([
      expect.objectContaining({ target: webhook["id"], changes: { delivery_id: delivery["id"] } }),
    ]);
  });

  it("is changed, disabled and enabled, and gets no event of the time between", async () => {
    const webhook = await add({ events: ["queue.full"] });
    const id = String(webhook["id"]);
    const patch = async (body: Fields) =>
      fields(expectStatus(await service.request("PATCH", at(`/${id}`), { body }), 200));
    const path = `/${randomUUID()}`;
    expect(await patch({ url: `${receiver.url}${path}?token=x`, events: ["session.stopped"] })).toMatchObject(
      {
        url: `${receiver.url}${path}?…`,
        events: ["session.stopped"],
      },
    );
    expect(await patch({ status: "disabled" })).toMatchObject({
      status: "disabled",
      disabled_reason: "requested",
    });
    // Events count as past once readers see them: a statement that runs elsewhere holds new ones back.
    const events = await readEvents(`${service.url}/v1/projects/${pid}/events`, { token: service.token });
    const missed = await happen();
    await events.until(({ data }) =>
      [missed, '"stopped"'].every((text) => JSON.stringify(data).includes(text)),
    );
    events.close();
    expect(await patch({ status: "enabled" })).toMatchObject({ status: "enabled", disabled_reason: null });
    const sid = await happen();
    const [request] = await receivedAt(`${path}?token=x`, 1);
    expect(verified(webhook["secret"], request ?? expect.unreachable())).toMatchObject({
      data: { session_id: sid },
    });
    expectStatus(await service.request("DELETE", at(`/${id}`)), 204);
    expectStatus(await service.request("GET", at(`/${id}`)), 404);
    expectStatus(await service.request("DELETE", at(`/${id}`)), 404);
  });
});

describe("a request for an outbound webhook", () => {
  it("for a private address is refused with a sentence [O01]", async () => {
    const body = { url: "https://169.254.169.254/", events: ["queue.full"] };
    const answer = await service.request("POST", at(), { body });
    expect(answer.status).toBe(400);
    expect(issuesOf(answer)).toEqual([{ path: "url", message: expect.stringMatching(/private/) as string }]);
  });

  it("for a public host is accepted without a look at its addresses, which each request checks", async () => {
    expect((await add({ url: "https://hooks.example.org/in" }))["url"]).toBe("https://hooks.example.org/in");
  });

  it("must name known events, a valid secret, and a signature only where there is one", async () => {
    const url = `${receiver.url}/`;
    for (const body of [
      { url, events: ["session.began"] },
      { url, events: ["queue.full"], secret: "whsec_short" },
      { url, events: ["queue.full"], format: "slack", secret: `whsec_${randomBytes(32).toString("base64")}` },
    ])
      expectStatus(await service.request("POST", at(), { body }), 400);
  });

  it("counts in /metrics, by outcome and by what waits", async () => {
    const { text } = await service.request("GET", "/metrics");
    expect(text).toMatch(/^platform_outbound_requests_total\{outcome="delivered"\} [1-9]/m);
    expect(text).toMatch(/^platform_outbound_requests_total\{outcome="refused"\} [1-9]/m);
    expect(text).toMatch(/^platform_outbound_deliveries_waiting \d+$/m);
    expect(text).toMatch(/^platform_outbound_oldest_age_seconds \d/m);
  });
});
