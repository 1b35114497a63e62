/** Everything that a person can do in a project and in the account, for actions.real.test.ts. */
import { DELETED } from "../fakes/fake-settings.ts";
import type { Page } from "playwright-core";
import type { Hand } from "../by-hand.ts";
import type { World } from "../fakes/fake-service.ts";
import { NEW_TOKEN } from "../fakes/fake-settings.ts";
import { FIRED_ID, PROJECT_ID, QUEUED_ID, SESSION_ID } from "../samples/sample-project.ts";
import { sampleWork } from "../samples/sample-settings.ts";
import { having, withProject } from "../states/state-of-a-page.ts";

const API = `/v1/projects/${PROJECT_ID}`;
const PROJECT = `#/projects/${PROJECT_ID}`;
const SESSION = `${PROJECT}/sessions/${SESSION_ID}`;

export interface Action {
  readonly name: string;
  readonly hash: string;
  /** Shown when the page is complete. */
  readonly shows: string;
  readonly change?: (world: World) => void;
  readonly does: (hand: Hand, page: Page) => Promise<void>;
  /** A request that changes something, what the page shows then, and where it leads. */
  readonly writes?: string;
  readonly tells?: string | RegExp;
  /** A text that is no longer shown. */
  readonly gone?: string;
  readonly leads?: string;
}

const withSecret = (world: World): void => {
  world.secrets = ["NPM_TOKEN"];
};

const inSettings = { hash: `${PROJECT}/settings`, shows: "form" };
const inTriggers = { hash: `${PROJECT}/triggers`, shows: ".card" };
const inTalk = { hash: `${PROJECT}/change-requests/7`, shows: ".remarks" };
const inSecrets = { hash: `${PROJECT}/secrets`, shows: ".row" };
const inSessions = { hash: PROJECT, shows: ".row" };
const inChanges = { hash: `${PROJECT}/change-requests/7`, shows: ".diff" };
const inAccount = { hash: "#/account", shows: ".row" };

const PROJECT_ACTIONS: readonly Action[] = [
  {
    name: "makes a project",
    hash: "#/new",
    shows: "form",
    does: async ({ write, press }) => {
      await write("Project name", "typed");
      await press("Create the project");
    },
    writes: `POST /v1/projects {"name":"typed","repository":{"kind":"hosted"}}`,
  },
  {
    name: "renames a project and moves its default branch",
    ...inSettings,
    does: async ({ write, press }) => {
      await write("Name", "greetings");
      await write("Default branch", "trunk");
      await press("Save");
    },
    writes: `PATCH ${API} {"name":"greetings","default_branch":"trunk"}`,
    tells: "The project is saved.",
  },
  {
    name: "pauses all triggers",
    ...inSettings,
    does: ({ press }) => press("Pause all triggers"),
    writes: `PATCH ${API} {"triggers_paused":true}`,
  },
  {
    name: "resumes all triggers",
    ...inTriggers,
    change: (world) => {
      world.listing = { ...world.listing, triggers_paused: true };
    },
    does: ({ press }) => press("Resume all triggers"),
    writes: `PATCH ${API} {"triggers_paused":false}`,
  },
  {
    name: "archives a project",
    ...inSettings,
    does: async ({ press }) => {
      await press("Archive the project");
      await press("Archive");
    },
    writes: `PATCH ${API} {"status":"archived"}`,
  },
  {
    name: "reactivates a project",
    ...inSettings,
    change: withProject({ status: "archived" }),
    does: ({ press }) => press("Reactivate the project"),
    writes: `PATCH ${API} {"status":"active"}`,
  },
  {
    name: "deletes a project",
    hash: `${PROJECT}/settings`,
    shows: ".what-goes",
    does: async ({ press, write }) => {
      await write("Type greeter to confirm", "greeter");
      await press("Delete the project");
    },
    writes: `DELETE ${API} `,
  },
  {
    name: "restores a project",
    ...inSettings,
    change: withProject(DELETED),
    does: ({ press }) => press("Restore the project"),
    writes: `POST ${API}/restore `,
  },
  {
    name: "reads platform.toml",
    ...inSettings,
    does: ({ press }) => press("Read platform.toml now"),
    writes: `POST ${API}/sync `,
    tells: "platform.toml was read. It has errors.",
  },
  {
    name: "replaces the repository's credential",
    hash: `${PROJECT}/settings`,
    shows: ".check-step",
    change: withProject({ repository: { kind: "github", owner: "acme", name: "greeter" } }),
    does: async ({ press, write }) => {
      await press("Replace the credential");
      await write("Access token", "github_pat_new");
      await write("Access token", "github_pat_newer");
      await press("Use this credential");
    },
    writes: `PUT ${API}/repository/credential {"token":"github_pat_newer"}`,
    tells: "The repository's server accepted the new credential.",
  },
  {
    name: "checks the connection again",
    hash: `${PROJECT}/settings`,
    shows: ".check-step",
    change: withProject({ repository: { kind: "github", owner: "acme", name: "greeter" } }),
    does: ({ press }) => press("Check again"),
    writes: `POST ${API}/repository/check `,
  },
  {
    name: "replaces a secret",
    ...inSecrets,
    change: withSecret,
    does: async ({ write, press }) => {
      await press("Replace NPM_TOKEN");
      await write("New value", "another value");
      await press("Replace");
    },
    writes: `PUT ${API}/secrets/NPM_TOKEN {"value":"another value","previous_valid_ms":0,"try":true}`,
  },
  {
    name: "tries a model's key",
    ...inSecrets,
    change: having(() => ({ secrets: ["OPENAI_API_KEY"] })),
    does: ({ press }) => press("Try the key: OPENAI_API_KEY"),
    writes: `POST ${API}/secrets/OPENAI_API_KEY/try `,
    tells: "api.openai.com accepts the key.",
  },
  {
    name: "deletes a secret",
    ...inSecrets,
    change: withSecret,
    does: async ({ press }) => {
      await press("Delete: NPM_TOKEN");
      await press("Delete");
    },
    writes: `DELETE ${API}/secrets/NPM_TOKEN `,
    tells: "No secrets yet.",
  },
];

