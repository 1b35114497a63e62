/** Everything that a person can do with a conversation, for actions.real.test.ts. */
import type { Action } from "./actions.ts";
import type { World } from "../fakes/fake-service.ts";
import { conversationOf, sampleItem, text } from "../samples/sample-conversation.ts";
import { PROJECT_ID, SESSION_ID } from "../samples/sample-project.ts";

const SESSION = `#/projects/${PROJECT_ID}/sessions/${SESSION_ID}`;
const API = `/v1/projects/${PROJECT_ID}/sessions/${SESSION_ID}`;
const shows = ".items > .item";

const withPermission = (world: World): void => {
  const request = { kind: "permission", title: "Fetch a page", patterns: ["https://x/*"], questions: [] };
  world.conversation = conversationOf(
    [
      sampleItem("said", text("I fetch it.")),
      sampleItem("r", { kind: "request", status: "pending", completed_at: null, request }),
    ],
    { turn: { state: "requires_action", since: null, waiting_for: "r" } },
  );
};

const withHeldQueue = (world: World): void => {
  world.conversation.held = true;
};

const withTurns = (world: World): void => {
  const [session = {}, ...others] = world.sessions;
  world.sessions = [{ ...session, saved: { state: "complete", files: 1 } }, ...others];
  world.savedTurns = [{ id: "first", at: "2026-11-20T10:00:00.000Z" }];
  world.conversation = conversationOf(
    ["first", "second"].flatMap((id) => [
      sampleItem(id, { role: "user", status: "accepted", turn_id: id, ...text("Do it.") }),
      sampleItem(`said ${id}`, { turn_id: id, ...text("I did it.") }),
    ]),
  );
};

const withSuspension = (world: World): void => {
  const [session = {}, ...others] = world.sessions;
  const me = world.me["user"] as { readonly id: string };
  world.sessions = [{ ...session, created_by: me.id }, ...others];
  world.ownCredentials = {
    subscription: false,
    connectors: ["mail"],
    suspended: {
      session_id: SESSION_ID,
      by: { id: "0193b3c4-0000-7000-8000-000000000009", name: "Ben" },
      act: "terminal",
      words: "opened a terminal",
      at: session["created_at"],
    },
  };
};

export const TALK_ACTIONS: readonly Action[] = [
  {
    name: "gives her own credentials back",
    hash: SESSION,
    shows,
    change: withSuspension,
    does: async ({ press }, page) => {
      await page.getByText("Ben opened a terminal").waitFor();
      await press("Give them back");
      await press("Give my credentials back");
    },
    writes: `POST ${API}/own-credentials/give-back `,
  },
  {
    name: "begins a session from an earlier turn",
    hash: SESSION,
    shows,
    change: withTurns,
    does: async ({ write, press }, page) => {
      await page.getByLabel("Actions for this turn").first().click();
      await press("New session from here");
      await write("What should the agent do?", "Try it in French.");
      await press("Start session");
    },
    writes: `POST /v1/projects/${PROJECT_ID}/sessions {"from":{"session_id":"${SESSION_ID}","turn_id":"first"},"initial_prompt":"Try it in French.","agent_name":"release-notes"}`,
    leads: `#/projects/${PROJECT_ID}/sessions/0199aaaa-0000-7000-8000-000000000001`,
  },
  {
    name: "queues a message",
    hash: SESSION,
    shows,
    does: async ({ write, press }) => {
      await write("Message", "Name the tag.");
      await press("Queue");
    },
    tells: "2 messages waiting for the agent",
  },
  {
    name: "cancels a message that waits",
    hash: SESSION,
    shows,
    does: ({ press }) => press("Cancel"),
    tells: "Needs you",
    gone: "1 message waiting for the agent",
  },
  {
    name: "ends the agent's turn",
    hash: SESSION,
    shows,
    does: ({ press }) => press("Stop"),
    writes: `POST ${API}/interrupt {}`,
  },
  {
    name: "resumes a paused queue",
    hash: SESSION,
    shows,
    change: withHeldQueue,
    does: ({ press }) => press("Resume"),
    writes: `POST ${API}/queue/resume {}`,
  },
  {
    name: "allows what the agent asks for",
    hash: SESSION,
    shows,
    change: withPermission,
    does: ({ press }) => press("Allow once"),
    tells: "allowed once by Mona",
  },
  {
    name: "denies it with a reason",
    hash: SESSION,
    shows,
    change: withPermission,
    does: async ({ write, press }) => {
      await write("Reason for the agent (optional, sent with a denial)", "Use the cache.");
      await press("Deny");
    },
    writes: `POST ${API}/requests/r/answer {"choice":"reject","message":"Use the cache."}`,
  },
  {
    name: "answers a question in other words",
    hash: SESSION,
    shows,
    does: async ({ write, press }) => {
      await write("In your own words: Which title shall the change request have?", "Greet by the hour");
      await press("Answer");
    },
    tells: "Greet by the hour",
  },
];
