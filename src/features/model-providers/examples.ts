/** Examples of the operations on providers of models (operations.ts). */
import type { OperationExample } from "../../http/api/examples/example.ts";
import { BEGAN, LATER, MODEL_PROVIDER } from "../../http/api/examples/records.ts";

const provider = {
  id: MODEL_PROVIDER,
  name: "acme",
  kind: "openai-compatible",
  base_url: "https://models.acme.example/v1",
  has_key: true,
  models: ["large-2", "small-2"],
  prices: { "large-2": { input: 2, cached: 0.2, output: 8 } },
  unpriced: ["small-2"],
  tried_at: BEGAN,
  created_at: BEGAN,
  updated_at: BEGAN,
};

export const MODEL_PROVIDER_EXAMPLES: Readonly<Record<string, OperationExample>> = {
  "modelProviders.list": {
    summary: "List the account's providers of models, the oldest first. Keys are never shown.",
    response: { model_providers: [provider] },
  },
  "modelProviders.create": {
    summary:
      "Add a provider of models. The provider is asked for its models first; if it refuses, nothing is saved.",
    request: {
      name: provider.name,
      kind: provider.kind,
      base_url: provider.base_url,
      key: "sk-example",
    },
    response: provider,
  },
  "modelProviders.change": {
    summary: "Change a provider's address, key or models. An address at another host needs the key again.",
    request: { models: ["large-2"] },
    response: { ...provider, models: ["large-2"], tried_at: LATER, updated_at: LATER },
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
