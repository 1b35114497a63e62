/** Tables of agents in a manifest, on the runtimes of an installation. */
import * as Result from "effect/Result";
import { describe, expect, it } from "vitest";
import { agentNamed, agentStart, waitsAs } from "../../../src/domain/agents/agents.ts";
import { offeredRuntimes } from "../../../src/domain/runtimes/runtimes.ts";
import { AGENT_LIMIT, offeredAgents } from "../../../src/domain/manifest/manifest-agents.ts";
import { withAgents, type Manifest } from "../../../src/domain/manifest/manifest.ts";
import { cron, parse, slugs } from "../manifest/manifest-text.ts";
import { OFFERED } from "../runtimes/offered.ts";

const checked = (text: string, files: readonly string[] = []): Manifest =>
  withAgents(parse(text), { files: new Set(files), offered: OFFERED });

const errorsOf = (text: string) =>
  checked(text).errors.map(({ path, line, message }) => ({ path, line, message }));

const agentIn = (text: string, name: string) =>
  agentNamed(offeredAgents(parse(text).agents, OFFERED).agents, name, OFFERED);

it("reads a table on the installation's own runtime", () => {
  const text = `[agents.reviewer]
model = "anthropic/claude-sonnet-4-6"
mode = "plan"
permissions = "ask"
instructions = "./docs//reviewer.md"`;
  expect(errorsOf(text)).toEqual([]);
  expect(agentIn(text, "reviewer")).toMatchObject(
    Result.succeed({
      name: "reviewer",
      runtime: OFFERED[0],
      model: "anthropic/claude-sonnet-4-6",
      mode: "plan",
      permissions: "ask",
      instructions: "docs/reviewer.md",
      hasTable: true,
    }),
  );
});

it("starts a program of the project's environment by its command", () => {
  const text = `[agents.ours]\nruntime = "acp"\ncommand = ["our-agent", "--acp"]\nmodel = "opus"\nmode = "careful"`;
  expect(errorsOf(text)).toEqual([]);
  expect(agentIn(text, "ours")).toMatchObject({
    success: { runtime: { name: "acp", command: ["our-agent", "--acp"], models: "own" }, model: "opus" },
  });
});

it("makes a name without a table an agent of the installation's own runtime", () => {
  expect(agentIn("", "reviewer")).toMatchObject({ success: { runtime: OFFERED[0], hasTable: false } });
});

it("changes the agent of sessions that choose none by the table of default", () => {
  const text = `[agents.default]\nruntime = "plain"\ncommand = ["ours"]`;
  expect(agentIn(text, "default")).toMatchObject({ success: { runtime: { name: "plain" } } });
});

