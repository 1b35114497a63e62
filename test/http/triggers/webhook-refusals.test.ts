/** What the receiver turned away: seen by the people of the project, never by the sender, and bounded. */
import { randomUUID } from "node:crypto";
import { request as httpRequest } from "node:http";
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Answer, TestService } from "../../support/service/service.ts";
import { asOperator, shareService } from "../../support/service/shared.ts";
import {
  deliver,
  eventually,
  expectStatus,
  fields,
  hmac,
  listOf,
  makeAccount,
  makeHookProject,
  SECRET,
  webhookEntry,
  type Fields,
} from "../../support/service/requests.ts";

const MANIFEST = [
  webhookEntry("push"),
  webhookEntry("off", "Go", "enabled = false"),
  webhookEntry("broken", "Go", "unknown = 1"),
  `[[triggers]]\nslug = "bare"\ntype = "webhook"\nprompt = "Go"\nsecret_env = "NOT_SET"\n`,
  `[[triggers]]\nslug = "nightly"\ntype = "cron"\nprompt = "Go"\ncron = "0 0 2 * * *"\n`,
].join("\n");
const WRONG = "sha256=" + hmac("{}", "another secret");

let service: TestService;
let pid = "";
beforeAll(async () => {
  service = await shareService();
  pid = await makeHookProject(service, MANIFEST);
});
afterAll(() => service.close());

const list = async (project: string, query = ""): Promise<readonly Fields[]> =>
  listOf(
    expectStatus(await service.request("GET", `/v1/projects/${project}/webhook-refusals${query}`), 200),
    "webhook_refusals",
  );

/** The newest refusals, once there are so many. */
const refusals = (project: string, count: number): Promise<readonly Fields[]> =>
  eventually(async () => {
    const rows = await list(project, "?limit=200");
    expect(rows.length).toBeGreaterThanOrEqual(count);
    return rows;
  });

const refusalOf = (delivery: string, project = pid): Promise<Fields> =>
  eventually(async () => {
    const row = (await list(project)).find(({ delivery_id: id }) => id === delivery);
    if (row === undefined) throw new Error("the row does not exist yet");
    return row;
  });

const sent = async (slug: string, headers: Readonly<Record<string, string>>): Promise<[Answer, Fields]> => {
  const delivery = randomUUID();
  const answer = await deliver(service, `${pid}/${slug}`, {
    body: '{"a": 1}',
    headers: { "x-github-delivery": delivery, ...headers },
  });
  return [answer, await refusalOf(delivery)];
};

describe("a webhook that was refused", () => {
  it("is on record with the details that a user needs to correct it, without body and signature", async () => {
    const [answer, refusal] = await sent("push", {
      "x-hub-signature-256": WRONG,
      "x-github-event": "push",
      "x-forwarded-for": "192.0.2.1",
    });
    expect(answer.status).toBe(401);
    expect(refusal).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      at: expect.stringMatching(/Z$/),
      slug: "push",
      status: 401,
      code: "invalid_signature",
      reason: "signature_mismatched",
      delivery_id: refusal["delivery_id"],
      event: "push",
      declared_bytes: 8,
      body_bytes: 8,
      address: expect.stringContaining("127.0.0.1"),
      forwarded_for: "192.0.2.1",
    });
    expect(JSON.stringify(refusal)).not.toContain(WRONG.slice(7));
  });

  it.each([
    ["push", { "x-hub-signature-256": "" }, 401, "signature_malformed"],
    ["push", { "x-platform-signature": "sha1=00" }, 401, "signature_malformed"],
    ["bare", {}, 409, "secret_not_configured"],
    ["off", {}, 404, "trigger_disabled"],
    ["nightly", {}, 404, "not_a_webhook_trigger"],
    ["broken", {}, 404, "trigger_in_error"],
    ["pushh", {}, 404, "unknown_trigger"],
    ["Push", {}, 400, "invalid_webhook_address"],
  ])("at %s with %j is %i, and the users of the project see: %s", async (slug, headers, status, reason) => {
    const [answer, refusal] = await sent(slug, headers);
    expect([answer.status, refusal["status"], refusal["reason"]]).toEqual([status, status, reason]);
    expect(refusal).toMatchObject({ slug, code: fields(answer)["code"] });
  });

  it("without a signature is recorded with that reason", async () => {
    const delivery = randomUUID();
    const target = `/v1/webhooks/projects/${pid}/push`;
    const headers = { "x-github-delivery": delivery };
    expectStatus(await service.request("POST", target, { body: "{}", token: null, headers }), 401);
    expect(await refusalOf(delivery)).toMatchObject({ reason: "signature_missing", body_bytes: 2 });
  });

  it("of a paused or archived project is the same 404 to its sender, and its users see the reason [W29]", async () => {
    const own = await makeHookProject(service);
    const bodies = new Set<string>([(await deliver(service, `${pid}/unknown`)).text]);
    for (const [change, reason] of [
      [{ triggers_paused: true }, "triggers_paused"],
      [{ status: "archived" }, "project_archived"],
    ] as const) {
      expectStatus(await service.request("PATCH", `/v1/projects/${own}`, { body: change }), 200);
      const delivery = randomUUID();
      const headers = { "x-platform-signature": hmac("{}"), "x-github-delivery": delivery };
      const answer = expectStatus(await deliver(service, `${own}/push`, { body: "{}", headers }), 404);
      bodies.add(answer.text);
      expect(await refusalOf(delivery, own)).toMatchObject({ status: 404, code: "not_found", reason });
    }
    expect(bodies.size).toBe(1);
  });

  it("stores the sender's text bounded and on one line", async () => {
    const long = "x".repeat(3000);
    const slug = encodeURIComponent(`A\u0000\n${long}`);
    const headers = { "x-github-event": long, "x-forwarded-for": long, "x-platform-signature": WRONG };
    expectStatus(await deliver(service, `${pid}/${slug}`, { body: "{}", headers }), 400);
    const [row] = await eventually(async () => {
      const found = (await list(pid)).filter(({ event }) => String(event).startsWith("xxx"));
      expect(found).toHaveLength(1);
      return found;
    });
    expect(String(row?.["slug"])).toBe(`A  ${"x".repeat(125)}`);
    expect([String(row?.["event"]).length, String(row?.["forwarded_for"]).length]).toEqual([200, 200]);
  });

  it("for its size states the announced size", async () => {
    const delivery = randomUUID();
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const asked = httpRequest(
        {
          port: service.port,
          host: "127.0.0.1",
          method: "POST",
          path: `/v1/webhooks/projects/${pid}/push`,
          headers: { "content-length": 26_214_401, "x-github-delivery": delivery },
        },
        (response) => {
          response.resume();
          resolve(response.statusCode);
        },
      );
      asked.on("error", reject);
      asked.flushHeaders();
    });
    expect(status).toBe(413);
    const row = await refusalOf(delivery);
    expect(row).toMatchObject({ reason: "body_too_large", declared_bytes: 26_214_401, body_bytes: null });
  });
});

