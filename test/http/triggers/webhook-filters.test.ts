/** Deliveries that start nothing: pings, and what a trigger's filter does not match (`[webhooks.<slug>]`). */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Answer, TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";
import {
  deliver,
  expectStatus,
  fields,
  hmac,
  listOf,
  makeHookProject,
  webhookEntry,
  type Fields,
} from "../../support/service/requests.ts";

const FILTERED = { status: "skipped", reason: "filtered" };
const FILTER = '[webhooks.push]\nevents = ["push"]\nbranches = ["main", "release/*"]\n';
const MANIFEST = `${webhookEntry("push", "{{ body.ref }}{{ message.text }}")}\n${FILTER}\n${webhookEntry("any", "Zen: {{ body.zen }}")}
${webhookEntry("own", "Own: {{ body.ref }}")}\n[webhooks.own]\nown_pushes = true\ndeletions = true\nown_requests = true\n`;
const PUSHED = JSON.stringify({ ref: "refs/heads/main" });
const ELSEWHERE = JSON.stringify({ ref: "refs/heads/topic" });

let service: TestService;
let pid = "";
beforeAll(async () => {
  service = await shareService();
  pid = await makeHookProject(service, MANIFEST);
});
afterAll(() => service.close());

const send = (body: string, headers: Readonly<Record<string, string>> = {}, slug = "push"): Promise<Answer> =>
  deliver(service, `${pid}/${slug}`, { body, headers: { "x-github-event": "push", ...headers } });

const rowsOf = async (delivery: string): Promise<readonly Fields[]> => {
  const rows = listOf(await service.request("GET", `/v1/projects/${pid}/fires?limit=200`), "fires");
  return rows.filter(({ delivery_id: id }) => id === delivery);
};

const sessionCount = async (): Promise<number> =>
  listOf(await service.request("GET", `/v1/projects/${pid}/sessions?limit=200`), "sessions").length;

describe("a ping", () => {
  it("is answered, starts nothing and leaves no row, with or without a filter on its trigger", async () => {
    const before = await sessionCount();
    for (const slug of ["push", "any"]) {
      const delivery = randomUUID();
      const headers = { "x-github-event": "ping", "x-github-delivery": delivery };
      const answer = await send('{"zen": "Keep it simple."}', headers, slug);
      expect([answer.status, answer.json]).toEqual([200, { status: "pong" }]);
      expect(await rowsOf(delivery)).toEqual([]);
    }
    expect(await sessionCount()).toBe(before);
  });

  it("without a signature is 401, and 404 if nothing listens", async () => {
    const headers = { "x-github-event": "ping", "x-hub-signature-256": `sha256=${hmac("{}", "other")}` };
    expect((await deliver(service, `${pid}/push`, { body: "{}", headers })).status).toBe(401);
    expect((await deliver(service, `${pid}/nothing`, { body: "{}", headers })).status).toBe(404);
  });
});

