/** What a person can choose from when she starts a session: branches, agents and models. */
import { randomUUID } from "node:crypto";
import * as Effect from "effect/Effect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { GitBackend } from "../../src/git/port.ts";
import { expectStatus, fields, makeProject, putSecret } from "../support/service/requests.ts";
import { startTestService, type TestService } from "../support/service/service.ts";

let service: TestService;
beforeAll(async () => {
  service = await startTestService({}, { needsModel: true });
});
afterAll(() => service.close());

const optionsOf = async (pid: string) =>
  fields(expectStatus(await service.request("GET", `/v1/projects/${pid}/session-options`), 200));

describe("the options of a session", () => {
  it("are only the default branch in a new project", async () => {
    expect(await optionsOf(await makeProject(service))).toEqual({
      default_branch: "main",
      branches: ["main"],
      agents: [],
      default_model: null,
      models: [],
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
        for (const branch of ["release/2", randomUUID()])
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
      default_model: "openai/gpt-5.5",
      models: ["openai/gpt-5.5", "openai/gpt-6-mini"],
    });
  });

  it("leave out agents if their definitions are too large to be looked at", async () => {
    const files = { ".platform/runtime/agents/huge.md": "x".repeat(1024 * 1024 + 1) };
    expect(await optionsOf(await makeProject(service, { files }))).toMatchObject({ agents: [] });
  });
});
