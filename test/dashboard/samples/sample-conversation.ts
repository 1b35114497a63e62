/** A conversation with one item of each kind, for the page to show. */
import type { FakeConversation } from "../fakes/fake-conversation.ts";

type Json = Readonly<Record<string, unknown>>;

const SPENT = { input_tokens: 4210, output_tokens: 318, cached_tokens: 3900, cost_usd: 0.0123 };

/** An item with all its fields. */
export const sampleItem = (id: string, rest: Json): Json => ({
  id,
  rev: 1,
  kind: "message",
  role: "agent",
  author: null,
  turn_id: null,
  parent_id: null,
  sandbox_id: "s",
  status: "completed",
  content: [],
  tool: null,
  plan: [],
  request: null,
  answer: null,
  model: null,
  usage: null,
  error: null,
  created_at: "2026-11-20T06:52:05.000Z",
  completed_at: "2026-11-20T06:52:07.400Z",
  ...rest,
});

export const text = (said: string): Json => ({ content: [{ type: "text", text: said }] });

export const sampleTool = (rest: Json = {}): Json => ({
  kind: "tool",
  tool: {
    name: "bash",
    kind: "execute",
    title: "git log --oneline",
    input: { command: "git log --oneline" },
    output: "6113728 Initial commit\n",
    truncated: false,
    changes: [],
    ...rest,
  },
});

const ANSWER = `I wrote the note. The push holds **one commit**, *Initial commit*.

## What I did

1. Read \`body.head_commit\`
   - its id
   - its message
2. Wrote the file

- [x] note written
- [ ] change request opened

| File | Lines |
|---|--:|
| \`notes/6113728.md\` | 3 |

\`\`\`sh
git add notes && git commit -m "Write notes/6113728.md"
\`\`\`

> See [the guide](https://example.com/guide) for the form of notes.`;

const PATCH = `@@ -0,0 +1,3 @@
+# Initial commit
+
+Codertocat pushed the first commit of Hello-World.
`;

const said = (prompt: string): Json[] => [
  sampleItem("i-prompt", {
    role: "user",
    author: { kind: "trigger", name: "on-push", trigger_slug: "on-push", fire_id: null },
    status: "accepted",
    ...text(prompt),
  }),
  sampleItem("i-thought", { kind: "thought", ...text("The push has **one** commit. A note needs its id.") }),
  sampleItem("i-plan", {
    kind: "plan",
    status: "running",
    completed_at: null,
    plan: [
      { text: "Read the push", status: "completed" },
      { text: "Write the note", status: "running" },
      { text: "Open a change request", status: "pending" },
      { text: "Tag a release", status: "cancelled" },
    ],
  }),
  sampleItem("i-log", sampleTool({})),
  sampleItem("i-edit", {
    ...sampleTool({
      name: "write",
      kind: "edit",
      title: "notes/6113728.md",
      input: { filePath: "notes/6113728.md", content: "# Initial commit" },
      output: "",
      changes: [{ path: "notes/6113728.md", operation: "add", patch: PATCH }],
    }),
  }),
  sampleItem("i-test", {
    ...sampleTool({ title: "npm test", input: { command: "npm test" }, output: "sh: 1: npm: not found\n" }),
    status: "failed",
    error: { code: "exit_127", message: "The command ended with code 127." },
  }),
  sampleItem("i-answer", {
    ...text(ANSWER),
    model: "openai/gpt-5",
    usage: SPENT,
    context: { tokens: 122_000, size: 200_000 },
  }),
  sampleItem("i-asked", {
    kind: "request",
    status: "completed",
    answer: {
      by: { kind: "user", name: "Mona", trigger_slug: null, fire_id: null },
      at: "2026-11-20T06:52:07.400Z",
      choice: "once",
    },
    request: {
      kind: "permission",
      title: "Fetch a page",
      patterns: ["https://example.com/guide"],
      questions: [],
    },
  }),
  sampleItem("i-note", {
    kind: "note",
    role: null,
    ...text("The sandbox was restarted. The agent has the whole conversation."),
  }),
  sampleItem("i-person", {
    role: "user",
    author: { kind: "user", name: "Mona", trigger_slug: null, fire_id: null },
    status: "accepted",
    ...text("Thanks! Please open the change request as well."),
  }),
  sampleItem("i-growing", { status: "running", completed_at: null, ...text("I open it") }),
  sampleItem("i-question", {
    kind: "request",
    status: "pending",
    completed_at: null,
    request: {
      kind: "question",
      title: "",
      patterns: [],
      questions: [
        {
          title: "Title",
          text: "Which title shall the change request have?",
          options: [
            { label: "Note the first push", description: "As the note says" },
            { label: "Add notes", description: null },
          ],
          multiple: false,
        },
      ],
    },
  }),
  sampleItem("i-queued", {
    role: "user",
    author: { kind: "user", name: "Mona", trigger_slug: null, fire_id: null },
    status: "queued",
    completed_at: null,
    ...text("Then tag a release."),
  }),
];