describe("a filter", () => {
  it("lets matching events fire, and skips the rest with a row that gives the reason", async () => {
    expectStatus(await send(PUSHED), 202);
    for (const [body, event] of [
      [ELSEWHERE, "push"],
      [PUSHED, "create"],
      ["not json", "push"],
    ] as const) {
      const delivery = randomUUID();
      const answer = await send(body, { "x-github-event": event, "x-github-delivery": delivery });
      expect([answer.status, answer.json]).toEqual([200, FILTERED]);
      const rows = await rowsOf(delivery);
      expect(rows).toMatchObject([
        { ...FILTERED, kind: "webhook", session_id: null, attempts: 0, verified_with: "current" },
      ]);
      const kept = await service.request("GET", `/v1/projects/${pid}/fires/${String(rows[0]?.["id"])}`);
      expect(fields(kept)).toMatchObject({ prompt: null, request: { body } });
    }
  });

  it("is applied after the signature, so that strangers learn nothing about it", async () => {
    const signed = { "x-platform-signature": hmac("{}", "other") };
    expect((await send(ELSEWHERE, signed)).status).toBe(401);
  });

  it("does not prevent a user from replaying a rejected event", async () => {
    const delivery = randomUUID();
    await send(ELSEWHERE, { "x-github-delivery": delivery });
    const [row] = await rowsOf(delivery);
    const replayed = await service.request("POST", `/v1/projects/${pid}/fires/${String(row?.["id"])}/replay`);
    expectStatus(replayed, 202);
    expectStatus(
      await service.request("POST", `/v1/projects/${pid}/triggers/push/fire`, { body: { text: "By hand" } }),
      202,
    );
  });

  it("is shown with its trigger", async () => {
    const listing = await service.request("GET", `/v1/projects/${pid}/triggers`);
    const [push, any] = listOf(listing, "triggers");
    const parts = { events: ["push"], branches: ["main", "release/*"], if: null, unless: null };
    const defaults = { deletions: false, own_pushes: false, own_requests: false, own_comments: false };
    expect(push?.["filter"]).toEqual({ ...parts, ...defaults });
    expect(any).not.toHaveProperty("filter");
  });
});

describe("a form", () => {
  it("renders and filters as its JSON, and is stored, and replayed, unchanged", async () => {
    const body = new URLSearchParams({ payload: PUSHED }).toString();
    const form = { "content-type": "application/x-www-form-urlencoded" };
    const sid = String(fields(expectStatus(await send(body, form), 202))["session_id"]);
    const session = fields(await service.request("GET", `/v1/projects/${pid}/sessions/${sid}`));
    expect(session["initial_prompt"]).toBe("refs/heads/main");
    const fire = `/v1/projects/${pid}/fires/${String(session["fire_id"])}`;
    expect(fields(await service.request("GET", fire))["request"]).toMatchObject({ body });
    const replayed = fields(expectStatus(await service.request("POST", `${fire}/replay`), 202));
    const other = await service.request(
      "GET",
      `/v1/projects/${pid}/sessions/${String(replayed["session_id"])}`,
    );
    expect(fields(other)["initial_prompt"]).toBe("refs/heads/main");
  });
});

const preview = async (body: Fields): Promise<Fields> =>
  fields(
    expectStatus(
      await service.request("POST", `/v1/projects/${pid}/triggers/push/preview`, {
        body: { kind: "webhook", ...body },
      }),
      200,
    ),
  );
const event = (name: string) => ({ headers: { "X-GitHub-Event": name } });

describe("a push to the branch of a session", () => {
  it("starts nothing and has a row, unless the filter asks for it or the project has no such session", async () => {
    const { session_id: id } = fields(expectStatus(await send(PUSHED, {}, "any"), 202));
    const body = JSON.stringify({ ref: `refs/heads/${String(id)}`, before: "0".repeat(40) });
    const delivery = randomUUID();
    const headers = { "x-github-delivery": delivery };
    const skipped = { status: "skipped", reason: "own_push" };
    const answer = await send(body, headers, "any");
    expect([answer.status, answer.json]).toEqual([200, skipped]);
    expect(await rowsOf(delivery)).toMatchObject([{ ...skipped, session_id: null }]);
    const again = await send(body, headers, "any");
    expect(again).toMatchObject({ status: 200, json: { ...skipped, duplicate: true } });

    expect(fields(expectStatus(await send(body, {}, "own"), 202))["status"]).toBe("fired");
    const unknown = JSON.stringify({ ref: `refs/heads/${randomUUID()}` });
    expect(fields(expectStatus(await send(unknown, {}, "any"), 202))["status"]).toBe("fired");
    // Another project may have the same repository.
    const elsewhere = await makeHookProject(service);
    expect(fields(await deliver(service, `${elsewhere}/push`, { body }))).toEqual(skipped);

    const request = { kind: "webhook", body: JSON.parse(body) as Fields, ...event("push") };
    const target = `/v1/projects/${pid}/triggers/any/preview`;
    const described = await service.request("POST", target, { body: request });
    expect(fields(expectStatus(described, 200))["outcome"]).toBe("own_push");
  });
});

