import { OPENCODE } from "../../../src/domain/runtimes/opencode.ts";

/** An agent as the options of a project list it, without its name. */
export const AGENT = {
  runtime: "opencode",
  model: null,
  mode: null,
  effort: null,
  permissions: null,
  fallback: [],
  problem: null,
};
const CHOICES = [
  { id: "openai/gpt-small", context: 400_000, price: { input: 0.25, cached: 0.025, output: 2 } },
  { id: "openai/gpt-large", context: 1_050_000, price: { input: 5, cached: 0.5, output: 30 } },
  { id: "openai/text-embedding-3" },
  { id: "openrouter/a-maker-with-a-name/a-model-of-a-very-long-name-that-no-row-holds-2026-11-30-preview" },
];
export const OPTIONS = {
  default_branch: "main",
  branches: ["main", "release"],
  agents: ["broken", "fast", "ours", "release-notes"],
  agent_choices: [
    { ...AGENT, name: "default" },
    { ...AGENT, name: "broken", runtime: null, problem: "There is no runtime codex." },
    { ...AGENT, name: "fast", runtime: "codex" },
    { ...AGENT, name: "ours", runtime: "acp", mode: "careful" },
    { ...AGENT, name: "release-notes" },
  ],
  runtimes: [
    {
      name: "codex",
      takes_command: false,
      models: "own",
      provider_models: [],
      modes: [],
      plan_mode: null,
      command_files: null,
      efforts: true,
      permissions: ["ask", "allow"],
      instructions: true,
      conversation: true,
      lacks: [{ ability: "exit_codes", reason: "Codex does not say with which code a command ended." }],
    },
    {
      name: "opencode",
      takes_command: false,
      models: "platform",
      provider_models: [],
      modes: null,
      plan_mode: "plan",
      command_files: OPENCODE.commandFiles,
      efforts: false,
      permissions: ["ask", "allow"],
      instructions: true,
      conversation: true,
      lacks: [],
    },
  ],
  providers: [
    { name: "acme", kind: "openai", owner: "person", models: ["large-2", "small-2"], unused: null },
    { name: "acme", kind: "openai", owner: "project", models: ["large-2"], unused: "person" },
    { name: "anthropic", kind: "anthropic", owner: "account", models: ["claude-large"], unused: "secret" },
  ],
  default_model: "anthropic/claude-large",
  models: ["anthropic/claude-large", ...CHOICES.map(({ id }) => id)],
  model_choices: [{ id: "anthropic/claude-large" }, ...CHOICES],
};

const LACKS = [
  { ability: "permissions", reason: "Codex asks no permissions: its own sandbox would forbid them." },
  { ability: "plans", reason: "Codex has no mode that plans." },
  { ability: "exit_codes", reason: "Codex does not say with which code a command ended." },
];

/** A project with agents of several runtimes, and long names. */
export const MANY_AGENTS = {
  ...OPTIONS,
  agent_choices: [
    { ...AGENT, name: "default" },
    {
      ...AGENT,
      name: "broken",
      runtime: null,
      problem:
        "the runtime codex is not offered by this installation. It offers opencode, acp, plain and claude-code.",
    },
    {
      ...AGENT,
      name: "an-agent-whose-name-is-so-long-that-it-could-push-the-table-aside-if-nothing-broke-it",
      runtime: "codex",
      model: "acme/large-2-with-a-name-of-a-model-that-is-longer-than-most-of-them-are-2026-11-30",
      mode: "agent-full-access",
      permissions: "allow",
      fallback: ["fast", "release-notes", "another-agent-with-a-long-name-that-has-no-blank-in-it"],
    },
    { ...AGENT, name: "fast", runtime: "codex", mode: "agent-full-access" },
    { ...AGENT, name: "ours", runtime: "acp", mode: "careful", permissions: "ask" },
  ],
  runtimes: [
    { ...OPTIONS.runtimes[0], lacks: LACKS },
    OPTIONS.runtimes[1],
    {
      ...OPTIONS.runtimes[0],
      name: "gemini",
      lacks: [{ ability: "outputs", reason: "Gemini CLI does not tell what a command prints." }],
    },
  ],
};