const SESSION_ACTIONS: readonly Action[] = [
  {
    name: "starts a session with a prompt, a base, an agent, a model and an effort",
    hash: `${PROJECT}/new`,
    shows: "form",
    does: async ({ write, choose, press }) => {
      await write("What should the agent do?", "Add a test");
      await choose("Agent", "fast (codex)");
      await choose("Model", "Another model");
      await write("Model, by name", "gpt-5.5");
      await choose("Effort", "High effort");
      await write("Start from", "v1.2.0");
      await press("Start session");
    },
    writes: `POST ${API}/sessions {"initial_prompt":"Add a test","base_ref":"v1.2.0","agent_name":"fast","agent_model":"gpt-5.5","effort":"high"}`,
  },
  {
    name: "filters the sessions",
    ...inSessions,
    does: ({ choose }) => choose("State", "Failed"),
    leads: `${PROJECT}?status=failed`,
  },
  {
    name: "renames a session",
    hash: SESSION,
    shows: ".items > .item",
    does: async ({ write, press }) => {
      await press("Actions for on-push");
      await press("Rename");
      await write("Name", "Greet");
      await press("Rename");
    },
    writes: `PATCH ${API}/sessions/${SESSION_ID} {"name":"Greet"}`,
  },
  {
    name: "stops a session",
    hash: SESSION,
    shows: ".items > .item",
    does: async ({ press }) => {
      await press("Actions for on-push");
      await press("Stop session");
      await press("Stop");
    },
    writes: `POST ${API}/sessions/${SESSION_ID}/stop {"save":"require"}`,
  },
  {
    name: "restarts a session from its row",
    ...inSessions,
    does: async ({ press }) => {
      await press("Actions for Tidy the docs");
      await press("Restart");
    },
    tells: "The session is restarting",
  },
  {
    name: "deletes a session from its row",
    ...inSessions,
    does: async ({ press }) => {
      await press("Actions for Tidy the docs");
      await press("Delete");
      await press("Delete");
    },
    tells: "Tidy the docs was deleted.",
  },
  {
    name: "opens a port",
    hash: `${SESSION}?tab=preview`,
    shows: "#part-preview .actions",
    does: async ({ write, press }) => {
      await press("Open a port");
      await write("Port", "5173");
      await press("Create a link");
    },
    writes: `POST ${API}/sessions/${SESSION_ID}/preview {"port":5173}`,
  },
  {
    name: "opens a change request",
    hash: SESSION,
    change: (world) => void Object.assign(world, { work: sampleWork(0) }),
    shows: ".items > .item",
    does: async ({ write, press }) => {
      await press("Open a change request");
      await write("Title", "Greet by the hour");
      await write("Description", "");
      await press("Open");
    },
    writes: `POST ${API}/change-requests {"session_id":"${SESSION_ID}","title":"Greet by the hour"}`,
    tells: "Change request #8 is open.",
  },
  {
    name: "merges a change request",
    ...inChanges,
    does: async ({ press }) => {
      await press("Merge");
      await press("Merge");
    },
    writes: `POST ${API}/change-requests/7/merge {}`,
    tells: "#7 was merged into main.",
  },
  {
    name: "merges a change request as one commit",
    ...inChanges,
    does: async ({ press }) => {
      await press("Squash and merge");
      await press("Merge");
    },
    writes: `POST ${API}/change-requests/7/merge {"squash":true}`,
    tells: "#7 was merged into main.",
  },
  {
    name: "comments on a change request",
    ...inTalk,
    does: async ({ press, write }) => {
      await write("Your comment", "Why?");
      await press("Comment");
    },
    writes: `POST ${API}/change-requests/7/remarks {"kind":"comment","body":"Why?"}`,
    tells: "The comment was added.",
  },
  {
    name: "approves a change request's newest commit",
    ...inTalk,
    does: ({ press }) => press("Approve"),
    writes: `POST ${API}/change-requests/7/remarks {"kind":"approval","body":"","commit":"0f0c2a7d1b9e4c35a1f6e0c87d2b4a6908f1e3d5"}`,
    tells: "You approved the newest commit.",
  },
  {
    name: "resolves a comment",
    ...inTalk,
    does: ({ press }) => press("Resolve: the comment of Ben"),
    writes: `PATCH ${API}/change-requests/7/remarks/r1 {"resolved":true}`,
    tells: "The comment is resolved.",
  },
  {
    name: "asks a person for a review",
    hash: `${PROJECT}/change-requests/7`,
    shows: ".reviewers .chip",
    does: async ({ press }) => {
      await press("Ask for a review");
      await press("Otto von Langenfeld-Hohenschwangau");
    },
    writes: `PUT ${API}/change-requests/7/reviewers/u-otto `,
    tells: "u-otto is asked for a review.",
  },
  {
    name: "takes back that a person is asked for a review",
    hash: `${PROJECT}/change-requests/7`,
    shows: ".reviewers .chip",
    does: ({ press }) => press("×: do not ask Karl for a review"),
    writes: `DELETE ${API}/change-requests/7/reviewers/u-karl `,
    tells: "Karl is no longer asked for a review.",
  },
  {
    name: "edits a change request",
    ...inTalk,
    does: async ({ press, write }) => {
      await press("Edit");
      await write("Title", "Greet by the hour");
      await press("Save");
    },
    writes: `PATCH ${API}/change-requests/7 {"title":"Greet by the hour","description":"What the agent wrote when the first push came in."}`,
    tells: "The change request was edited.",
  },
  {
    name: "closes a change request",
    ...inChanges,
    does: async ({ press }) => {
      await press("Close");
      await press("Close");
    },
    writes: `POST ${API}/change-requests/7/close {}`,
  },
];

