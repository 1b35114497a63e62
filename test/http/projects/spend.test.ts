/** Limits of spend: who sets them, and what they refuse before an agent runs. */
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Spend } from "../../../src/features/spend/ports/spend.ts";
import { Identity } from "../../../src/store/ports/people/identity.ts";
import { NANO } from "../../../src/domain/sandbox/spend.ts";
import {
  commitTo,
  eventually,
  expectStatus,
  fields,
  invitePerson,
  listOf,
  makeProject,
  runSession,
  stopSession,
} from "../../support/service/requests.ts";
import { startTestService, type TestService } from "../../support/service/service.ts";
import { reserveFor } from "../../support/world/spend.ts";

let service: TestService;
let pid: string;

beforeAll(async () => {
  service = await startTestService({}, { needsModel: true });
  pid = await makeProject(service);
  const provider = { name: "acme", kind: "anthropic", key: "k", models: ["large"], try: false };
  expectStatus(await service.request("POST", "/v1/model-providers", { body: provider }), 201);
});
afterAll(async () => {
  await service?.close();
});

const put = (target: string, body: object, token?: string) =>
  service.request("PUT", target, { body, ...(token !== undefined && { token }) });
const start = () => service.request("POST", `/v1/projects/${pid}/sessions`, { body: {} });
const limitsOf = async () => listOf(await service.request("GET", "/v1/spend"), "limits");

