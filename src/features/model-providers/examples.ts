/** Examples of the operations on providers of models (operations.ts). */
import type { OperationExample } from "../../http/api/examples/example.ts";
import { BEGAN, LATER, MODEL_PROVIDER } from "../../http/api/examples/records.ts";

const provider = {
  id: MODEL_PROVIDER,
  owner: "account",
  name: "acme",
  kind: "openai-compatible",
  base_url: "https://models.acme.example/v1",
  has_key: true,
  models: ["large-2", "small-2"],
  prices: { "large-2": { input: 2, cached: 0.2, output: 8 } },
  unpriced: ["small-2"],
  tried_at: BEGAN,
  refusal: null,
  created_at: BEGAN,
  updated_at: BEGAN,
};

const wish = { name: provider.name, kind: provider.kind, base_url: provider.base_url, key: "sk-example" };

export const MODEL_PROVIDER_EXAMPLES: Readonly<Record<string, OperationExample>> = {
  "modelProviders.list": {
    summary: "List the account's providers of models, the oldest first. Keys are never shown.",
    response: { model_providers: [provider] },
  },
  "modelProviders.create": {
    summary:
      "Add a provider of models. The provider is asked for its models first; if it refuses, nothing is saved.",
    request: wish,
    response: provider,
  },
  "modelProviders.change": {
    summary: "Change a provider's address, key or models. An address at another host needs the key again.",
    request: { models: ["large-2"] },
    response: { ...provider, models: ["large-2"], tried_at: LATER, updated_at: LATER },
  },
  "modelProviders.listOwn": {
    summary: "List your own providers of models. Only your sessions use them, while you alone steer them.",
    response: { model_providers: [{ ...provider, owner: "person" }] },
  },
  "modelProviders.createOwn": {
    summary: "Add a provider of models of your own. It is tried as one of the account.",
    request: wish,
    response: { ...provider, owner: "person" },
  },
  "modelProviders.changeOwn": {
    summary: "Change the address, key or models of your own provider.",
    request: { models: ["large-2"] },
    response: { ...provider, owner: "person", models: ["large-2"], tried_at: LATER, updated_at: LATER },
  },
  "modelProviders.deleteOwn": {
    summary: "Delete your own provider with its key. Your sessions lose it at once.",
  },
  "modelProviders.listOfProject": {
    summary: "List a project's own providers of models, the oldest first. Keys are never shown.",
    response: { model_providers: [{ ...provider, owner: "project" }] },
  },
  "modelProviders.createForProject": {
    summary: "Add a provider of models for the sessions of a project. It is tried as one of the account.",
    request: wish,
    response: { ...provider, owner: "project" },
  },
  "modelProviders.changeOfProject": {
    summary: "Change the address, key or models of a project's provider.",
    request: { models: ["large-2"] },
    response: { ...provider, owner: "project", models: ["large-2"], tried_at: LATER, updated_at: LATER },
  },
  "modelProviders.deleteOfProject": {
    summary: "Delete a project's provider with its key. Sessions that use it lose it at once.",
  },
  "modelProviders.usage": {
    summary: "Show the calls and the tokens that passed the service for a session, by model.",
    response: {
      models: [
        {
          model: "acme/large-2",
          calls: 12,
          untold_calls: 0,
          input_tokens: 184_220,
          cached_tokens: 120_000,
          output_tokens: 9_310,
          estimated_tokens: 0,
          cost_usd: 0.22692,
        },
      ],
    },
  },
  "modelProviders.delete": {
    summary: "Delete a provider with its key. Sessions that use it lose it at once.",
  },
};
