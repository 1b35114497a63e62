/** Which models and agents the next session can have. */
import { expect, it } from "vitest";
import {
  agentOffers,
  effortOffers,
  modelOffers,
  planOffers,
  type SessionOptions,
  whyNoEffort,
  withAgent,
} from "../../../dashboard/home/fitting.ts";
import { AGENT } from "../samples/sample-options.ts";

const runtime = (name: string, more: object = {}) => ({
  name,
  takes_command: false,
  models: "own" as const,
  provider_models: [],
  modes: [],
  plan_mode: "plan",
  command_files: null,
  efforts: true,
  permissions: [],
  instructions: true,
  conversation: true,
  lacks: [],
  ...more,
});
const agent = (name: string, program: string | null, more: object = {}) => ({
  ...AGENT,
  name,
  runtime: program,
  ...more,
});
const OPTIONS: SessionOptions = {
  default_branch: "main",
  branches: [],
  agents: [],
  agent_choices: [
    agent("default", "opencode"),
    agent("fast", "codex", { model: "acme/small", effort: "high" }),
    agent("any", "acp"),
    agent("web", "plain"),
    agent("planner", "opencode", { mode: "plan" }),
    agent("broken", null, { problem: "There is no runtime x." }),
  ],
  runtimes: [
    runtime("opencode", { models: "platform", provider_models: ["acme/large"] }),
    runtime("codex", { provider_models: ["acme/large"] }),
    runtime("acp", { takes_command: true }),
    runtime("plain", {
      models: null,
      efforts: false,
      plan_mode: null,
      lacks: [
        { ability: "effort_changes", reason: "It has none." },
        { ability: "plans", reason: "It has no plans." },
      ],
    }),
  ],
  providers: [],
  default_model: "acme/large",
  models: ["acme/large", "other/one", "opus"],
  model_choices: [{ id: "acme/large", context: 200_000 }, { id: "other/one" }, { id: "opus" }],
};

it("names each agent with its runtime, and the one without a name by its runtime alone", () => {
  expect(agentOffers(OPTIONS)).toEqual([
    { value: "", words: "opencode", reason: null },
    { value: "fast", words: "fast (codex)", reason: null },
    { value: "any", words: "any (acp)", reason: null },
    { value: "web", words: "web (plain)", reason: null },
    { value: "planner", words: "planner (opencode)", reason: null },
    { value: "broken", words: "broken (cannot start)", reason: "There is no runtime x." },
  ]);
});

const closed = { "other/one": "codex does not speak to this provider" };
const large = { id: "acme/large", context: 200_000 };

it.each([
  ["", large, ["other/one", "opus"], { opus: "opencode takes provider/model" }],
  ["fast", { id: "acme/small" }, ["acme/large", "other/one", "opus"], closed],
  ["any", null, ["acme/large", "other/one", "opus"], {}],
  ["gone", large, ["other/one", "opus"], {}],
])(
  "says for the agent %j which model is its own, and which others do not fit it",
  (name, own, others, unfit) => {
    const { own: first, models, whyNot } = modelOffers(OPTIONS, name);
    expect(first).toEqual({ words: own === null ? "Its own model" : "Default", model: own });
    expect(models.map(({ id }) => id)).toEqual(others);
    const reasons = others.map((id) => [id, whyNot(id)] as const);
    expect(Object.fromEntries(reasons.filter(([, reason]) => reason !== null))).toEqual(unfit);
  },
);

it("offers no model to a runtime that takes none", () => {
  const { models, whyNot } = modelOffers(OPTIONS, "web");
  expect(new Set(models.map(({ id }) => whyNot(id)))).toEqual(new Set(["plain takes no model"]));
});

const words = (name: string) => effortOffers(OPTIONS, name).map((offer) => [offer.value, offer.words]);
const low = ["low", "Low effort"];
const medium = ["medium", "Medium effort"];

it("offers an effort where the agent's runtime takes one, and says why another takes none", () => {
  expect(words("")).toEqual([["", "Usual effort"], low, medium, ["high", "High effort"]]);
  expect(words("fast")).toEqual([["", "The agent's effort, high"], ["default", "Usual effort"], low, medium]);
  for (const name of ["web", "broken", "gone"]) expect(words(name)).toEqual([]);
  expect(["", "web", "gone"].map((name) => whyNoEffort(OPTIONS, name))).toEqual([null, "It has none.", null]);
});

it("offers to plan first, and says why a runtime cannot", () => {
  const offers = (name: string) => planOffers(OPTIONS, name).map(({ value, reason }) => [value, reason]);
  expect(offers("")).toEqual([
    ["", null],
    ["plan", null],
  ]);
  expect(offers("web")).toEqual([
    ["", null],
    ["plan", "It has no plans."],
  ]);
  expect(planOffers(OPTIONS, "planner")).toEqual([{ value: "", words: "Plan first", reason: null }]);
});

it("drops an effort and a mode with an agent that does not take them", () => {
  const choice = { base_ref: "main", agent_name: "", agent_model: "opus", effort: "high", mode: "plan" };
  expect(withAgent(OPTIONS, choice, "any")).toEqual({ ...choice, agent_name: "any" });
  expect(withAgent(OPTIONS, choice, "web")).toEqual({ ...choice, agent_name: "web", effort: "", mode: "" });
});
