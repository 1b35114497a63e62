/** What a person can choose from when she starts a session: branches, agents and models. */
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { wishBranch } from "../../../src/domain/trigger/wish-branch.ts";
import { GitBackend } from "../../../src/git/port.ts";
import { expectStatus, fields, makeProject, putSecret } from "../../support/service/requests.ts";
import { startTestService, type TestService } from "../../support/service/service.ts";

let service: TestService;
beforeAll(async () => {
  service = await startTestService({}, { needsModel: true });
});
afterAll(() => service.close());

const optionsOf = async (pid: string) =>
  fields(expectStatus(await service.request("GET", `/v1/projects/${pid}/session-options`), 200));

const choice = (name: string, changes: object = {}) => ({
  name,
  runtime: "opencode",
  model: null,
  mode: null,
  effort: null,
  permissions: null,
  fallback: [],
  problem: null,
  ...changes,
});

describe("the options of a session", () => {
  it("name agents of tables with their runtimes, why one cannot start, and what each runtime can", async () => {
    const pid = await makeProject(service, {
      files: {
        "platform.toml": [
          '[agents.reviewer]\nmodel = "openai/gpt-5.5"\nmode = "plan"\npermissions = "ask"',
          '[agents.ours]\nruntime = "acp"\ncommand = ["our-agent"]',
          '[agents.broken]\nruntime = "codex"',
        ].join("\n"),
      },
    });
    const { agents, agent_choices: choices, runtimes } = await optionsOf(pid);
    expect(agents).toEqual(["broken", "ours", "reviewer"]);
    expect(choices).toEqual([
      choice("default"),
      choice("broken", { runtime: null, problem: expect.stringContaining("no runtime codex") as string }),
      choice("ours", { runtime: "acp" }),
      choice("reviewer", { model: "openai/gpt-5.5", mode: "plan", permissions: "ask" }),
    ]);
    expect(runtimes).toMatchObject([
      { name: "opencode", models: "platform", modes: ["build", "plan"], plan_mode: "plan" },
      { name: "acp", takes_command: true, models: "own", modes: null },
      { name: "plain", conversation: false, models: null, permissions: [] },
    ]);
  });

  it("are only the default branch in a new project", async () => {
    expect(await optionsOf(await makeProject(service))).toEqual({
      default_branch: "main",
      branches: ["main"],
      agents: [],
      agent_choices: [choice("default")],
      runtimes: expect.arrayContaining([]) as unknown,
      providers: [],
      default_model: null,
      models: [],
      model_choices: [],
    });
  });

  it("name branches of people, agents with a valid name, and models that work", async () => {
    const agents = ".platform/runtime/agents";
    const pid = await makeProject(service, {
      files: {
        [`${agents}/reviewer.md`]: "Review.",
        [`${agents}/a/nested.md`]: "Not an agent.",
        [`${agents}/not an agent.md`]: "Not an agent.",
        [`${agents}/notes.txt`]: "Not an agent.",
      },
    });
    await service.inside(
      Effect.gen(function* () {
        const git = yield* GitBackend;
        const commit = yield* git.resolveBase({ projectId: pid }, "main");
        for (const branch of ["release/2", randomUUID(), wishBranch("Add", "nightly", randomUUID())])
          yield* git.createBranch({ projectId: pid }, { branch, commit });
      }),
    );
    await putSecret(service, pid, "OPENAI_API_KEY", "sk-a-key");
    const session = { agent_model: "openai/gpt-6-mini" };
    expectStatus(await service.request("POST", `/v1/projects/${pid}/sessions`, { body: session }), 201);
    expect(await optionsOf(pid)).toEqual({
      default_branch: "main",
      branches: ["feature", "main", "release/2"],
      agents: ["reviewer"],
      agent_choices: [choice("default"), choice("reviewer")],
      runtimes: expect.arrayContaining([]) as unknown,
      providers: [],
      default_model: "openai/gpt-5.5",
      models: ["openai/gpt-5.5", "openai/gpt-6-mini"],
      model_choices: [
        { id: "openai/gpt-5.5", context: 1_050_000, price: { input: 5, cached: 0.5, output: 30 } },
        { id: "openai/gpt-6-mini" },
      ],
    });
  });

  it("leave out agents if their definitions are too large to be looked at", async () => {
    const files = { ".platform/runtime/agents/huge.md": "x".repeat(1024 * 1024 + 1) };
    expect(await optionsOf(await makeProject(service, { files }))).toMatchObject({ agents: [] });
  });
});

describe("the paths of a project", () => {
  it("are those of the default branch, or of the branch, tag or commit that is named", async () => {
    const pid = await makeProject(service, { files: { "src/main.ts": "", "README.md": "" } });
    const get = async (query: string, status: number) =>
      fields(expectStatus(await service.request("GET", `/v1/projects/${pid}/paths${query}`), status));
    const { commit, ...listing } = await get("", 200);
    expect(listing).toEqual({ paths: ["README.md", "src/main.ts"], total: 2 });
    expect(await get(`?ref=${String(commit)}`, 200)).toEqual({ commit, ...listing });
    expect(await get("?ref=none", 404)).toMatchObject({ error: "Branch or commit not found." });
  });
});
