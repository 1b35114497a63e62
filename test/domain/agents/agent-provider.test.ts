import { expect, test } from "vitest";
import { providerPointing, spokenProviders } from "../../../src/domain/agents/agent-provider.ts";
import { CLAUDE_CODE } from "../../../src/domain/runtimes/claude-code.ts";
import { CODEX } from "../../../src/domain/runtimes/codex.ts";
import { GEMINI } from "../../../src/domain/runtimes/gemini.ts";
import { OPENCODE } from "../../../src/domain/runtimes/opencode.ts";
import type { StartableRuntime } from "../../../src/domain/runtimes/runtime.ts";
import { PLACEHOLDER_KEY } from "../../../src/domain/sandbox/account-provider.ts";

const PROVIDERS = [
  { owner: "account", name: "acme", kind: "openai-compatible", models: ["large"] },
  { owner: "account", name: "first", kind: "anthropic", models: ["sonnet", "opus"] },
  { owner: "account", name: "second", kind: "anthropic", models: ["own"] },
  { owner: "account", name: "plain", kind: "openai", models: ["gpt"] },
  { owner: "account", name: "google", kind: "gemini", models: ["pro"] },
] as const;

const variables = (runtime: unknown, model: string | null, secretNames: readonly string[] = []) =>
  providerPointing({ runtime: runtime as StartableRuntime }, model, { providers: PROVIDERS, secretNames })
    .variables;
const pointed = (name: string, model: string) => ({
  ANTHROPIC_BASE_URL: `http://llm.platform.internal/${name}`,
  ANTHROPIC_API_KEY: PLACEHOLDER_KEY,
  ANTHROPIC_MODEL: model,
  ANTHROPIC_CUSTOM_MODEL_OPTION: model,
  ANTHROPIC_CUSTOM_MODEL_OPTION_SUPPORTED_CAPABILITIES: "effort",
  ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
});

const names = (runtime: Parameters<typeof spokenProviders>[0]) =>
  spokenProviders(runtime, PROVIDERS).map(({ name }) => name);

test("a runtime is offered the providers whose API it speaks", () => {
  expect(names(OPENCODE)).toEqual(["acme", "first", "second", "plain", "google"]);
  expect(names(CLAUDE_CODE)).toEqual(["first", "second"]);
  expect(names(CODEX)).toEqual(["plain"]);
});

test("it is pointed to the provider that the model names, or else to the first, with the provider's default model", () => {
  expect(variables(CLAUDE_CODE, null)).toEqual(pointed("first", "sonnet"));
  expect(variables(CLAUDE_CODE, "opus")).toEqual(pointed("first", "opus"));
  expect(variables(CLAUDE_CODE, "second/own")).toEqual(pointed("second", "own"));
  expect(variables(GEMINI, null)).toEqual({
    GOOGLE_GEMINI_BASE_URL: "http://llm.platform.internal/google",
    GEMINI_API_KEY: PLACEHOLDER_KEY,
    GEMINI_MODEL: "pro",
  });
});

test("the variables may be JSON, and the provider is named to a runtime that knows its models alone", () => {
  const { CODEX_CONFIG: config = "" } = variables(CODEX, "plain/gpt");
  expect(JSON.parse(config)).toMatchObject({
    model: "gpt",
    model_providers: { platform: { base_url: "http://llm.platform.internal/plain" } },
  });
  const given = { providers: PROVIDERS, secretNames: [] };
  const named = (runtime: unknown) =>
    providerPointing({ runtime: runtime as StartableRuntime }, null, given).provider;
  expect([named(CODEX), named(CLAUDE_CODE), named(OPENCODE)]).toEqual(["plain", "first", undefined]);
});

test("it is left alone with a project's own key, without a fitting provider, and if it is told in another way", () => {
  expect(variables(CLAUDE_CODE, null, ["ANTHROPIC_API_KEY"])).toEqual({});
  expect(variables(CODEX, null, ["OPENAI_API_KEY"])).toEqual({});
  expect(variables(OPENCODE, "acme/large")).toEqual({});
});
