/** The ledger over HTTP: one fire with what it came with, firing it again, cancelling it (api.md 4 "Ledger", "Queue"). */
import { randomBytes } from "node:crypto";
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DUTY_NAMES } from "../../../src/services/duties.ts";
import { startTestService, type Answer, type TestService } from "../../support/service/service.ts";
import { shareService } from "../../support/service/shared.ts";
import {
  deliver,
  eventually,
  expectStatus,
  fields,
  listOf,
  makeProject,
  putSecret,
  reached,
  runSession,
  SECRET,
  SECRET_NAME,
  stopSession,
  webhookEntry,
  type Fields,
} from "../../support/service/requests.ts";

const MANIFEST = [
  webhookEntry("push", "{{ body.n }}|{{ headers.user_agent }}|{{ message.text }}|{{ fired_at }}"),
  webhookEntry("huge", "{{ body.text }}"),
  `[[triggers]]
slug = "tick"
type = "cron"
cron = "* * * * * *"
prompt = "due {{ cron.fired_at }}"
`,
].join("\n");

let service: TestService;
let pid = "";
let elsewhere = "";
beforeAll(async () => {
  service = await shareService();
  pid = await makeProject(service, { files: { "platform.toml": MANIFEST } });
  elsewhere = await makeProject(service);
  await putSecret(service, pid, SECRET_NAME, SECRET);
});
afterAll(() => service.close());

const at = (rest: string, project = pid): string => `/v1/projects/${project}${rest}`;
const get = async (rest: string): Promise<Fields> =>
  fields(expectStatus(await service.request("GET", at(rest)), 200));
const replay = (id: unknown): Promise<Answer> => service.request("POST", at(`/fires/${String(id)}/replay`));

/** The fire of an answer that says `fired`. */
const fireOf = async (answer: Answer): Promise<Fields> => {
  const sid = String(fields(expectStatus(answer, 202))["session_id"]);
  const session = fields(await service.request("GET", at(`/sessions/${sid}`)));
  return { ...(await get(`/fires/${String(session["fire_id"])}`)), session };
};

const push = (body: string | Uint8Array, headers: Readonly<Record<string, string>> = {}): Promise<Answer> =>
  deliver(service, `${pid}/push`, { body, headers });

describe("one fire", () => {
  it("is shown with its request and its rendered prompt", async () => {
    const headers = { "user-agent": "sender/1", "x-forwarded-for": "10.0.0.1", "x-github-delivery": "seen" };
    const fire = await fireOf(await push('{"n": 7}', headers));
    expect(fire).toMatchObject({
      trigger_slug: "push",
      kind: "webhook",
      status: "fired",
      delivery_id: "seen",
      attempts: 1,
      request: {
        headers: { content_type: null, user_agent: "sender/1", forwarded_for: "10.0.0.1" },
        body: '{"n": 7}',
        encoding: "utf8",
      },
    });
    expect(fire["prompt"]).toMatch(/^7\|sender\/1\|\|\d{4}-/);
    expect(fire["prompt"]).toBe((fire["session"] as Fields)["initial_prompt"]);
  });

  it("with bytes that are not text is shown in base64, and a large one comes back whole", async () => {
    const bytes = Uint8Array.from([0xff, 0x00, 0xfe]);
    const binary = await fireOf(await push(bytes));
    expect(binary["request"]).toMatchObject({ body: "/wD+", encoding: "base64" });
    const large = JSON.stringify({ n: "x", filler: "abc ".repeat(100_000) });
    expect((await fireOf(await push(large)))["request"]).toMatchObject({ body: large, encoding: "utf8" });
  });

  it("by hand is shown with its message", async () => {
    const body = { text: "please", source: "chat" };
    const fire = await fireOf(await service.request("POST", at("/triggers/push/fire"), { body }));
    expect(fire).toMatchObject({ kind: "manual", request: { headers: null, encoding: "utf8" } });
    expect(JSON.parse(String((fire["request"] as Fields)["body"]))).toEqual(body);
  });

  it("of another project, or of none, is not found [T05]", async () => {
    const fire = await fireOf(await push("{}"));
    for (const target of [
      at(`/fires/${String(fire["id"])}`, elsewhere),
      at("/fires/00000000-0000-7000-8000-000000000000"),
    ]) {
      for (const [method, rest] of [
        ["GET", ""],
        ["POST", "/replay"],
        ["DELETE", ""],
      ] as const) {
        const answer = await service.request(method, target + rest);
        expect([answer.status, fields(answer)["code"]]).toEqual([404, "not_found"]);
      }
    }
  });

  it("is found by its trigger and by its status", async () => {
    const failed = await deliver(service, `${pid}/huge`, {
      body: JSON.stringify({ text: "x".repeat(100 * 1024) }),
      headers: { "x-platform-delivery": "too-large" },
    });
    expect([failed.status, fields(failed)["code"]]).toEqual([500, "prompt_too_large"]);
    const [row, ...others] = listOf(await service.request("GET", at("/triggers/huge/fires")), "fires");
    expect(others).toEqual([]);
    expect(row).toMatchObject({ status: "failed", reason: "prompt_too_large", session_id: null });
    const ofStatus = listOf(await service.request("GET", at("/fires?status=failed")), "fires");
    expect(ofStatus.map(({ id }) => id)).toEqual([row?.["id"]]);
    const none = await service.request("GET", at("/triggers/huge/fires?status=fired"));
    expect(listOf(none, "fires")).toEqual([]);
  });
});

