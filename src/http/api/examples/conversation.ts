/** Examples of what people and the agent of a session say. */
import type { Operations } from "./example.ts";
import { BEGAN, exampleId, LATER, PROMPT, SESSION, USER } from "./records.ts";

const MESSAGE = "0a7c3f52-9c1e-4f6b-8d20-1c6f0b1a7e35";
const NEXT = "Now add a test.";

const author = { kind: "user", user_id: USER, name: "Mia" };
const own = { kind: "message", role: "user", author, plan: [], turn_id: null };

/** The initial prompt of a session. */
const promptItem = {
  ...own,
  id: SESSION,
  rev: 0,
  status: "accepted",
  content: [{ type: "text", text: PROMPT }],
  created_at: BEGAN,
  completed_at: BEGAN,
};

const toolItem = {
  seq: 4,
  rev: 3,
  place: 2,
  kind: "tool",
  role: "agent",
  author: {},
  turn_id: SESSION,
  sandbox_id: exampleId("sandbox"),
  status: "running",
  content: [],
  plan: [],
  tool: {
    name: "bash",
    kind: "execute",
    title: "Run the tests",
    input: { command: "npm test" },
    output: "1 test failed\n",
    changes: [],
  },
  created_at: LATER,
};

const message = {
  ...own,
  id: MESSAGE,
  seq: 6,
  rev: 0,
  place: 6,
  turn_id: MESSAGE,
  status: "queued",
  content: [{ type: "text", text: NEXT }],
};

const request = {
  seq: 8,
  rev: 0,
  place: 7,
  kind: "request",
  role: "agent",
  author: {},
  turn_id: null,
  status: "running",
  content: [],
  plan: [],
  request: { kind: "permission", title: "bash", patterns: ["git push"], questions: [] },
  answer: { by: author, choice: "once", message: null },
};

export const CONVERSATION_EXAMPLES: Operations = {
  "conversation.get": {
    summary: "Show a session's conversation: the newest items first, in pages.",
    response: {
      items: [toolItem, promptItem],
      state: { state: "running" },
      usage: { input_tokens: 5200, output_tokens: 310, cached_tokens: 4096, cost_usd: 0.02 },
      seq: 5,
    },
  },
  "conversation.search": {
    summary: "Find what people and the agent said in a session, by words.",
    response: { found: [{ text: PROMPT }] },
  },
  "conversation.output": { summary: "Read the whole kept output of a tool.", response: "1 test failed\n" },
  "conversation.text": { summary: "Read the whole text of an item.", response: "The checkout works.\n" },
  "messages.post": {
    summary: "Send a message to the agent. To a session that has ended, it also restarts the session.",
    request: { id: MESSAGE, text: NEXT },
    response: { message },
  },
  "messages.cancel": "Cancel a message that waits.",
  "messages.interrupt": {
    summary: "End the agent's turn. Its work so far stays, and the queue is held.",
    response: { interrupted: true },
  },
  "messages.resume": "Let the queue go on after an interrupt.",
  "messages.answer": {
    summary: "Answer a request of the agent. The first answer counts.",
    request: { choice: "once" },
    response: { request },
  },
  "messages.models": {
    summary: "List the models and agents that a running session offers.",
    response: {
      models: [
        {
          id: "anthropic/claude-sonnet-4-6",
          name: "Claude Sonnet 4.6",
          efforts: ["default", "high", "max"],
          writes_text: true,
          calls_tools: true,
          context: 1_000_000,
          price: {},
        },
      ],
      agents: [{ name: "build", description: "Changes files and runs commands." }],
    },
  },
};
