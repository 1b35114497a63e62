/** Everything that a person can do on the first page, for actions.real.test.ts. */
import type { Action } from "./actions.ts";
import { waitingCall } from "../fakes/fake-connectors.ts";
import type { World } from "../fakes/fake-service.ts";
import { conversationOf, sampleItem } from "../samples/sample-conversation.ts";
import { FAILED_ID, PROJECT_ID, SESSION_ID } from "../samples/sample-project.ts";
import { samplePartial, sampleUnsaved } from "../samples/sample-saves.ts";
import { REQUEST_ID, withRequests } from "../states/states-of-home.ts";

const API = `/v1/projects/${PROJECT_ID}`;
const at = { hash: "#/", shows: ".session" };

/** Only the first session, with these facts. */
const withFirst =
  (rest: (now: number) => Readonly<Record<string, unknown>>) =>
  (world: World): void => {
    // eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
    world.sessions = world.sessions.slice(0, 1).map((one) => Object.assign({}, one, rest(Date.now())));
  };

const withRequest =
  (request: Readonly<Record<string, unknown>>) =>
  (world: World): void => {
    const turn = { state: "requires_action", since: world.sessions[0]?.["created_at"], waiting_for: "r" };
    withFirst(() => ({ turn }))(world);
    world.conversation = conversationOf(
      [sampleItem("r", { kind: "request", status: "pending", completed_at: null, request })],
      { turn },
    );
  };

const QUESTION = {
  kind: "question",
  title: "",
  patterns: [],
  questions: [{ title: "", text: "Which name?", options: [{ label: "hello.sh" }], multiple: false }],
};

const withCall = (world: World): void => {
  withFirst(() => ({ pending_approvals: 1 }))(world);
  world.approvals = [waitingCall(SESSION_ID)];
};

const withUnsaved = withFirst((now) => ({ saved: samplePartial(now), unsaved: sampleUnsaved(now) }));

const CALL = `POST ${API}/approvals/01995f2c-1e5b-7b0e-8a44-b7d15c2a9e11`;

export const HOME_ACTIONS: readonly Action[] = [
  {
    ...at,
    name: "archives a session",
    change: withFirst(() => ({ name: "Greet", status: "stopped", activity: "asleep" })),
    does: async ({ press }) => {
      await press("Actions for Greet");
      await press("Archive");
    },
    writes: `PATCH ${API}/sessions/${SESSION_ID} {"archived":true}`,
    tells: "Greet was archived. Its next turn brings it back.",
  },
  {
    ...at,
    name: "starts a session",
    does: async ({ write, press }) => {
      await write("What should the agent do?", "Fix the tests.");
      await press("Start");
    },
    writes: `POST ${API}/sessions {"initial_prompt":"Fix the tests."}`,
    leads: `#/projects/${PROJECT_ID}/sessions/0199aaaa-0000-7000-8000-000000000001`,
  },
  {
    ...at,
    name: "starts a session with Enter, on a branch, with a plan first",
    does: async ({ write, choose }, page) => {
      await choose("Branch", "release");
      await choose("Plan", "plan");
      await write("What should the agent do?", "Fix the tests.");
      await page.keyboard.press("Enter");
    },
    writes: `POST ${API}/sessions {"base_ref":"release","mode":"plan","initial_prompt":"Fix the tests."}`,
  },
  {
    ...at,
    name: "cancels a session that waits",
    change: withRequests,
    does: async ({ press }) => {
      await press("Cancel: Say good day.");
      await press("Cancel the session");
    },
    writes: `DELETE ${API}/fires/${REQUEST_ID} `,
    tells: "The session was cancelled.",
  },
  {
    ...at,
    name: "answers the agent in the list",
    change: withRequest(QUESTION),
    does: async ({ press, write }) => {
      await press("Answer: on-push");
      await write("In your own words: Which name?", "greet.sh");
      await press("Answer");
    },
    writes: `POST ${API}/sessions/${SESSION_ID}/requests/r/answer {"answers":[["greet.sh"]]}`,
    tells: "answered",
  },
  {
    ...at,
    name: "allows what the agent asks for in the list",
    change: withRequest({ kind: "permission", title: "Fetch a page", patterns: [], questions: [] }),
    does: async ({ press }) => {
      await press("Answer: on-push");
      await press("Allow once");
    },
    writes: `POST ${API}/sessions/${SESSION_ID}/requests/r/answer {"choice":"once"}`,
  },
  {
    ...at,
    name: "approves a call in the list",
    change: withCall,
    does: async ({ press }) => {
      await press("Decide: on-push");
      await press("Approve: linear create_issue");
    },
    writes: `${CALL}/approve `,
    tells: "linear create_issue is approved.",
  },
  {
    ...at,
    name: "stops a session without the work that cannot be saved",
    change: withUnsaved,
    does: async ({ press }, page) => {
      await press("Decide: on-push");
      await press("Stop without it");
      await page.getByRole("dialog").waitFor();
      await press("Stop without it");
    },
    writes: `POST ${API}/sessions/${SESSION_ID}/stop {"save":"try"}`,
  },
  {
    ...at,
    name: "stops a session once its work is saved",
    change: withUnsaved,
    does: async ({ press }) => {
      await press("Decide: on-push");
      await press("Save and stop");
      await press("Stop");
    },
    writes: `POST ${API}/sessions/${SESSION_ID}/stop {"save":"require"}`,
  },
  {
    ...at,
    name: "restarts a failed session in the list",
    does: async ({ press }) => {
      await press("Show: Tidy the docs");
      await press("Restart");
    },
    writes: `POST ${API}/sessions/${FAILED_ID}/restart {"restore_saved":true}`,
  },
  {
    ...at,
    name: "deletes a session from its menu",
    does: async ({ press }) => {
      await press("Actions for Tidy the docs");
      await press("Delete");
      await press("Delete");
    },
    writes: `DELETE ${API}/sessions/${FAILED_ID} `,
    tells: "Tidy the docs was deleted.",
  },
];