describe("the record of refused webhooks", () => {
  it("is listed newest first, page by page, only to users with access to the project", async () => {
    const own = await makeHookProject(service);
    for (let index = 0; index < 5; index += 1) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other, so that they have an order
      await deliver(service, `${own}/slug-${index}`);
    }
    const all = await refusals(own, 5);
    expect(all.map(({ slug }) => slug).toSorted()).toEqual([
      "slug-0",
      "slug-1",
      "slug-2",
      "slug-3",
      "slug-4",
    ]);
    const instants = all.map(({ at }) => String(at));
    expect(instants).toEqual(instants.toSorted().toReversed());
    const first = await service.request("GET", `/v1/projects/${own}/webhook-refusals?limit=2`);
    const cursor = String(fields(first)["next_cursor"]);
    const second = await list(own, `?limit=3&cursor=${cursor}`);
    expect([...listOf(first, "webhook_refusals"), ...second]).toEqual(all);
    expect((await list(own, "?slug=slug-3")).map(({ slug }) => slug)).toEqual(["slug-3"]);
    const target = `/v1/projects/${own}/webhook-refusals`;
    expect((await service.request("GET", target, { token: await makeAccount(service) })).status).toBe(404);
    expect((await service.request("GET", `${target}?cursor=x`)).status).toBe(400);
    expect((await service.request("GET", target, { token: null })).status).toBe(401);
  });

  it("leaves out accepted and filtered webhooks, those on the ledger, and all of unknown projects", async () => {
    const own = await makeHookProject(
      service,
      `${webhookEntry("push", "Go. {{ body.x }}")}\n${webhookEntry("some")}\n[webhooks.some]\nevents = ["push"]\n`,
    );
    expectStatus(await deliver(service, `${own}/push`), 202);
    expectStatus(await deliver(service, `${own}/some`), 200);
    expectStatus(await deliver(service, `${own}/push`, { body: { x: "x".repeat(100_000) } }), 500);
    const stranger = randomUUID();
    expectStatus(await deliver(service, `${stranger}/push`), 404);
    expectStatus(await deliver(service, `${own}/last`), 404);
    expect((await refusals(own, 1)).map(({ slug }) => slug)).toEqual(["last"]);
    const rows = await service.inside(
      Effect.flatMap(
        SqlClient.SqlClient,
        (sql) => sql`SELECT FROM webhook_refusals WHERE project_id = ${stranger}`,
      ),
    );
    expect(rows).toEqual([]);
  });

  it("counts every answer by its status and its code or outcome", async () => {
    const own = await makeHookProject(service);
    const headers = { "x-github-event": "ping" };
    await deliver(service, `${own}/push`);
    await deliver(service, `${own}/push`, { headers });
    await deliver(service, `${own}/push`, { headers: { "x-platform-signature": hmac("{}", `${SECRET}.`) } });
    const { text } = await asOperator(service).request("GET", "/metrics");
    for (const [status, answer] of [
      [202, "fired"],
      [200, "pong"],
      [401, "invalid_signature"],
      [404, "not_found"],
      [413, "body_too_large"],
    ]) {
      const labels = String.raw`(?=[^}]*answer="${answer}")(?=[^}]*status="${status}")`;
      expect(text).toMatch(new RegExp(String.raw`platform_webhooks_total\{${labels}[^}]*\} [1-9]`));
    }
  });
});