const TRIGGER_ACTIONS: readonly Action[] = [
  {
    name: "runs a trigger with a message",
    ...inTriggers,
    does: async ({ write, press }) => {
      await press("Run now: Note each push");
      await write("Message", "by hand");
      await press("Run now");
    },
    writes: `POST ${API}/triggers/on-push/fire {"text":"by hand"}`,
  },
  {
    name: "previews a trigger",
    ...inTriggers,
    does: async ({ press }) => {
      await press("Preview: Note each push");
      await press("Preview");
    },
    tells: "Pushed by: Mona",
  },
  {
    name: "proposes a trigger",
    hash: `${PROJECT}/triggers/new?from=cron`,
    shows: "form",
    change: having(() => ({ proposal: { number: 7, status: "open" } })),
    does: async ({ write, press }) => {
      await write("Slug", "nightly");
      await write("Prompt", "Update the dependencies.");
      await press("Open a change request");
    },
    tells: "Note the first push",
  },
  {
    name: "pauses a trigger",
    ...inTriggers,
    does: async ({ press }) => {
      await press("Actions for Note each push");
      await press("Pause: Note each push");
    },
    writes: `POST ${API}/triggers/on-push/proposals {"action":"pause","merge":true}`,
  },
  {
    name: "deletes a trigger",
    ...inTriggers,
    does: async ({ press }) => {
      await press("Actions for Note each push");
      await press("Delete: Note each push");
      await press("Delete");
    },
    writes: `POST ${API}/triggers/on-push/proposals {"action":"delete","merge":true}`,
  },
  {
    name: "changes a trigger",
    hash: `${PROJECT}/triggers/on-push/edit`,
    shows: "form",
    does: async ({ write, press }) => {
      await write("Branches", "main");
      await press("Save and merge");
    },
    tells: '"Note each push" is changed.',
  },
  {
    name: "makes a value for a sender",
    ...inTriggers,
    does: async ({ press }) => {
      await press("Set up a sender");
      await press("Create a new value: GITHUB_WEBHOOK_SECRET");
    },
    tells: "The new value of GITHUB_WEBHOOK_SECRET",
  },
  {
    name: "replays a run",
    hash: `${PROJECT}/fires/${FIRED_ID}`,
    shows: ".request",
    does: async ({ press }) => {
      await press("Replay");
      await press("Replay");
    },
    writes: `POST ${API}/fires/${FIRED_ID}/replay {}`,
  },
  {
    name: "cancels a run that waits",
    hash: `${PROJECT}/fires/${QUEUED_ID}`,
    shows: ".request",
    does: async ({ press }) => {
      await press("Cancel");
      await press("Cancel the run");
    },
    writes: `DELETE ${API}/fires/${QUEUED_ID} `,
  },
];