it.each([
  ['[agents.a]\nruntime = "claude-code"', "runtime", 2, "This installation offers: opencode, acp, plain."],
  ['[agents.a]\nruntime = "acp"', null, 1, "needs command"],
  ['[agents.a]\ncommand = ["x"]', "command", 2, "has its own command"],
  ['[agents.a]\nruntime = "acp"\ncommand = "x"', "command", 3, "must be a list"],
  ["[agents.a]\ncommand = []", "command", 2, "must be a list"],
  ['[agents.a]\nmodel = "opus"', "model", 2, "provider/model"],
  ['[agents.a]\nmodel = "a model"', "model", 2, "without white space"],
  ['[agents.a]\n# a comment\nmode = "yolo"', "mode", 3, "Choose one of: build, plan."],
  ['[agents.a]\npermissions = "never"', "permissions", 2, "one of: ask, allow."],
  ['[agents.a]\ninstructions = "../a.md"', "instructions", 2, "inside the repository"],
  ['[agents.a]\nfallback = "b"', "fallback", 2, "must be a list"],
  ['[agents.a]\nfallback = ["b", "b"]', "fallback", 2, "must be a list"],
  ['[agents.a]\nfallback = ["b"]', "fallback", 2, "There is no table [agents.b]."],
  ['[agents.a]\nfallback = ["b"]\n[agents.b]', "fallback", 2, "The agent b must have a model"],
  ['[agents.a]\nmodel = "x/y"\nfallback = ["a"]', "fallback", 3, "leads back to it"],
  [
    '[agents.a]\nfallback = ["b"]\n[agents.b]\nruntime = "acp"\ncommand = ["x"]\nmodel = "m"',
    "fallback",
    2,
    "in another runtime",
  ],
  [
    '[agents.a]\nfallback = ["b"]\n[agents.b]\nmodel = "x/y"\npermissions = "ask"',
    "fallback",
    2,
    "same command and permissions",
  ],
  ['[agents.a]\nruntime = "plain"\ncommand = ["x"]\nfallback = ["b"]', "fallback", 4, "takes no fallback"],
  ['[agents.a]\nmodels = "b"', "models", 2, "There is no field models."],
  ['[agents.a]\nruntime = "plain"\ncommand = ["x"]\nmodel = "opus"', "model", 4, "takes no model"],
  ['[agents.a]\nruntime = "plain"\ncommand = ["x"]\nmode = "plan"', "mode", 4, "takes no mode"],
  ['[agents.a]\nruntime = "plain"\ncommand = ["x"]\npermissions = "ask"', "permissions", 4, "takes no"],
  ['[agents.a]\nruntime = "plain"\ncommand = ["x"]\ninstructions = "a"', "instructions", 4, "takes no"],
])("refuses %j by its field and line", (text, field, line, words) => {
  const path = field === null ? "agents.a" : `agents.a.${field}`;
  expect(errorsOf(text)).toEqual([{ path, line, message: expect.stringContaining(words) as string }]);
});

const table = (name: string, fallback: readonly string[]) =>
  `[agents.${name}]\nmodel = "x/${name}"\n${fallback.length === 0 ? "" : `fallback = ${JSON.stringify(fallback)}`}`;

it("tries the agents of a fallback in their order, each once, and before the next one those that its own table names", () => {
  const text = [
    table("a", ["b", "d"]),
    table("b", ["c", "d"]),
    table("c", []),
    `${table("d", [])}\nmode = "build"`,
  ].join("\n");
  expect(errorsOf(text)).toEqual([]);
  expect(agentStart(Result.getOrThrow(agentIn(text, "a")), "x/other").agent?.fallback).toEqual([
    { name: "b", model: "x/b", mode: null },
    { name: "c", model: "x/c", mode: null },
    { name: "d", model: "x/d", mode: "build" },
  ]);
});

/** An agent and the one of its fallback. */
const pairOf = (runtime: string, first: string, next: string) =>
  `[agents.a]\nruntime = "${runtime}"\n${first}\nfallback = ["b"]\n[agents.b]\nruntime = "${runtime}"\n${next}`;

describe("a fallback of a program that is pointed to a provider when it starts", () => {
  const offered = offeredRuntimes({ adapter: "plain", command: ["x"] }, ["claude-code", "codex"]);
  const faults = (...words: Parameters<typeof pairOf>) =>
    withAgents(parse(pairOf(...words)), { files: new Set(), offered }).errors.map(({ message }) => message);

  it.each([
    ["codex", 'model = "x/one"', 'model = "y/one"', "a model of another provider"],
    ["codex", 'model = "x/one"', 'model = "gpt"', "a model of another provider"],
    ["claude-code", 'model = "x/one"', 'model = "x/two"', "one model of an account's provider"],
  ])("in %s is refused from %s to %s", (runtime, first, next, words) => {
    expect(faults(runtime, first, next)).toEqual([expect.stringContaining(words)]);
  });

  it.each([
    ["codex", 'model = "x/one"', 'model = "x/two"'],
    ["claude-code", 'model = "x/one"', 'model = "x/one"\nmode = "plan"'],
    ["claude-code", 'model = "opus"', 'model = "sonnet"'],
    ["codex", "", 'model = "x/two"'],
  ])("in %s may lead from %s to %s", (runtime, first, next) => {
    expect(faults(runtime, first, next)).toEqual([]);
  });

  it("is left out if the session chose a model of another provider", () => {
    const { agents } = offeredAgents(parse(pairOf("codex", "", 'model = "x/two"')).agents, offered);
    const agent = Result.getOrThrow(agentNamed(agents, "a", offered));
    expect(["x/one", "y/one"].map((model) => agentStart(agent, model).agent?.fallback?.length ?? 0)).toEqual([
      1, 0,
    ]);
  });
});

