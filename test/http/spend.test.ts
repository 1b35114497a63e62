/** Limits of spend: who sets them, and what they refuse before an agent runs. */
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Spend } from "../../src/features/spend/ports/spend.ts";
import { NANO } from "../../src/domain/sandbox/spend.ts";
import {
  commitTo,
  expectStatus,
  fields,
  invitePerson,
  listOf,
  makeProject,
} from "../support/service/requests.ts";
import { startTestService, type TestService } from "../support/service/service.ts";
import { reserveFor } from "../support/world/spend.ts";

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