const ACCOUNT_ACTIONS: readonly Action[] = [
  {
    name: "makes a token for one project",
    ...inAccount,
    does: async ({ write, choose, press }) => {
      await write("Name", "laptop");
      await choose("Reaches", "Only greeter");
      await choose("Expires", "Never");
      await press("Create the token");
    },
    writes: `POST /v1/tokens {"name":"laptop","project_id":"${PROJECT_ID}"}`,
    tells: NEW_TOKEN,
  },
  {
    name: "revokes a token",
    ...inAccount,
    does: async ({ press }) => {
      await press("Revoke: ci of the greeter, for the nightly builds");
      await press("Revoke");
    },
    writes: "DELETE /v1/tokens/t-ci ",
  },
  {
    name: "names a model key in the first run",
    hash: `${PROJECT}/setup`,
    shows: ".setup-step",
    change: (world) => {
      world.setup = { ...world.setup, model: { required: true, model: null, source: null } };
    },
    does: async ({ choose, write, press }) => {
      await choose("Provider", "openai (gpt-5.5)");
      await write("Key", "sk-typed");
      await press("Try and save the key");
    },
    writes: `PUT ${API}/secrets/OPENAI_API_KEY {"value":"sk-typed","try":true}`,
  },
  {
    name: "signs out",
    ...inAccount,
    does: ({ press }) => press("Sign out of this browser"),
    tells: "Access token",
  },
];

export const ACTIONS: readonly Action[] = [
  ...PROJECT_ACTIONS,
  ...SESSION_ACTIONS,
  ...TRIGGER_ACTIONS,
  ...ACCOUNT_ACTIONS,
];
