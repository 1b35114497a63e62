/** Examples of the operations on providers of models (operations.ts). */
import type { Examples } from "../../http/api/examples/example.ts";
import { BEGAN, LATER } from "../../http/api/examples/records.ts";

const base_url = "https://models.acme.example/v1";
const wish = { name: "acme", kind: "openai-compatible", base_url, key: "sk-example" };
const change = { models: ["large-2"] };
const instants = { tried_at: LATER, updated_at: LATER };
const providerList = (owner: string) => ({ model_providers: [{ owner }] });

export const MODEL_PROVIDER_EXAMPLES: Examples = {
  nouns: {
    modelprovider: {
      owner: "account",
      name: "acme",
      kind: "openai-compatible",
      base_url,
      has_key: true,
      models: ["large-2", "small-2"],
      prices: { "large-2": { input: 2, cached: 0.2, output: 8 } },
      unpriced: ["small-2"],
      tried_at: BEGAN,
    },
    countedmodel: { model: "acme/large-2", calls: 12, cost_usd: 0.22692 },
  },
  operations: {
    "modelProviders.list": "List the account's providers of models, the oldest first. Keys are never shown.",
    "modelProviders.create": {
      summary:
        "Add a provider of models. The provider is asked for its models first; if it refuses, nothing is saved.",
      request: wish,
    },
    "modelProviders.change": {
      summary: "Change a provider's address, key or models. An address at another host needs the key again.",
      request: change,
      response: instants,
    },
    "modelProviders.listOwn": {
      summary: "List your own providers of models. Only your sessions use them, while you alone steer them.",
      response: providerList("person"),
    },
    "modelProviders.createOwn": {
      summary: "Add a provider of models of your own. It is tried as one of the account.",
      request: wish,
      response: { owner: "person" },
    },
    "modelProviders.changeOwn": {
      summary: "Change the address, key or models of your own provider.",
      request: change,
      response: { ...instants, owner: "person" },
    },
    "modelProviders.deleteOwn": "Delete your own provider with its key. Your sessions lose it at once.",
    "modelProviders.listOfProject": {
      summary: "List a project's own providers of models, the oldest first. Keys are never shown.",
      response: providerList("project"),
    },
    "modelProviders.createForProject": {
      summary: "Add a provider of models for the sessions of a project. It is tried as one of the account.",
      request: wish,
      response: { owner: "project" },
    },
    "modelProviders.changeOfProject": {
      summary: "Change the address, key or models of a project's provider.",
      request: change,
      response: { ...instants, owner: "project" },
    },
    "modelProviders.deleteOfProject":
      "Delete a project's provider with its key. Sessions that use it lose it at once.",
    "modelProviders.usage": "Show the calls and the tokens that passed the service for a session, by model.",
    "modelProviders.delete": "Delete a provider with its key. Sessions that use it lose it at once.",
  },
};
