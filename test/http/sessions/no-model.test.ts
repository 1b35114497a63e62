/** A session that would have no model is refused, and a fire fails with the reason, before anything is started. */
import * as Effect from "effect/Effect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Identity } from "../../../src/store/ports/people/identity.ts";
import { startTestService, type Answer, type TestService } from "../../support/service/service.ts";
import {
  deliver,
  eventually,
  expectStatus,
  fields,
  listOf,
  makeProject,
  putSecret,
  SECRET,
  SECRET_NAME,
  webhookEntry,
  type Fields,
} from "../../support/service/requests.ts";

let service: TestService;
beforeAll(async () => {
  service = await startTestService(
    { PLATFORM_LLM_BASE_URL: "http://127.0.0.1:9/v1", PLATFORM_LLM_TIERS: '["pro"]' },
    { needsModel: true },
  );
});
afterAll(() => service.close());

const create = (pid: string, body: Fields = {}): Promise<Answer> =>
  service.request("POST", `/v1/projects/${pid}/sessions`, { body });
const sessionsOf = async (pid: string) =>
  listOf(await service.request("GET", `/v1/projects/${pid}/sessions`), "sessions");

const refused = (answer: Answer, says: string): void => {
  expect(fields(expectStatus(answer, 422))).toMatchObject({
    code: "no_model",
    error: expect.stringContaining(says),
  });
};

describe("a session without a model", () => {
  it("is refused on an empty repository with the setting to change, and leaves no row", async () => {
    const pid = await makeProject(service);
    refused(await create(pid), "ANTHROPIC_API_KEY");
    expect(await sessionsOf(pid)).toEqual([]);
    await putSecret(service, pid, "OPENAI_API_KEY", "sk-a-key");
    expectStatus(await create(pid), 201);
  });

  it("is refused if its model has no key", async () => {
    const pid = await makeProject(service);
    await putSecret(service, pid, "OPENAI_API_KEY", "sk-a-key");
    refused(await create(pid, { agent_model: "anthropic/claude" }), "ANTHROPIC_API_KEY");
    refused(await create(pid, { agent_model: "managed/large" }), "no managed model gateway");
    expectStatus(await create(pid, { agent_model: "openai/gpt" }), 201);
    expectStatus(await create(pid, { agent_model: "opencode/by-name" }), 201);
  });

  it("is started if the repository configures one, in the manifest's place at the base of the session", async () => {
    const files = {
      "platform.toml": '[runtime]\nconfig_dir = "agents/here"\n',
      "agents/here/opencode.jsonc": '// Ours.\n{"provider": {"own": {"options": {}},},}',
    };
    expectStatus(await create(await makeProject(service, { files })), 201);
  });

  it("is refused if a file elsewhere configures one", async () => {
    const files = { "elsewhere/opencode.json": '{"provider": {"own": {}}}', "opencode.json": "no JSON" };
    refused(await create(await makeProject(service, { files })), "opencode.json");
  });
});

describe("a fire without a model", () => {
  it("fails with the reason on its ledger row and in the operator's log, and can be replayed later", async () => {
    const pid = await makeProject(service, { files: { "platform.toml": webhookEntry("push", "Look") } });
    await putSecret(service, pid, SECRET_NAME, SECRET);
    const send = () => deliver(service, `${pid}/push`, { headers: { "x-github-delivery": "one" } });
    refused(await eventually(async () => expectStatus(await send(), 422)), "ANTHROPIC_API_KEY");
    refused(
      await service.request("POST", `/v1/projects/${pid}/triggers/push/fire`, { body: {} }),
      "ANTHROPIC_API_KEY",
    );
    const fires = listOf(await service.request("GET", `/v1/projects/${pid}/fires`), "fires");
    expect(fires.map(({ kind, status, reason }) => [kind, status, reason])).toEqual([
      ["manual", "failed", "no_model"],
      ["webhook", "failed", "no_model"],
    ]);
    expect(await sessionsOf(pid)).toEqual([]);
    const lines = service.logs.filter((line) => line.includes("a fire failed") && line.includes(pid));
    expect(lines).toHaveLength(2);
    expect(lines[0]).toContain(String(fires[1]?.["id"]));
    await putSecret(service, pid, "ANTHROPIC_API_KEY", "sk-a-key");
    const replay = `/v1/projects/${pid}/fires/${String(fires[1]?.["id"])}/replay`;
    await eventually(async () => expectStatus(await service.request("POST", replay), 202));
    expect(await sessionsOf(pid)).toHaveLength(1);
  });

  it("uses the repository's own configuration, from the default branch", async () => {
    const files = {
      "platform.toml": webhookEntry("push", "Look"),
      "opencode.json": '{"provider": {"own": {}}}',
    };
    const pid = await makeProject(service, { files });
    const fire = `/v1/projects/${pid}/triggers/push/fire`;
    expectStatus(await service.request("POST", fire, { body: {} }), 202);
  });
});

describe("the managed gateway", () => {
  it("is enough for sessions and fires as soon as the account's tier has it", async () => {
    const pid = await makeProject(service, { files: { "platform.toml": webhookEntry("push", "Look") } });
    const fire = `/v1/projects/${pid}/triggers/push/fire`;
    refused(await create(pid), "ANTHROPIC_API_KEY");
    refused(await service.request("POST", fire, { body: {} }), "ANTHROPIC_API_KEY");
    const { id } = fields(await service.request("GET", "/v1/me"))["account"] as { id: string };
    await service.inside(Effect.flatMap(Identity, ({ setTier }) => setTier(id, "pro", 50)));
    expectStatus(await create(pid), 201);
    await eventually(async () => expectStatus(await service.request("POST", fire, { body: {} }), 202));
    await service.inside(Effect.flatMap(Identity, ({ setTier }) => setTier(id, "free", 50)));
  });
});

describe("an agent runtime that is not opencode", () => {
  it("brings its own model", async () => {
    const other = await startTestService(
      { PLATFORM_AGENT_COMMAND: "our-agent --serve" },
      { needsModel: true },
    );
    try {
      const pid = await makeProject(other);
      expectStatus(await other.request("POST", `/v1/projects/${pid}/sessions`, { body: {} }), 201);
    } finally {
      await other.close();
    }
  });
});

const setupOf = async (pid: string) => fields(await service.request("GET", `/v1/projects/${pid}/setup`));

describe("the setup of a project", () => {
  it("says that code and a model are missing, and what provides them later", async () => {
    const pid = await makeProject(service);
    const url = `${service.url}/v1/git/${pid}.git`;
    expect(await setupOf(pid)).toMatchObject({
      repository: { url, branch: "main", empty: true },
      model: { required: true, model: null, source: null },
    });
    await putSecret(service, pid, "OPENAI_API_KEY", "sk-a-key");
    const { model, providers } = await setupOf(pid);
    expect(model).toEqual({ required: true, model: "openai/gpt-5.5", source: "secret" });
    expect((providers as Fields[]).filter(({ configured }) => configured === true)).toEqual([
      { id: "openai", secrets: ["OPENAI_API_KEY"], model: "openai/gpt-5.5", configured: true },
    ]);
  });

  it("knows a model that the repository configures", async () => {
    const files = { "opencode.json": '{"provider": {"own": {}}}' };
    expect(await setupOf(await makeProject(service, { files }))).toMatchObject({
      repository: { empty: false, commit: expect.stringMatching(/^[0-9a-f]{40}$/) as string },
      model: { required: true, model: null, source: "repository" },
    });
  });
});
