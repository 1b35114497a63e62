import { describe, expect, it } from "vitest";
import {
  isCounted,
  keyHeaders,
  listedModels,
  listRequest,
  modelInPath,
  passes,
  withoutCredentials,
  withoutKey,
} from "../../../src/features/model-providers/rules/kinds.ts";

describe("a kind of provider", () => {
  it.each([
    ["anthropic", "POST", "/v1/messages"],
    ["anthropic", "POST", "/v1/messages?beta=true"],
    ["anthropic", "POST", "/v1/messages/count_tokens"],
    ["anthropic", "GET", "/v1/models?limit=1000"],
    ["openai", "POST", "/chat/completions"],
    ["openai", "POST", "/responses"],
    ["openai", "POST", "/responses/compact"],
    ["openai-compatible", "GET", "/models"],
    ["openai-compatible", "GET", "/models/acme/large-2"],
    ["gemini", "POST", "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"],
    ["gemini", "GET", "/v1beta/models"],
  ] as const)("%s passes %s %s", (kind, method, path) => {
    expect(passes(kind, method, path)).toBe(true);
  });

  it.each([
    ["anthropic", "GET", "/v1/messages"],
    ["anthropic", "POST", "/v1/files"],
    ["anthropic", "GET", "/v1/organizations/users"],
    ["anthropic", "POST", "/v1/messages/batches"],
    ["anthropic", "POST", "/v1/messages/../files"],
    ["openai", "GET", "/responses/resp_1"],
    ["openai", "GET", "/files"],
    ["openai", "DELETE", "/models/ft:mine"],
    ["openai", "GET", "/models/../files"],
    ["openai", "GET", "/models/%2e%2e/files"],
    ["openai", "GET", "/models/a%2f..%2ffiles"],
    ["openai", "POST", "//chat/completions"],
    ["openai", "POST", "/chat/completions/"],
    ["openai-compatible", "PUT", "/chat/completions"],
    ["gemini", "POST", "/v1beta/models/x:tune"],
    ["gemini", "GET", "/v1beta/files"],
    ["gemini", "POST", "/v1beta/models/..:generateContent"],
    ["gemini", "POST", "/v1beta/cachedContents"],
  ] as const)("%s shuts %s %s", (kind, method, path) => {
    expect(passes(kind, method, path)).toBe(false);
  });

  it("takes no credential of a sandbox, in whatever header or parameter", () => {
    const headers = {
      Authorization: ["Bearer x"],
      "x-api-key": ["x"],
      "X-Goog-Api-Key": ["x"],
      "api-key": ["x"],
      cookie: ["x"],
      "anthropic-version": ["1"],
    };
    expect(withoutCredentials(headers)).toEqual({ "anthropic-version": ["1"] });
    expect(withoutKey("/v1beta/models?key=x&alt=sse&API_KEY=y")).toBe("/v1beta/models?alt=sse");
    expect(withoutKey("/v1beta/models?key=x")).toBe("/v1beta/models");
    expect(withoutKey("/models")).toBe("/models");
  });

  it("carries the key where its API expects it, or no key", () => {
    expect(keyHeaders("anthropic", "k")).toEqual({ "x-api-key": "k" });
    expect(keyHeaders("openai", "k")).toEqual({ authorization: "Bearer k" });
    expect(keyHeaders("gemini", "k")).toEqual({ "x-goog-api-key": "k" });
    expect(keyHeaders("openai-compatible", "")).toEqual({});
    expect(listRequest("anthropic", { baseUrl: "https://a.example", key: "k" })).toMatchObject({
      url: "https://a.example/v1/models?limit=1000",
      headers: { "x-api-key": "k", "anthropic-version": "2023-06-01" },
    });
  });

  it("counts calls of models, and not the counting of tokens", () => {
    expect(isCounted("POST", "/v1/messages")).toBe(true);
    expect(isCounted("POST", "/v1beta/models/x:generateContent?alt=sse")).toBe(true);
    expect(isCounted("POST", "/v1/messages/count_tokens?beta=true")).toBe(false);
    expect(isCounted("POST", "/v1beta/models/x:countTokens")).toBe(false);
    expect(isCounted("GET", "/models")).toBe(false);
  });

  it("reads the lists of models that the kinds answer with", () => {
    expect(listedModels('{"data":[{"id":"b"},{"id":"a"},{"x":1}]}')).toEqual(["b", "a"]);
    expect(listedModels('{"models":[{"name":"models/gemini-2.5-pro"}]}')).toEqual(["gemini-2.5-pro"]);
    expect(listedModels("<html>")).toBe(null);
    expect(listedModels('{"data":"x"}')).toBe(null);
    expect(modelInPath("/v1beta/models/gemini-2.5-pro:generateContent?x=1")).toBe("gemini-2.5-pro");
    expect(modelInPath("/chat/completions")).toBe(null);
  });
});