const PROMPT = "Write a note about the push below.\n\nPushed by: Codertocat\nMessage: Initial commit";

const MODELS = {
  models: [
    { id: "openai/text-embedding-3", name: "Embedding 3", writes_text: true, calls_tools: false },
    {
      id: "openai/gpt-5",
      name: "GPT-5",
      efforts: ["default", "low", "high"],
      calls_tools: true,
      context: 400_000,
      price: { input: 1.25, cached: 0.125, output: 10 },
    },
    {
      id: "anthropic/claude-sonnet-4-5",
      name: "Claude Sonnet 4.5",
      calls_tools: true,
      context: 1_000_000,
      price: { input: 3, cached: 0.3, output: 15 },
    },
    { id: "acme/talker", name: "Talker", calls_tools: false },
  ],
  agents: [
    { name: "build", description: "Writes code" },
    { name: "plan", description: "Only reads" },
  ],
  default_model: "openai/gpt-5",
  commands: [
    {
      name: "review",
      description:
        "Reviews the changes of the branch, or of a commit, and says what to mend before the merge",
    },
    { name: "init", description: "Writes AGENTS.md for this repository" },
    {
      name: "release",
      description: "Tags a release, and writes its notes from the commits since the last one",
    },
    { name: "compact", description: null },
  ],
  lacks: [{ ability: "exit_codes", reason: "Gemini CLI does not tell the exit code of a command." }],
};

/** @param items oldest first, without their numbers */
export const conversationOf = (
  items: readonly Json[],
  rest: Partial<FakeConversation> = {},
): FakeConversation => ({
  items: items.map((item, index) => ({ ...item, seq: index + 1, place: index + 1 })),
  turn: { state: "idle", since: "2026-11-20T06:52:09.000Z", waiting_for: null },
  usage: SPENT,
  held: false,
  models: MODELS,
  faults: [],
  files: new Map(),
  seq: items.length,
  history: [],
  ...rest,
});

/** @param now ms since the epoch */
export const sampleConversation = (now: number): FakeConversation =>
  conversationOf(said(PROMPT), {
    turn: {
      state: "requires_action",
      since: new Date(now - 42_000).toISOString(),
      waiting_for: "i-question",
    },
  });

const PLAN = [
  "## Greet by the hour",
  "",
  "The greeting in `src/greet.ts` is always the same. I change it in three steps:",
  "",
  "1. Add `partOfDay(date)` with a test for each of its four answers.",
  "2. Use it in `greet`, and keep `Hello` for an unknown hour.",
  "3. Add one line to `README.md`.",
  "",
  "I do not touch the translations, because issue 31 is about them.",
].join("\n");

/** The turn of an agent that has ended with a plan, with the message that is the plan. @param id of the plan */
export const planItems = (id: string): readonly Json[] => {
  const modes = [
    { id: "default", name: "default" },
    { id: "acceptEdits", name: "acceptEdits" },
  ];
  return [
    sampleItem("i-prompt", {
      role: "user",
      author: { kind: "user", name: "Mona", trigger_slug: null, fire_id: null },
      status: "accepted",
      ...text("Greet people by the hour of the day."),
    }),
    sampleItem("i-planned", { ...text(PLAN), turn_id: "i-prompt" }),
    sampleItem(id, {
      kind: "request",
      status: "pending",
      completed_at: null,
      turn_id: "i-prompt",
      request: {
        kind: "plan",
        title: "",
        patterns: [],
        questions: [],
        plan: { text: PLAN, modes },
      },
    }),
  ];
};
