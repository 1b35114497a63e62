/** A person's own subscription: who saves and sees it, which sandboxes get it, and what takes it out of them. */
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { SimulatedSandboxes } from "../../../src/sandbox/simulated.ts";
import {
  commitTo,
  expectStatus,
  fields,
  invitePerson,
  listOf,
  makeProject,
  reached,
  refusal,
} from "../../support/service/requests.ts";
import { startTestService, type TestService } from "../../support/service/service.ts";
import { auditOf } from "./audit-rows.ts";

const OWN = "/v1/me/subscriptions";
const TOKEN = "sk-ant-oat01-canary-of-ann";
const MANIFEST = `
[agents.claude]
runtime = "claude-code"

[agents.codex]
runtime = "codex"

[[triggers]]
slug = "yearly"
type = "cron"
cron = "0 0 0 1 1 *"
agent = "claude"
prompt = "Hi"
`;
const auth = (last_refresh: string, refresh_token = "refresh-canary-of-a-file"): string =>
  JSON.stringify({
    last_refresh,
    tokens: { access_token: `access-canary-${last_refresh}`, refresh_token, account_id: "acc-1" },
  });

let service: TestService;
let pid: string;
let ann: string;
let ben: string;

beforeAll(async () => {
  service = await startTestService({ PLATFORM_AGENT_RUNTIMES: "claude-code,codex" }, { needsModel: true });
  pid = await makeProject(service);
  await commitTo(service, pid, { branch: "main", files: { "platform.toml": MANIFEST } });
  expectStatus(await service.request("POST", `/v1/projects/${pid}/sync`), 200);
  ann = (await invitePerson(service, "Ann", { roles: { [pid]: "member" } })).token;
  ben = (await invitePerson(service, "Ben", { roles: { [pid]: "member" } })).token;
});
afterAll(() => service?.close());
beforeEach(async () => {
  service.daemon.become("ready");
  await save(TOKEN);
});

const save = (content: string, runtime = "claude-code", token = ann) =>
  service.request("PUT", `${OWN}/${runtime}`, { token, body: { content } });
const start = (token: string, more: object = {}) =>
  service.request("POST", `/v1/projects/${pid}/sessions`, {
    token,
    body: { agent_name: "claude", ...more },
  });
const session = (sid: string, rest = "") => `/v1/projects/${pid}/sessions/${sid}${rest}`;
/** A running session. */
const running = async (token: string, more: object = {}): Promise<string> => {
  const sid = String(fields(expectStatus(await start(token, more), 201))["id"]);
  await reached(service, pid, sid, "running");
  return sid;
};
/** The specification of a session's newest sandbox. */
const specOf = (sid: string) =>
  service.inside(
    Effect.gen(function* () {
      const all = [...(yield* (yield* SimulatedSandboxes).all).values()];
      const { spec } = all.findLast((one) => one.spec.sessionId === sid) ?? {};
      if (spec === undefined) throw new Error("the session has no sandbox");
      return spec;
    }),
  );
const isInside = async (sid: string) =>
  fields(expectStatus(await service.request("GET", session(sid, "/own-credentials"), { token: ann }), 200))[
    "subscription"
  ];
const write = (sid: string, token: string) =>
  service.request("POST", session(sid, "/messages"), { token, body: { id: randomUUID(), text: "Hi" } });

