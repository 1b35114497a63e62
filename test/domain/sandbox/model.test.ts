import * as Result from "effect/Result";
import { describe, expect, test } from "vitest";
import {
  bringsModel,
  chooseModel,
  namesHosted,
  offeredModels,
  parseDefaultModels,
  parseModelId,
  providerStandings,
  usedProviders,
  type ModelQuestion,
} from "../../../src/domain/sandbox/model.ts";

const ask = (question: Partial<ModelQuestion>): string =>
  Result.getOrElse(
    chooseModel({
      gateway: false,
      secretNames: [],
      agentModel: null,
      defaults: {},
      providers: [],
      ...question,
    }),
    (missing) => `none: ${missing}`,
  );

const ACME = {
  owner: "account",
  name: "acme",
  kind: "openai-compatible",
  models: ["large", "small"],
} as const;

test("a provider of the account is left out where the project has its own key of that name", () => {
  const own = { ...ACME, name: "openai" } as const;
  expect(usedProviders([ACME, own], ["OPENAI_API_KEY"])).toEqual([ACME]);
  expect(usedProviders([ACME, own], [])).toEqual([ACME, own]);
  expect(offeredModels([ACME])).toEqual(["acme/large", "acme/small"]);
});

test("a provider hides those of the same name with a wider owner, and says so", () => {
  const [own, shared] = [{ ...ACME, owner: "person" } as const, { ...ACME, owner: "project" } as const];
  const beta = { ...ACME, name: "beta" };
  const openai = { ...ACME, owner: "person", name: "openai" } as const;
  const all = [own, openai, shared, ACME, beta];
  const unused = (providers: typeof all, secretNames: readonly string[] = []) =>
    providerStandings(providers, secretNames).map((standing) => standing.unused);
  expect(unused(all)).toEqual([null, null, "person", "person", null]);
  expect(unused([shared, ACME])).toEqual([null, "project"]);
  expect(unused([own, openai], ["OPENAI_API_KEY"])).toEqual([null, "secret"]);
  expect(usedProviders(all, [])).toEqual([own, openai, beta]);
});

describe("the model of a session", () => {
  test.each([
    [{ gateway: true, secretNames: ["ANTHROPIC_API_KEY"] }, "managed/default"],
    [{ gateway: true, defaults: { managed: "large" } }, "managed/large"],
    [{ secretNames: ["OPENAI_API_KEY", "ANTHROPIC_API_KEY"] }, "anthropic/claude-sonnet-4-6"],
    [{ secretNames: ["GOOGLE_API_KEY"], defaults: { google: "gemini-x" } }, "google/gemini-x"],
    [{ gateway: true, agentModel: "openai/gpt", secretNames: ["OPENAI_API_KEY"] }, "openai/gpt"],
    [{ gateway: true, agentModel: "managed/small" }, "managed/small"],
    [{ providers: [ACME] }, "acme/large"],
    [{ providers: [ACME], secretNames: ["OPENAI_API_KEY"] }, "openai/gpt-5.5"],
    [
      { providers: [{ ...ACME, owner: "project" }], gateway: true, secretNames: ["OPENAI_API_KEY"] },
      "acme/large",
    ],
    [{ providers: [{ ...ACME, owner: "person" }, ACME], gateway: true }, "acme/large"],
    [
      { providers: [{ ...ACME, owner: "person", name: "openai" }], secretNames: ["OPENAI_API_KEY"] },
      "openai/gpt-5.5",
    ],
    [{ providers: [{ ...ACME, name: "openai" }], agentModel: "openai/gpt" }, "openai/gpt"],
    [{ agentModel: "opencode/by-name" }, "opencode/by-name"],
    [{ agentModel: "elsewhere/a/b" }, "elsewhere/a/b"],
  ] satisfies readonly (readonly [Partial<ModelQuestion>, string])[])("of %o is %s", (question, model) => {
    expect(ask(question)).toBe(model);
  });

  test.each([
    [{}, /^none: No model is configured.*ANTHROPIC_API_KEY/],
    [{ secretNames: ["DATABASE_URL"] }, /^none: No model is configured/],
    [{ gateway: true, agentModel: "openai/gpt" }, /^none: .*no key for it.*OPENAI_API_KEY/],
    [{ agentModel: "managed/small", secretNames: ["OPENAI_API_KEY"] }, /^none: .*no managed model gateway/],
  ])("of %o is missing, and the error says what to set", (question, says) => {
    expect(ask(question)).toMatch(says);
  });
});

describe("a repository's configuration", () => {
  test.each([
    ['{"provider": {"own": {}}}', true],
    ['{"provider": {"own": {}}, "model": "own/a"} // Ours.', true],
    ['{/* "provider" */ "theme": "http://x//y"}', false],
    ['{"provider": {}}', false],
    ['{"model": "anthropic/claude"}', false],
    ['{"model": "opencode/by-name"}', true],
    ['{"provider": []', false],
    ["[]", false],
    ["", false],
  ])("%s sets a model: %s", (text, brings) => {
    expect(bringsModel(text)).toBe(brings);
  });

  test.each([
    ['{"small_model": "opencode/by-name"}', true],
    ["---\nmodel: opencode/by-name\n---\n", true],
    ['{"provider": {"opencode": {"models": {}}}}', true],
    ["The opencode/ directory", false],
    ['{"$schema": "https://opencode.ai/config.json"}', false],
  ])("%s names the hosted provider: %s", (text, names) => {
    expect(namesHosted(text)).toBe(names);
  });
});

describe("the settings", () => {
  test("accept known providers and model ids alone", () => {
    expect(parseDefaultModels('{"openai": "gpt-5.5", "openrouter": "z-ai/glm-5"}')).toMatchObject({
      success: { openai: "gpt-5.5", openrouter: "z-ai/glm-5" },
    });
    expect(parseDefaultModels('{"unknown": "x"}')).toMatchObject({
      failure: expect.stringContaining("anthropic"),
    });
    for (const text of ['{"openai": 1}', '{"openai": ""}', "[]", "no JSON"])
      expect(Result.isFailure(parseDefaultModels(text))).toBe(true);
    expect(parseModelId("gpt-4o:latest")).toMatchObject({ success: "gpt-4o:latest" });
    expect(Result.isFailure(parseModelId("two words"))).toBe(true);
  });
});
