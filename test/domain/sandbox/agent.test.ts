import { expect, test } from "vitest";
import { agentFile, isAgentModel, isAgentName } from "../../../src/domain/sandbox/agent.ts";

test.each(["default", "a", "A1", "code-review_2", "x".repeat(64)])("accepts the agent name %j", (name) => {
  expect(isAgentName(name)).toBe(true);
});

test.each([
  "",
  "../../x",
  "/etc/x",
  "a/b",
  "a.md",
  ".a",
  "-a",
  "_a",
  "a b",
  "a\n",
  "a\0",
  "é",
  "x".repeat(65),
])("refuses the agent name %j [M14]", (name) => {
  expect(isAgentName(name)).toBe(false);
});

test.each([
  "anthropic/claude-sonnet-4-5",
  "openai/gpt-5.1",
  "openrouter/meta-llama/llama-3.1:free",
  "vertex/claude@20251001",
])("accepts the model %j", (model) => {
  expect(isAgentModel(model)).toBe(true);
});

test.each(["", "gpt", "/gpt", "openai/", "a//b", "a/b\n", "a b/c", "../..", "-a/b", `a/${"b".repeat(200)}`])(
  "refuses the model %j",
  (model) => {
    expect(isAgentModel(model)).toBe(false);
  },
);

test("names the file of an agent", () => {
  expect(agentFile(".platform/runtime", "review")).toBe(".platform/runtime/agents/review.md");
});
