import { expect, test } from "vitest";
import { injectedEnvironment } from "../../../src/domain/sandbox/environment.ts";
import type { EnvironmentInput } from "../../../src/domain/sandbox/environment.ts";

const plain: EnvironmentInput = {
  projectId: "01930f1e-0000-7000-8000-000000000001",
  sessionId: "01930f1e-0000-7000-8000-000000000002",
  baseUrl: "http://platform.internal",
  defaultBranch: "main",
  baseRef: "release/1.x",
  agentName: "default",
  agentModel: null,
  initialPrompt: null,
  secretNames: ["WEBHOOK_SECRET", "API_KEY"],
  secretsRevision: "7",
  sandboxToken: "platform_sbx_sandbox",
  projectToken: "platform_pat_project",
  gateway: null,
};
const gateway = { apiKey: "gateway-key", baseUrl: "http://llm.platform.internal/v1" };
const prompt = "Look at commit abc.\nSay “thanks” to Zoë.";

const cases: readonly (readonly [string, EnvironmentInput])[] = [
  ["plain", plain],
  ["no-secrets", { ...plain, secretNames: [], secretsRevision: "0" }],
  ["model", { ...plain, agentModel: "anthropic/claude-sonnet-4-5" }],
  ["prompt", { ...plain, initialPrompt: prompt }],
  ["empty-prompt", { ...plain, initialPrompt: "" }],
  ["gateway", { ...plain, gateway }],
  ["everything", { ...plain, agentModel: "anthropic/claude-sonnet-4-5", initialPrompt: prompt, gateway }],
];

/** `npx vitest run test/domain/sandbox/environment.test.ts -u` writes the files again; read the difference before keeping it. */
test.each(cases)("injects exactly the variables that apply: %s", async (name, input) => {
  const text = `${JSON.stringify(injectedEnvironment(input))}\n`;
  await expect(text).toMatchFileSnapshot(`../../golden/environment/${name}.json`);
});

/** Written down by hand from spec.md, injected environment, and not from the code. */
const always = [
  "PLATFORM_PROJECT_ID",
  "PLATFORM_SESSION_ID",
  "PLATFORM_BRANCH_NAME",
  "PLATFORM_REPO_URL",
  "PLATFORM_DEFAULT_BRANCH",
  "PLATFORM_BASE_REF",
  "PLATFORM_SERVICE_PORT",
  "PLATFORM_API_URL",
  "PLATFORM_AGENT_NAME",
  "PLATFORM_PROJECT_AUTO_CLONE",
  "PLATFORM_PROJECT_SECRET_NAMES",
  "PLATFORM_PROJECT_SECRETS_REVISION",
  "PLATFORM_TOKEN",
  "PLATFORM_CLI_TOKEN",
  "PLATFORM_EXECUTOR_TOKEN",
];
const whenPrompted = ["PLATFORM_INITIAL_PROMPT", "PLATFORM_BOOTSTRAP_AGENT_SESSION"];
const withGateway = [
  "PLATFORM_LLM_API_KEY",
  "PLATFORM_LLM_BASE_URL",
  "PLATFORM_YOLO_API_KEY",
  "PLATFORM_YOLO_URL",
];

test.each(cases)("names the specification's variables and no other: %s", (_name, input) => {
  const expected = [
    ...always,
    ...(input.agentModel === null ? [] : ["PLATFORM_AGENT_MODEL"]),
    ...(input.initialPrompt === null ? [] : whenPrompted),
    ...(input.gateway === null ? [] : withGateway),
  ];
  expect(Object.keys(injectedEnvironment(input)).toSorted()).toEqual(expected.toSorted());
});

test("keeps pairs of variables equal that the specification calls the same", () => {
  const environment = injectedEnvironment({ ...plain, gateway });
  expect(environment["PLATFORM_BRANCH_NAME"]).toBe(environment["PLATFORM_SESSION_ID"]);
  expect(environment["PLATFORM_CLI_TOKEN"]).toBe(environment["PLATFORM_EXECUTOR_TOKEN"]);
  expect(environment["PLATFORM_YOLO_API_KEY"]).toBe(environment["PLATFORM_LLM_API_KEY"]);
  expect(environment["PLATFORM_YOLO_URL"]).toBe(environment["PLATFORM_LLM_BASE_URL"]);
  expect(environment["PLATFORM_API_URL"]).toBe("http://platform.internal/v1");
});

test("treats a base URL with a trailing slash like one without", () => {
  expect(injectedEnvironment({ ...plain, baseUrl: "http://platform.internal/" })).toEqual(
    injectedEnvironment(plain),
  );
});