describe("a delivery about the service's own act", () => {
  it("starts nothing and has a row, unless the filter asks for it; a merge fires", async () => {
    const { session_id: id } = fields(expectStatus(await send(PUSHED, {}, "any"), 202));
    const outcome = async (slug: string, name: string, body: object) =>
      fields(await send(JSON.stringify(body), { "x-github-event": name }, slug));
    const gone = { ref: "refs/heads/topic", after: "0".repeat(40), deleted: true };
    const opened = { action: "opened", pull_request: { number: 1, head: { ref: String(id) } } };
    const merged = { ...opened, action: "closed" };
    expect(await outcome("any", "push", gone)).toEqual({ status: "skipped", reason: "deletion" });
    expect(await outcome("any", "pull_request", opened)).toEqual({
      status: "skipped",
      reason: "own_request",
    });
    expect(await outcome("any", "pull_request", merged)).toMatchObject({ status: "fired" });
    expect(await outcome("own", "push", gone)).toMatchObject({ status: "fired" });
    expect(await outcome("own", "pull_request", opened)).toMatchObject({ status: "fired" });
    const foreign = { ...opened, pull_request: { number: 1, head: { ref: randomUUID() } } };
    expect(await outcome("any", "pull_request", foreign)).toMatchObject({ status: "fired" });
  });
});

describe("a preview", () => {
  it("states the result of the delivery", async () => {
    const pushed = JSON.parse(PUSHED) as Fields;
    expect(await preview({ body: pushed, ...event("push") })).toMatchObject({
      outcome: "fires",
      prompt: "refs/heads/main",
      variables: { body: pushed },
    });
    expect((await preview({ body: pushed, ...event("create") }))["outcome"]).toBe("filtered");
    expect((await preview({ body: JSON.parse(ELSEWHERE), ...event("push") }))["outcome"]).toBe("filtered");
    expect((await preview({ body: pushed }))["outcome"]).toBe("filtered");
    expect((await preview({ body: pushed, ...event("ping") }))["outcome"]).toBe("pong");
    expect((await preview({ kind: "manual" }))["outcome"]).toBe("fires");
  });

  it("reads a form as the receiver does", async () => {
    const headers = { "content-type": "application/x-www-form-urlencoded", "x-github-event": "push" };
    const body = new URLSearchParams({ payload: PUSHED }).toString();
    expect(await preview({ body, headers })).toMatchObject({ outcome: "fires", prompt: "refs/heads/main" });
    expect(await preview({ body: "a=1", headers })).toMatchObject({
      outcome: "filtered",
      variables: { body: { raw: "a=1" } },
    });
    expect(await preview({ body, ...event("push") })).toMatchObject({ variables: { body } });
  });
});

it("a fire by hand of an archived project is refused with what to do", async () => {
  const own = await makeHookProject(service);
  const fired = await deliver(service, `${own}/push`);
  const sid = String(fields(expectStatus(fired, 202))["session_id"]);
  const session = fields(await service.request("GET", `/v1/projects/${own}/sessions/${sid}`));
  await service.request("PATCH", `/v1/projects/${own}`, { body: { status: "archived" } });
  const refused = {
    error: "The project is archived. Reactivate it first, in its settings or by its `status`.",
    code: "project_not_active",
  };
  for (const path of [`triggers/push/fire`, `fires/${String(session["fire_id"])}/replay`]) {
    const answer = await service.request("POST", `/v1/projects/${own}/${path}`, { body: {} });
    expect([answer.status, answer.json]).toEqual([409, refused]);
  }
  const unknown = await service.request("POST", `/v1/projects/${own}/triggers/none/fire`, { body: {} });
  expect(unknown.status).toBe(404);
});