it("refuses each agent of a circle of fallbacks, and none beside it", () => {
  const text = ["ab", "bc", "cb"]
    .map(([name, next]) => `[agents.${name}]\nmodel = "x/${name}"\nfallback = ["${next}"]`)
    .join("\n");
  expect(errorsOf(text).map(({ path, line }) => [path, line])).toEqual([
    ["agents.b.fallback", 6],
    ["agents.c.fallback", 9],
  ]);
});

it.each([
  ["[[agents]]\n", "agents", "Write each agent as its own table"],
  ["agents = 1", "agents", "Write each agent as its own table"],
  ["[agents]\na = 1", "agents.a", "Write [agents.a] as a table."],
  ['[agents."../a"]', "agents.../a", "name must have 1 to 64 letters"],
])("refuses %j, which is no table of an agent", (text, path, words) => {
  expect(errorsOf(text)).toMatchObject([{ path, message: expect.stringContaining(words) as string }]);
});

it("reads at most 200 tables", () => {
  const text = Array.from({ length: AGENT_LIMIT + 1 }, (_, at) => `[agents.a${at}]`).join("\n");
  expect(errorsOf(text)).toMatchObject([{ path: "agents", line: AGENT_LIMIT + 1 }]);
});

it("lets a trigger name an agent with a table, and refuses one whose table has an error", () => {
  const text = [
    `[agents.good]`,
    `[agents.bad]\nmode = "yolo"`,
    cron({ slug: '"one"', agent: '"good"' }),
    cron({ slug: '"two"', agent: '"bad"' }),
    cron({ slug: '"three"', agent: '"filed"' }),
  ].join("\n");
  const manifest = checked(text, ["filed"]);
  expect(slugs(manifest)).toEqual(["one", "three"]);
  expect(manifest.errors).toMatchObject([
    { slug: null, path: "agents.bad.mode" },
    { slug: "two", path: "triggers[1].agent", message: expect.stringContaining("no mode yolo") as string },
  ]);
});

it("gives a runtime its model in the variable that it reads, and the mode that it should begin in", () => {
  const offered = offeredRuntimes({ adapter: "plain", command: ["x"] }, ["claude-code"]);
  const tables = offeredAgents(
    parse(
      '[agents.a]\nruntime = "claude-code"\nmodel = "opus"\n[agents.b]\nruntime = "claude-code"\nmode = "plan"',
    ).agents,
    offered,
  ).agents;
  const started = (name: string, model: string | null) =>
    agentStart(Result.getOrThrow(agentNamed(tables, name, offered)), model).agent;
  expect(started("a", null)).toEqual({
    mode: "default",
    instructions: null,
    variables: { ANTHROPIC_MODEL: "opus" },
  });
  expect(started("a", "sonnet")).toMatchObject({ variables: { ANTHROPIC_MODEL: "sonnet" } });
  expect(started("b", null)).toEqual({
    mode: "plan",
    instructions: null,
    variables: {},
  });
});

it.each([
  ["", true],
  ['[agents.a]\nmode = "plan"\nmodel = "openai/gpt-5.5"\ninstructions = "a.md"', true],
  ['[agents.a]\npermissions = "ask"', false],
  ['[agents.a]\nruntime = "acp"\ncommand = ["ours"]', false],
  ['[agents.a]\nmode = "wrong"', false],
  ['[agents.default]\nruntime = "acp"\ncommand = ["ours"]', false],
  ['[agents.default]\nmode = "wrong"', false],
  [
    '[agents.a]\nruntime = "acp"\ncommand = ["ours"]\n[agents.default]\nruntime = "acp"\ncommand = ["ours"]',
    true,
  ],
])(
  "lets a sandbox that waits with the default agent's runtime be one of agent a with %j: %s",
  (text, can) => {
    expect(waitsAs(offeredAgents(parse(text).agents, OFFERED).agents, "a", OFFERED)).toBe(can);
  },
);
