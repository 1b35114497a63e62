/** Agents that tables of the manifest define: what a session of one gets, and which are refused (api.md 3 "Agents"). */
import * as Effect from "effect/Effect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OPENCODE } from "../../../src/domain/runtimes/opencode.ts";
import { SimulatedSandboxes } from "../../../src/sandbox/simulated.ts";
import { fields, makeProject, runSession, stopSession, type Fields } from "../../support/service/requests.ts";
import { startTestService, type TestService } from "../../support/service/service.ts";

const MANIFEST = `
[agents.reviewer]
model = "openai/gpt-5.5"
mode = "plan"
permissions = "ask"
instructions = "docs/review.md"

[agents.ours]
runtime = "acp"
command = ["our-agent", "--acp"]

[agents.web]
runtime = "plain"
command = ["our-server"]

[agents.lost]
instructions = "docs/lost.md"

[agents.broken]
runtime = "codex"
`;

let service: TestService;
let pid = "";
beforeAll(async () => {
  service = await startTestService();
  pid = await makeProject(service, {
    files: {
      "platform.toml": MANIFEST,
      "docs/review.md": "Be strict.",
      ".platform/runtime/agents/filed.md": "Be kind.",
    },
  });
});
afterAll(() => service.close());

const create = (body: Fields) => service.request("POST", `/v1/projects/${pid}/sessions`, { body });

/** What the sandbox of a running session of this wish starts with. */
const specOf = async (body: Fields) => {
  const sid = await runSession(service, pid, body);
  const all = await service.inside(Effect.flatMap(SimulatedSandboxes, ({ all: now }) => now));
  await stopSession(service, pid, sid);
  return [...all.values()].find(({ spec }) => spec.sessionId === sid)?.spec;
};

describe("an effort or a mode", () => {
  it("of a session goes out with its prompt, which is the first message", async () => {
    const sid = await runSession(service, pid, { initial_prompt: "Think.", effort: "high", mode: "plan" });
    const session = fields(await service.request("GET", `/v1/projects/${pid}/sessions/${sid}`));
    expect(session).toMatchObject({ initial_prompt: null, name: "Think." });
    const { items } = fields(
      await service.request("GET", `/v1/projects/${pid}/sessions/${sid}/conversation`),
    );
    expect(items).toMatchObject([{ role: "user", effort: "high", agent: "plan" }]);
    await stopSession(service, pid, sid);
  });

  it.each([
    [{ effort: "high" }, "needs a prompt"],
    [{ mode: "plan" }, "needs a prompt"],
    [{ initial_prompt: "x", mode: "yolo" }, "one that the runtime opencode has: build, plan"],
    [{ initial_prompt: "x", effort: "Very high" }, "must have 1 to 32"],
  ])("%j is refused", async (body, words) => {
    const { status, text } = await create(body);
    expect([status, text]).toEqual([400, expect.stringContaining(words) as string]);
  });
});

describe("a session of an agent with a table", () => {
  it("starts the installation's own runtime with the table's model, mode, permissions and instructions", async () => {
    const spec = await specOf({ agent_name: "reviewer" });
    expect(spec?.runtime).toEqual({
      adapter: "opencode",
      command: OPENCODE.command,
      variables: {},
      permissions: "ask",
      plan: { mode: "plan", next: ["build"] },
      history: { runtime: "opencode", files: OPENCODE.history },
    });
    expect(spec?.agent).toEqual({
      mode: "plan",
      instructions: "docs/review.md",
      variables: {},
    });
    expect(spec?.environment["PLATFORM_AGENT_MODEL"]).toBe("openai/gpt-5.5");
  });

  it("starts a program of the project's environment, and may name its own model", async () => {
    const spec = await specOf({ agent_name: "ours", agent_model: "opus" });
    expect(spec?.runtime).toMatchObject({ adapter: "acp", command: ["our-agent", "--acp"] });
    expect(spec?.environment["PLATFORM_AGENT_MODEL"]).toBe("opus");
  });

  it("overrides the table's model", async () => {
    const spec = await specOf({ agent_name: "reviewer", agent_model: "openai/gpt-6" });
    expect(spec?.environment["PLATFORM_AGENT_MODEL"]).toBe("openai/gpt-6");
  });

  it("takes messages only if its own runtime does", async () => {
    for (const [agent_name, code] of [
      ["web", "not_supported"],
      ["ours", undefined],
    ] as const) {
      const sid = await runSession(service, pid, { agent_name });
      const answer = await service.request("POST", `/v1/projects/${pid}/sessions/${sid}/messages`, {
        body: { id: crypto.randomUUID(), text: "Hello." },
      });
      expect(fields(answer)["code"]).toBe(code);
      await stopSession(service, pid, sid);
    }
  });
});

it("starts an agent without a table on the installation's own runtime", async () => {
  expect(await specOf({ agent_name: "filed" })).toMatchObject({
    runtime: { command: OPENCODE.command, permissions: null },
    agent: null,
  });
});

describe("a session is refused", () => {
  it.each([
    [{ agent_name: "unknown" }, 422, "unknown_agent", "default, reviewer, ours, web, lost, broken, filed."],
    [{ agent_name: "broken" }, 422, "invalid_agent", "This installation offers: opencode, acp, plain."],
    [{ agent_name: "lost" }, 422, "invalid_agent", "no file docs/lost.md"],
    [{ agent_name: "reviewer", agent_model: "opus" }, 400, "invalid_request", "provider/model"],
    [{ agent_name: "ours", agent_model: "a model" }, 400, "invalid_request", "without white space"],
  ])("for %j with %i %s, in words that help", async (body, status, code, words) => {
    const answer = await create(body);
    expect([answer.status, fields(answer)["code"]]).toEqual([status, code]);
    expect(JSON.stringify(fields(answer))).toContain(words);
  });
});