describe("a replay", () => {
  it("of a webhook starts a session with the same prompt, with the least power, in a row that names the first", async () => {
    const headers = { "user-agent": "sender/2", "x-platform-delivery": "again" };
    const first = await fireOf(await push('{"n": 1}', headers));
    const second = await fireOf(await replay(first["id"]));
    expect(second).toMatchObject({
      kind: "webhook",
      status: "fired",
      replay_of: first["id"],
      delivery_id: "again",
      request: first["request"],
    });
    expect(String(second["prompt"]).split("|").slice(0, 3)).toEqual(["1", "sender/2", ""]);
    expect(second["prompt"]).not.toBe(first["prompt"]);
    const token = await service.request("GET", at(`/sessions/${String(second["session_id"])}`));
    expect(fields(token)["trigger_slug"]).toBe("push");
    // The delivery is still the first fire's.
    const repeated = fields(expectStatus(await push('{"n": 1}', headers), 202));
    expect(repeated).toMatchObject({ session_id: first["session_id"], duplicate: true });
    expect(repeated).toMatchObject({ duplicate_of: first["id"], replay: expect.stringContaining("replay") });
    const [row] = listOf(await service.request("GET", at("/fires?status=duplicate")), "fires");
    expect(row).toMatchObject({ duplicate_of: first["id"] });
    expect((await fireOf(await replay(row?.["id"])))["replay_of"]).toBe(first["id"]);
    // A replay can be fired again itself.
    expect((await fireOf(await replay(second["id"])))["replay_of"]).toBe(second["id"]);
  });

  it("of a manual fire repeats its message, in the name of the caller", async () => {
    const body = { text: "hello", source: "chat" };
    const first = await fireOf(await service.request("POST", at("/triggers/push/fire"), { body }));
    const second = await fireOf(await replay(first["id"]));
    expect(second).toMatchObject({ kind: "manual", replay_of: first["id"] });
    expect(String(second["prompt"]).split("|")[2]).toBe("hello");
  });

  it("with a message over the limits of a new one is refused", async () => {
    const body = { text: "hello", source: "chat" };
    const first = await fireOf(await service.request("POST", at("/triggers/push/fire"), { body }));
    for (const message of [
      { text: "x".repeat(64 * 1024 + 1) },
      { source: "x".repeat(201) },
      { text: 1 },
      [],
    ]) {
      await service.inside(
        Effect.gen(function* () {
          yield* (yield* SqlClient.SqlClient)`
            UPDATE fire_requests SET body = ${Buffer.from(JSON.stringify(message))}, encoding = 'identity'
            WHERE fire_id = ${String(first["id"])}`;
        }),
      );
      const refused = await replay(first["id"]);
      expect([refused.status, fields(refused)["code"]]).toEqual([422, "message_too_large"]);
    }
    const ledger = listOf(await service.request("GET", at("/triggers/push/fires?limit=200")), "fires");
    expect(ledger.filter(({ replay_of: of }) => of === first["id"])).toEqual([]);
  });

  it("of a due instant names that instant, and does not change the schedule", async () => {
    const tick = await eventually(async () => {
      const [fire] = listOf(await service.request("GET", at("/triggers/tick/fires?status=fired")), "fires");
      expect(fire).toBeDefined();
      return fire;
    });
    const again = await fireOf(await replay(tick?.["id"]));
    expect(again).toMatchObject({
      kind: "cron",
      scheduled_for: tick?.["scheduled_for"],
      replay_of: tick?.["id"],
      prompt: `due ${String(tick?.["scheduled_for"])}`,
      request: null,
    });
  });

  it("is refused if the request was too large to be stored", async () => {
    const body = randomBytes(1_100_000);
    const fire = await fireOf(await push(body, { "x-platform-delivery": "large" }));
    expect(fire["request"]).toBe(null);
    const answer = await replay(fire["id"]);
    expect([answer.status, fields(answer)["code"]]).toEqual([409, "request_not_stored"]);
    expectStatus(await push(body, { "x-platform-delivery": "large" }), 202);
    const [repeated] = listOf(await service.request("GET", at("/fires?status=duplicate")), "fires");
    expect(repeated).toMatchObject({ delivery_id: "large", reason: "same_delivery", session_id: null });
    expect((await replay(repeated?.["id"])).status).toBe(409);
  });
});

