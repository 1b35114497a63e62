import { describe, expect, test } from "vitest";
import { modelFault, providerPointing, spokenProviders } from "../../../src/domain/agents/agent-provider.ts";
import { ACP } from "../../../src/domain/runtimes/acp.ts";
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

test("a name without a provider goes to one that lists it, and one that names another provider is sent to no other", () => {
  expect(variables(CLAUDE_CODE, "own")).toEqual(pointed("second", "own"));
  expect(variables(CLAUDE_CODE, "unlisted")).toEqual(pointed("first", "unlisted"));
  // The service refuses calls to a provider that does not exist.
  expect(variables(CLAUDE_CODE, "antropic/opus")).toEqual(pointed("antropic", "opus"));
  expect(variables(CLAUDE_CODE, "plain/gpt")).toEqual(pointed("plain", "gpt"));
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

const faultOf = (runtime: unknown, model: string | null, secretNames: readonly string[] = []) =>
  modelFault({ runtime: runtime as StartableRuntime }, model, { providers: PROVIDERS, secretNames });
/** Sources with a provider of so many models. */
const manyModels = (count: number) => ({
  providers: [{ ...PROVIDERS[1], models: Array.from({ length: count }, (_, at) => `m${at}`) }],
  secretNames: [],
});

describe("a model that no provider has", () => {
  test("is told with the provider, and with what there is", () => {
    expect(faultOf(CLAUDE_CODE, "antropic/opus")).toBe(
      "There is no model provider antropic for this session. Choose one of: first/sonnet, first/opus, second/own.",
    );
    expect(faultOf(CLAUDE_CODE, "plain/gpt")).toBe(
      "The runtime claude-code does not speak to the model provider plain, which is of the kind openai. " +
        "Choose one of: first/sonnet, first/opus, second/own.",
    );
    expect(faultOf(CODEX, "managed/large")).toContain("no model provider managed");
    expect(faultOf(OPENCODE, "antropic/opus", ["OPENAI_API_KEY"])).toMatch(
      /no model provider antropic .*google\/pro, openai\/gpt-5\.5\.$/,
    );
  });

  test("names at most twenty of them, or says that no provider fits", () => {
    const agent = { runtime: CLAUDE_CODE as StartableRuntime };
    expect(modelFault(agent, "x/y", manyModels(22))).toMatch(/first\/m19, 2 more\.$/);
    expect(modelFault(agent, "x/y", { providers: [], secretNames: [] })).toContain(
      "No provider of the account fits claude-code",
    );
  });

  test.each([
    ["no model", CLAUDE_CODE, null, []],
    ["a name of the runtime's own", CLAUDE_CODE, "opus", []],
    ["a model that its provider does not list", CLAUDE_CODE, "first/unlisted", []],
    ["a long name of a cloud's", CLAUDE_CODE, "arn:aws:bedrock:eu:1:profile/claude", []],
    ["a project's own key, whose server may have any model", CLAUDE_CODE, "x/y", ["ANTHROPIC_AUTH_TOKEN"]],
    ["a program of the project, which knows its models itself", ACP, "x/y", []],
    ["any provider of the account under opencode", OPENCODE, "plain/unlisted", []],
    ["the managed gateway", OPENCODE, "managed/large", []],
    ["the provider of opencode's makers", OPENCODE, "opencode/by-name", []],
    ["a known provider, whose key is asked for elsewhere", OPENCODE, "mistral/large", []],
    ["a provider that only opencode knows, with its key", OPENCODE, "moonshotai/kimi", ["MOONSHOT_API_KEY"]],
  ])("is none of: %s", (_, runtime, model, secretNames) => {
    expect(faultOf(runtime, model, secretNames)).toBe(null);
  });

  test("is not one that a provider lists under a router's name", () => {
    const providers = [{ ...PROVIDERS[1], name: "router", models: ["anthropic/sonnet"] }];
    const agent = { runtime: CLAUDE_CODE as StartableRuntime };
    expect(modelFault(agent, "anthropic/sonnet", { providers, secretNames: [] })).toBe(null);
    expect(
      providerPointing(agent, "anthropic/sonnet", { providers, secretNames: [] }).variables,
    ).toMatchObject({ ANTHROPIC_MODEL: "anthropic/sonnet" });
  });
});