describe("an own subscription", () => {
  it("is saved, listed without what it is, removed, and on record, for its person alone [K23]", async () => {
    const listed = async (token: string) => expectStatus(await service.request("GET", OWN, { token }), 200);
    const mine = await listed(ann);
    expect(listOf(mine, "subscriptions")).toMatchObject([
      { runtime: "claude-code", title: "Claude subscription", renewed_at: null },
    ]);
    expect(listOf(mine, "possible").map(({ runtime }) => runtime)).toEqual(["claude-code", "codex"]);
    expect(listOf(await listed(ben), "subscriptions")).toEqual([]);
    expect(refusal(await service.request("DELETE", `${OWN}/claude-code`, { token: ben }))).toEqual([
      404,
      "not_found",
    ]);
    expectStatus(await service.request("DELETE", `${OWN}/claude-code`, { token: ann }), 204);
    expect(listOf(await listed(ann), "subscriptions")).toEqual([]);
    expect(await auditOf(service, "subscription.saved")).not.toEqual([]);
    const [row] = await auditOf(service, "subscription.removed");
    expect(row).toMatchObject({ target: "claude-code", actor: { name: "Ann" } });
    expect(`${mine.text}${JSON.stringify(row)}${service.logs.join("\n")}`).not.toContain(TOKEN);
  });

  it("must have the form that its runtime reads", async () => {
    const wrong = expectStatus(await save("sk-ant-api03-key"), 400);
    expect(wrong.text).toContain("claude setup-token");
    expect(wrong.text).not.toContain("sk-ant-api03-key");
    expect(expectStatus(await save("{}", "codex"), 400).text).toContain("tokens.access_token");
    expectStatus(await save("x".repeat(64 * 1024 + 1)), 400);
    expectStatus(await save(TOKEN, "opencode"), 404);
    expectStatus(await save(`${TOKEN}\n`), 200);
  });

  it("comes with the start of its person's sandbox, which then reaches its maker, and with no other's [K23]", async () => {
    const spec = await specOf(await running(ann));
    expect(spec.agent?.subscription).toMatchObject({ content: TOKEN, variable: "CLAUDE_CODE_OAUTH_TOKEN" });
    expect(spec.egressAllow).toContain("api.anthropic.com");
    const others = await specOf(await running(ben));
    expect(others.agent).not.toHaveProperty("subscription");
    expect(others.egressAllow).not.toContain("api.anthropic.com");
    const named = await specOf(await running(ann, { agent_name: "codex" }));
    expect(named.agent).not.toHaveProperty("subscription");
  });

  it("is taken out before another person's message is taken, and is back after its person gave it back and restarted [K23]", async () => {
    const sid = await running(ann);
    expect(await isInside(sid)).toBe(true);
    const before = service.daemon.withdrawals.length;
    expectStatus(await write(sid, ann), 201);
    expect(service.daemon.withdrawals).toHaveLength(before);
    expectStatus(await write(sid, ben), 201);
    expect(service.daemon.withdrawals.slice(before)).toEqual([
      expect.stringContaining("Ben sent a message to the agent, so the own subscription"),
    ]);
    expect(await isInside(sid)).toBe(false);
    expectStatus(
      await service.request("POST", session(sid, "/own-credentials/give-back"), { token: ann }),
      204,
    );
    expect(await isInside(sid)).toBe(false);
    expectStatus(await service.request("POST", session(sid, "/stop"), { token: ann }), 200);
    await reached(service, pid, sid, "stopped");
    expectStatus(await service.request("POST", session(sid, "/restart"), { token: ann, body: {} }), 202);
    await reached(service, pid, sid, "running");
    expect((await specOf(sid)).agent?.subscription).toMatchObject({ content: TOKEN });
  });

  it("refuses the act of another person while its sandbox does not say that it is out [K23]", async () => {
    const sid = await running(ann);
    service.daemon.become("unreachable");
    expect(refusal(await write(sid, ben))).toEqual([503, "subscription_in_use"]);
    expect(await isInside(sid)).toBe(true);
    service.daemon.become("ready");
    const items = await service.request("GET", session(sid, "/conversation"), { token: ann });
    expect(listOf(items, "items").filter(({ role }) => role === "user")).toEqual([]);
    expectStatus(await write(sid, ben), 201);
  });

  it("keeps other people from what programs in its sandbox show [K23]", async () => {
    const sid = await running(ann);
    const target = session(sid, "/ports/3000/");
    expect(refusal(await service.request("GET", target, { token: ben }))).toEqual([
      409,
      "subscription_in_use",
    ]);
    // No daemon answers.
    expect((await service.request("GET", target, { token: ann })).status).toBe(502);
    expectStatus(await write(sid, ben), 201);
    expect((await service.request("GET", target, { token: ben })).status).toBe(502);
  });

  it("is taken out of running sandboxes when it is removed", async () => {
    const sid = await running(ann);
    const before = service.daemon.withdrawals.length;
    expectStatus(await service.request("DELETE", `${OWN}/claude-code`, { token: ann }), 204);
    expect(service.daemon.withdrawals.length).toBeGreaterThan(before);
    expect(await isInside(sid)).toBe(false);
  });

  it("is given back by its sandbox if it is newer, for the same account, and by no other caller [K23]", async () => {
    const [first, second] = [new Date(Date.UTC(2026, 0, 1)), new Date(Date.UTC(2026, 0, 2))].map((at) =>
      at.toISOString(),
    );
    expectStatus(await save(auth(first ?? ""), "codex"), 200);
    const sid = await running(ann, { agent_name: "codex" });
    const spec = await specOf(sid);
    const renew = (content: string, token = spec.environment["PLATFORM_TOKEN"] ?? "") =>
      service.request("POST", `/v1/projects/${pid}/subscription`, { token, body: { content } });
    expectStatus(await renew(auth(second ?? "", "another-refresh-token-0"), ann), 403);
    expectStatus(await renew("{}"), 400);
    const renewed = auth(second ?? "", "another-refresh-token-0");
    expectStatus(await renew(renewed), 204);
    expectStatus(await renew(auth(first ?? "")), 400);
    expect((await specOf(await running(ann, { agent_name: "codex" }))).agent?.subscription?.content).toBe(
      renewed,
    );
    expectStatus(await save(auth(first ?? ""), "codex"), 200);
    // The sandbox got the former one.
    expectStatus(await renew(renewed), 404);
    const agent = spec.environment["PLATFORM_CLI_TOKEN"] ?? "";
    for (const [method, target] of [
      ["GET", OWN],
      ["PUT", `${OWN}/codex`],
      ["DELETE", `${OWN}/codex`],
    ] as const)
      expect((await service.request(method, target, { token: agent, body: { content: TOKEN } })).status).toBe(
        403,
      );
  });

  it("is not used where a limit of spend applies, and the refusal says what to choose", async () => {
    const provider = { name: "acme", kind: "anthropic", key: "k", models: ["large"], try: false };
    expectStatus(await service.request("POST", "/v1/model-providers", { body: provider }), 201);
    const limit = await service.request("PUT", "/v1/spend-limits", {
      body: { scope: "each_session", usd: 5 },
    });
    const refused = fields(expectStatus(await start(ann), 422));
    expect(refused).toMatchObject({ code: "limit_needs_provider" });
    expect(String(refused["error"])).toContain(
      "own Claude subscription. Choose a model of a provider (NAME/MODEL)",
    );
    const fire = (token: string) =>
      service.request("POST", `/v1/projects/${pid}/triggers/yearly/fire`, { token, body: {} });
    expect(refusal(await fire(ann))).toEqual([422, "limit_needs_provider"]);
    expectStatus(await fire(ben), 202);
    const spec = await specOf(await running(ann, { agent_model: "acme/large" }));
    expect(spec.agent).not.toHaveProperty("subscription");
    expect(spec.agent?.variables).toMatchObject({ ANTHROPIC_MODEL: "large" });
    expectStatus(await service.request("DELETE", `/v1/spend-limits/${String(fields(limit)["id"])}`), 204);
  });
});