describe("a limit of spend", () => {
  it("is in dollars or in tokens, for what exists, and is shown with what is spent", async () => {
    const refused = { status: 400, json: { code: "invalid_request" } };
    expect(await put("/v1/spend-limits", { scope: "account" })).toMatchObject(refused);
    expect(await put("/v1/spend-limits", { scope: "account", usd: 1, tokens: 1 })).toMatchObject(refused);
    expect(await put("/v1/spend-limits", { scope: "person", usd: 1 })).toMatchObject(refused);
    expect((await put("/v1/spend-limits", { scope: "person", subject: randomUUID(), usd: 1 })).status).toBe(
      404,
    );
    expect((await put("/v1/spend-limits", { scope: "project", subject: randomUUID(), usd: 1 })).status).toBe(
      404,
    );
    const set = fields(
      expectStatus(await put("/v1/spend-limits", { scope: "project", subject: pid, usd: 2.5 }), 200),
    );
    expect(set).toMatchObject({
      scope: "project",
      subject: pid,
      unit: "usd",
      amount: 2.5,
      spent: { usd: 0 },
    });
    const again = await put("/v1/spend-limits", { scope: "project", subject: pid, tokens: 500 });
    expect(fields(expectStatus(again, 200))).toMatchObject({ id: set["id"], unit: "tokens", amount: 500 });
    expect(await limitsOf()).toHaveLength(1);
    expect((await service.request("DELETE", `/v1/spend-limits/${String(set["id"])}`)).status).toBe(204);
    expect(await limitsOf()).toEqual([]);
  });

  it("of a session is set by members, also before it is reached", async () => {
    const { id } = fields(expectStatus(await start(), 201));
    const target = `/v1/projects/${pid}/sessions/${String(id)}/spend-limit`;
    const member = await invitePerson(service, "Ada", { roles: { [pid]: "member" } });
    expect(fields(expectStatus(await put(target, { usd: 5 }, member.token), 200))).toEqual({
      spent: { usd: 0, tokens: 0 },
      limits: [{ scope: "session", name: "", unit: "usd", amount: 5, spent: 0, reserved: 0 }],
    });
    expect((await put("/v1/spend-limits", { scope: "account", usd: 5 }, member.token)).status).toBe(403);
    expect((await service.request("DELETE", target, { token: member.token })).status).toBe(204);
    expect((await service.request("DELETE", target)).status).toBe(404);
  });

  it("refuses a session whose calls could not be counted, and says what to do", async () => {
    const key = `/v1/projects/${pid}/secrets/ANTHROPIC_API_KEY`;
    expectStatus(await put(key, { value: "k" }), 201);
    expectStatus(await start(), 201);
    expectStatus(await put("/v1/spend-limits", { scope: "each_session", usd: 5 }), 200);
    const refused = fields(expectStatus(await start(), 422));
    expect(refused).toMatchObject({ code: "limit_needs_provider" });
    expect(String(refused["error"])).toContain(
      "the project's secret ANTHROPIC_API_KEY is a key of a model provider. An owner can add the provider to the account, and then delete the secret.",
    );
    expectStatus(await service.request("DELETE", key), 204);
    expectStatus(await start(), 201);
  });

  it("keeps a key that is set later out of a running session, and says so in its conversation", async () => {
    expectStatus(await put("/v1/spend-limits", { scope: "each_session", usd: 5 }), 200);
    const sid = await runSession(service, pid);
    service.daemon.forgetEnvs();
    const secrets = `/v1/projects/${pid}/secrets`;
    expectStatus(await put(`${secrets}/ANTHROPIC_API_KEY`, { value: "k" }), 201);
    expectStatus(await put(`${secrets}/PLAIN`, { value: "p" }), 201);
    const names = () => new Set(service.daemon.envs.flatMap(({ env }) => Object.keys(env)));
    await eventually(() => expect(names()).toContain("PLAIN"));
    expect(names()).not.toContain("ANTHROPIC_API_KEY");
    const page = await service.request("GET", `/v1/projects/${pid}/sessions/${sid}/conversation`);
    const notes = JSON.stringify(listOf(page, "items"));
    expect(notes.split("The secret ANTHROPIC_API_KEY was set while this session runs")).toHaveLength(2);
    expect(service.logs.join("\n")).toContain("a secret is kept out of a running session");
    expect(expectStatus(await start(), 422).json).toMatchObject({ code: "limit_needs_provider" });
    expectStatus(await service.request("DELETE", `${secrets}/ANTHROPIC_API_KEY`), 204);
  });

  it("that is set later names the running sessions that it does not count, and they go on", async () => {
    const key = `/v1/projects/${pid}/secrets/GROQ_API_KEY`;
    expectStatus(await put(key, { value: "k" }), 201);
    const former = await limitsOf();
    for (const { id } of former)
      expectStatus(await service.request("DELETE", `/v1/spend-limits/${String(id)}`), 204);
    const sid = await runSession(service, pid);
    const other = await makeProject(service);
    await runSession(service, other);
    const set = async (wish: object) =>
      listOf(expectStatus(await put("/v1/spend-limits", wish), 200), "uncounted_sessions");
    const named = await set({ scope: "account", usd: 500 });
    expect(named).toContainEqual({
      project_id: pid,
      id: sid,
      name: null,
      reason: expect.stringContaining("the project's secret GROQ_API_KEY is a key of a model provider"),
    });
    expect(named.map(({ project_id: project }) => project)).not.toContain(other);
    expect(await set({ scope: "project", subject: other, usd: 500 })).toEqual([]);
    expect(await set({ scope: "each_session", usd: 50 })).toContainEqual(
      expect.objectContaining({ id: sid }),
    );
    expect(await service.request("GET", `/v1/projects/${pid}/sessions/${sid}`)).toMatchObject({
      json: { status: "running" },
    });
    expectStatus(await service.request("DELETE", key), 204);
  });

  it("refuses a waiting request whose calls could no longer be counted when a slot is free", async () => {
    const { account } = fields(await service.request("GET", "/v1/me")) as { account: { id: string } };
    const setCap = (cap: number) =>
      service.inside(Effect.flatMap(Identity, ({ setTier }) => setTier(account.id, "free", cap)));
    const sid = await runSession(service, pid);
    await setCap(1);
    const ask = await service.request("POST", `/v1/projects/${pid}/sessions?queue=true`, { body: {} });
    const { queue_id: waiting } = fields(expectStatus(ask, 202));
    const key = `/v1/projects/${pid}/secrets/OPENAI_API_KEY`;
    expectStatus(await put(key, { value: "k" }), 201);
    expectStatus(await put("/v1/spend-limits", { scope: "each_session", usd: 5 }), 200);
    await setCap(1000);
    await stopSession(service, pid, sid);
    await eventually(async () => {
      const fire = fields(await service.request("GET", `/v1/projects/${pid}/fires/${String(waiting)}`));
      expect(fire).toMatchObject({ status: "failed", reason: "limit_needs_provider" });
    });
    expectStatus(await service.request("DELETE", key), 204);
  });

  it("of a trigger that is reached skips its fires with that reason, and its raise lets them start", async () => {
    const manifest = '[[triggers]]\nslug = "nightly"\ntype = "cron"\ncron = "0 0 0 1 1 *"\nprompt = "Hi"\n';
    await commitTo(service, pid, { branch: "main", files: { "platform.toml": manifest } });
    const target = `/v1/projects/${pid}/triggers/nightly`;
    expectStatus(await service.request("POST", `/v1/projects/${pid}/sync`), 200);
    expect((await put(`/v1/projects/${pid}/triggers/other/spend-limit`, { usd: 1 })).status).toBe(404);
    expectStatus(await put(`${target}/spend-limit`, { usd: 1 }), 200);
    const fire = () => service.request("POST", `${target}/fire`, { body: {} });
    const { session_id: sessionId } = fields(expectStatus(await fire(), 202));
    await service.inside(
      Effect.gen(function* () {
        const { settle } = yield* Spend;
        const call = { id: randomUUID(), sessionId: String(sessionId), model: "acme/m", isOwn: false };
        const counted = { model: "acme/m", tokens: null, estimated: 1, cost: 2 * NANO };
        const now = yield* Effect.clockWith((clock) => clock.currentTimeMillis);
        yield* reserveFor({ ...call, tokens: 1, cost: 1, now });
        yield* settle({ id: call.id, counted, now });
      }),
    );
    expect(expectStatus(await fire(), 422).json).toMatchObject({ code: "spend_limit" });
    const fires = listOf(await service.request("GET", `${target}/fires`), "fires");
    expect(fires[0]).toMatchObject({ status: "skipped", reason: "spend_limit", session_id: null });
    expectStatus(await put(`${target}/spend-limit`, { usd: 10 }), 200);
    expectStatus(await fire(), 202);
  });
});