describe("at the cap", () => {
  let full: TestService;
  let project = "";
  beforeAll(async () => {
    // The metrics count what all accounts do.
    full = await startTestService({ PLATFORM_TIER_CAPS: '{"free": 1}' });
    project = await makeProject(full, { files: { "platform.toml": webhookEntry("push", "{{ body.n }}") } });
    await putSecret(full, project, SECRET_NAME, SECRET);
  });
  afterAll(() => full.close());
  const ask = (method: string, rest: string) => full.request(method, at(rest, project));
  const send = (n: number) => deliver(full, `${project}/push`, { body: JSON.stringify({ n }) });
  const queue = async () => listOf(await full.request("GET", "/v1/queue"), "queue");

  it("a waiting fire shows its prompt and its position, cannot be fired again, and can be cancelled once", async () => {
    const sid = await runSession(full, project);
    expect(fields(await send(1))["status"]).toBe("queued");
    expect(fields(await send(2))["status"]).toBe("queued");
    const waiting = await queue();
    expect(waiting.map(({ position }) => position)).toEqual([1, 2]);
    const page = fields(await full.request("GET", "/v1/queue?limit=1"));
    expect(page).toEqual({ queue: [waiting[0]], next_cursor: expect.any(String) });
    const rest = await full.request("GET", `/v1/queue?limit=1&cursor=${String(page["next_cursor"])}`);
    expect(fields(rest)).toEqual({ queue: [waiting[1]], next_cursor: null });
    expect((await full.request("GET", "/v1/queue?cursor=forged")).status).toBe(400);
    const [first, second] = waiting.map(({ fire_id: id }) => String(id));
    const shown = fields(await ask("GET", `/fires/${first}`));
    expect(shown).toMatchObject({ status: "queued", prompt: "1", request: { body: '{"n":1}' } });
    const again = await ask("POST", `/fires/${first}/replay`);
    expect([again.status, fields(again)["code"]]).toEqual([429, "session_cap_reached"]);
    expect((await ask("DELETE", `/fires/${first}`)).status).toBe(204);
    const twice = await ask("DELETE", `/fires/${first}`);
    expect([twice.status, fields(twice)["code"]]).toEqual([409, "not_queued"]);
    expect(fields(await ask("GET", `/fires/${first}`))).toMatchObject({ status: "cancelled", prompt: null });
    expect((await queue()).map(({ fire_id: id, position }) => [id, position])).toEqual([[second, 1]]);
    await stopSession(full, project, sid);
    const fired = await eventually(async () => {
      const fire = fields(await ask("GET", `/fires/${second}`));
      expect(fire["status"]).toBe("fired");
      return fire;
    });
    await reached(full, project, String(fired["session_id"]), "running");
    expect(fields(await ask("GET", `/fires/${first}`))["status"]).toBe("cancelled");
  });

  it("the metrics count waiting fires and live sessions", async () => {
    expect(fields(await send(3))["status"]).toBe("queued");
    const answer = expectStatus(await full.request("GET", "/metrics"), 200);
    expect(answer.headers["content-type"]).toMatch(/^text\/plain/);
    const value = (name: string) => new RegExp(`^platform_${name} (\\S+)$`, "m").exec(answer.text)?.[1];
    expect([value("fires_queued"), value("sessions_active"), value("sessions_cap")]).toEqual(["1", "1", "1"]);
    expect([value("scheduler_late"), value("manifests_stale")]).toEqual(["0", "0"]);
  });

  it("the metrics say when each background duty ran last, and how often one failed", async () => {
    const { text } = expectStatus(await full.request("GET", "/metrics"), 200);
    const lines = (name: string) =>
      new Map(
        [...text.matchAll(new RegExp(`^platform_${name}\\{duty="([a-z_]+)"\\} (\\S+)$`, "gm"))].map(
          ([, duty = "", value]) => [duty, Number(value)] as const,
        ),
      );
    expect([...lines("duty_failures_total").keys()].toSorted()).toEqual([...DUTY_NAMES].toSorted());
    const ran = lines("duty_last_run_timestamp_seconds");
    expect(ran.get("directory")).toBeGreaterThan(1_600_000_000);
    expect([...lines("duty_last_run_duration_seconds").keys()]).toEqual([...ran.keys()]);
    expect(lines("duty_last_run_failed").get("directory")).toBe(0);
  });
});
