import { describe, expect, it } from "vitest";
import { isFound, modelMenu, shownModel, unfitFor } from "../../../src/domain/model/menu.ts";

describe("a model that no agent can work with", () => {
  it.each([
    ["openai/text-embedding-3-large", "makes embeddings, no text"],
    ["mistral/mistral-embed", "makes embeddings, no text"],
    ["local/nomic-embed-text:v1.5", "makes embeddings, no text"],
    ["openai/gpt-image-1", "makes images"],
    ["openai/dall-e-3", "makes images"],
    ["google/gemini-2.5-flash-image", "makes images"],
    ["google/veo-3.1-generate-preview", "makes videos"],
    ["google/lyria-3-pro-preview", "makes music"],
    ["openai/gpt-4o-mini-tts", "is for speech"],
    ["openai/whisper-1", "is for speech"],
    ["openai/omni-moderation-latest", "judges texts, and writes none"],
    ["acme/llama-guard-4-12b", "judges texts, and writes none"],
    ["cohere/rerank-v3.5", "sorts texts, and writes none"],
  ])("is %s by its name: it %s", (id, reason) => {
    expect(unfitFor({ id })).toBe(reason);
  });

  it("is one of which the runtime says so", () => {
    expect(unfitFor({ id: "acme/omni", writes_text: false })).toBe("writes no text");
    expect(unfitFor({ id: "acme/omni", writes_text: true })).toBe(null);
  });

  it("is none that only resembles one, or whose provider has the name of one", () => {
    for (const id of [
      "images/gpt-5.5",
      "acme/imagine-coder",
      "acme/gpt-oss-safeguard-20b",
      "opus",
      "gpt-4o-audio",
    ])
      expect(unfitFor({ id })).toBe(null);
  });
});

const MODELS = [
  { id: "acme/text-embedding-3" },
  { id: "acme/large-10" },
  { id: "acme/talker", calls_tools: false },
  { id: "zeta/claude", name: "Claude" },
  { id: "acme/large-2", calls_tools: true },
  { id: "other/claude", name: "Claude" },
  { id: "acme/closed" },
];
const whyNot = (id: string) => (id === "acme/closed" ? "codex does not speak to this provider" : null);
const shown = (lastChosen: readonly string[]) =>
  modelMenu(MODELS, lastChosen, whyNot).map(({ model, part }) => [part, model.id]);

describe("the menu of models", () => {
  it("has models with tools by name, then those without, and what does not fit at the end", () => {
    expect(shown([])).toEqual([
      ["usual", "other/claude"],
      ["usual", "zeta/claude"],
      ["usual", "acme/large-2"],
      ["usual", "acme/large-10"],
      ["toolless", "acme/talker"],
      ["unfit", "acme/closed"],
      ["unfit", "acme/text-embedding-3"],
    ]);
    const reasons = modelMenu(MODELS, [], whyNot).flatMap(({ reason }) => reason ?? []);
    expect(reasons).toEqual(["codex does not speak to this provider", "makes embeddings, no text"]);
  });

  it("begins with those that were chosen last, if they still fit", () => {
    const first = shown(["acme/talker", "acme/closed", "gone/model", "acme/large-10"]).slice(0, 3);
    expect(first).toEqual([
      ["recent", "acme/talker"],
      ["recent", "acme/large-10"],
      ["usual", "other/claude"],
    ]);
  });
});

it("finds a model by any part of its name, its provider or its id, in whatever order", () => {
  const model = { id: "anthropic/claude-sonnet-4-6", name: "Claude Sonnet 4.6" };
  for (const typed of ["", "son", "SONNET 4.6", "4-6 anthro", "claude  anthropic"])
    expect(isFound(model, typed)).toBe(true);
  for (const typed of ["opus", "sonnet openai"]) expect(isFound(model, typed)).toBe(false);
});

it("names a model by its runtime's word, or else by its id, with the provider", () => {
  expect(shownModel({ id: "a/b", name: "B" })).toEqual({ name: "B", provider: "a" });
  expect(shownModel({ id: "router/maker/b" })).toEqual({ name: "maker/b", provider: "router" });
  expect(shownModel({ id: "opus" })).toEqual({ name: "opus", provider: "" });
});
