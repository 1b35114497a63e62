/** States of the first page. */
import type { World } from "../fakes/fake-service.ts";
import { PROJECT_ID, SESSION_ID } from "../samples/sample-project.ts";
import { withPlan } from "./states-of-work.ts";
import { completing, pressed, type State, withProject } from "./state-of-a-page.ts";
import { waitingCall } from "../fakes/fake-connectors.ts";

export const REQUEST_ID = "01995f2c-1e5b-7b0e-8a44-b7d15c2a0f71";

/** Sessions of which one waits for a person, one works and one rests. */
export const withTurns = (world: World): void => {
  const [first = {}, ...others] = world.sessions;
  const of = (state: string, index: number) => ({
    ...first,
    id: `01995f2c-1e5b-7b0e-8a44-b7d15c2a90d${String(index)}`,
    name: ["Rename the greeting", null, "Update the dependencies"][index],
    turn: { state, since: first["created_at"], waiting_for: null },
  });
  world.sessions = [...["requires_action", "running", "idle"].map(of), ...others];
};

export const none = (world: World): void => {
  world.projects = [];
};

const row = (world: World, at: number, rest: Readonly<Record<string, unknown>>) => ({
  ...world.sessions[0],
  id: `01995f2c-1e5b-7b0e-8a44-b7d15c2a91${String(at).padStart(2, "0")}`,
  trigger_slug: null,
  ...rest,
});

const change = (number: number, status: string, title: string, asking: string | null = null) => ({
  id: "c",
  number,
  status,
  title,
  changes_asked_by: asking,
  comments: asking === null ? 0 : 2,
});

/** One session of each activity, and more. */
const withEach = (world: World): void => {
  const long =
    "A very long name that somebody gave to this session, because the ticket had it, and which is too long for one line";
  const waiting = {
    turn: { state: "requires_action", since: world.sessions[0]?.["created_at"], waiting_for: null },
  };
  const rows: readonly Readonly<Record<string, unknown>>[] = [
    {
      ...waiting,
      name: "Rename the greeting",
      waits_for: { kind: "question", id: "q", text: "Which title shall the change request have?" },
      changes: {
        files: 3,
        additions: 120,
        deletions: 45,
        head_commit: "6113728f27ae82c7b1a177c8d03f9e96e0adf246",
      },
    },
    {
      name: "Order the imports",
      waits_for: { kind: "permission", id: "p", text: "npm install --save-dev eslint" },
      activity: "needs_you",
    },
    { name: long, pending_approvals: 1, trigger_slug: "triage-of-issues" },
    {
      name: "Fix the nightly build",
      unread: true,
      status: "failed",
      failure: {
        code: "model_key",
        message: "The provider refused the key `ANTHROPIC_API_KEY`.",
        at: world.sessions[0]?.["created_at"],
      },
    },
    {
      name: "Sort the list of greetings",
      activity: "working",
      last_sentence: "I read the tests of the list first.",
    },
    { name: "Add a dark theme", activity: "starting" },
    { name: "Translate the page", activity: "queued" },
    {
      name: "Greet in two languages",
      activity: "ready_for_review",
      last_sentence: "The greeting is now in English and German, and both have a test.",
      changes: {
        files: 4,
        additions: 1212,
        deletions: 3,
        head_commit: "6113728f27ae82c7b1a177c8d03f9e96e0adf246",
      },
      change_request: change(12, "open", "Greet in two languages", "Grace"),
      usage: { input_tokens: 1, output_tokens: 1, cached_tokens: 0, cost_usd: 1.24 },
    },
    {
      name: "Update the dependencies",
      activity: "ready_for_review",
      trigger_slug: "weekly-updates",
      last_sentence: "Eleven packages are newer; the tests pass.",
      changes: {
        files: 2,
        additions: 44,
        deletions: 44,
        head_commit: "6113728f27ae82c7b1a177c8d03f9e96e0adf246",
      },
    },
    { name: "Explain the log", activity: "resting", last_sentence: "The error comes from a missing folder." },
    { name: "Measure the start", activity: "asleep", status: "stopped" },
    {
      name: "Remove the old greeter",
      activity: "done",
      change_request: change(9, "merged", "Remove the old greeter"),
      changes: {
        files: 9,
        additions: 2,
        deletions: 340,
        head_commit: "6113728f27ae82c7b1a177c8d03f9e96e0adf246",
      },
      usage: { input_tokens: 1, output_tokens: 1, cached_tokens: 0, cost_usd: 0.0831 },
    },
  ];
  world.sessions = rows.map((rest, at) => row(world, at, rest));
};

/** A person asked for a review, beside the sessions. */
const withReview = (world: World): void => {
  withEach(world);
  const asked = { by: { id: "u-karl", name: "Karl" }, at: world.sessions[0]?.["created_at"] };
  world.changes = world.changes.map((one) => ({ ...one, review_asked: asked }));
};

/** One archived session has a message about a porcupine. */
const withMessage = (world: World): void => {
  withEach(world);
  const [first = {}, ...others] = world.sessions;
  const text = "A porcupine greets you, in all languages that the ticket names, and in one more.";
  world.sessions = [
    ...others,
    {
      ...first,
      name: "Look for animals",
      activity: "asleep",
      waits_for: null,
      turn: { ...Object(first["turn"]), state: "idle" },
      archived: true,
      found: { item_id: REQUEST_ID, at: first["created_at"], text },
    },
  ];
};

const withDone = (world: World): void => {
  world.sessions = Array.from({ length: 8 }, (_, at) =>
    row(world, at, { name: `Chore ${String(at)}`, activity: "done" }),
  );
};

/** All sessions are in use, and two that people asked for wait beside a run. */
export const withRequests = (world: World): void => {
  withEach(world);
  const [run] = world.queue;
  const person = { id: "01995f10-0000-7000-8000-000000000001", name: "Mona" };
  const request = { ...run, kind: "session", trigger_slug: null, files: 0, person };
  world.queue = [
    { ...run },
    { ...request, fire_id: REQUEST_ID, title: "Say good day.\n\nIn English.", files: 2, position: 2 },
    {
      ...request,
      fire_id: "01995f2c-1e5b-7b0e-8a44-b7d15c2a0f72",
      title:
        "Translate every greeting of the page into all languages that the ticket names, in one commit for each",
      position: 3,
    },
  ];
  const waiting = { kind: "session", trigger_slug: null, request: null, position: 2, delivery_id: null };
  const found = world.fires.find(({ status }) => status === "queued");
  world.fires = [
    ...world.fires,
    { ...found, ...waiting, id: REQUEST_ID, prompt: "Say good day.\n\nIn English." },
  ];
  world.me = { ...world.me, account: { ...Object(world.me["account"]), queued_fires: 3 } };
};

const home = { hash: "#/", shows: ".session" };

export const STATES_OF_HOME: readonly State[] = [
  { name: "home-waiting", ...home, change: withRequests },
  { name: "queue-requests", hash: "#/queue", shows: ".row", change: withRequests },
  {
    name: "request-waits",
    hash: `#/projects/${PROJECT_ID}/fires/${REQUEST_ID}`,
    shows: "h1",
    change: withRequests,
  },
  { name: "home", ...home, change: withEach },
  { name: "home-review", ...home, change: withReview },
  { name: "home-narrowed", hash: "#/?search=the", shows: ".filters", change: withEach },
  {
    name: "home-typed",
    ...home,
    change: withEach,
    act: async (page) => {
      await page.getByLabel("What should the agent do?").fill("Say good day.\n\nIn English and in German.");
      await page.getByLabel("Branch").waitFor();
    },
  },
  { name: "home-paths", ...home, change: withEach, act: completing("prompt", "Translate @") },
  {
    name: "home-commands",
    hash: "#/",
    shows: ".session",
    change: withEach,
    act: completing("prompt", "/"),
  },
  {
    name: "home-agent",
    ...home,
    change: withEach,
    act: async (page) => {
      await page.getByLabel("What should the agent do?").fill("Say good day.");
      await page.getByLabel("Agent", { exact: true }).selectOption("fast");
      await page.getByText("Missing in codex").click();
    },
  },
  {
    name: "home-models",
    ...home,
    change: withEach,
    act: async (page) => {
      await page.getByLabel("What should the agent do?").fill("Say good day.");
      await page.getByRole("combobox", { name: "Model" }).click();
      await page.getByRole("option", { name: "gpt-small" }).waitFor();
    },
  },
  {
    name: "home-question",
    ...home,
    change: withEach,
    act: async (page) => {
      await page.getByRole("button", { name: "Answer: Rename the greeting" }).click();
      await page.locator(".opened form").first().waitFor();
    },
  },
  {
    name: "home-plan",
    ...home,
    change: (world) => {
      withEach(world);
      withPlan(world);
      const waits_for = {
        kind: "plan",
        id: "i-plan",
        text: "The greeting in src/greet.ts is always the same.",
      };
      world.sessions = world.sessions.map((one, index) => (index === 0 ? { ...one, waits_for } : one));
    },
    act: async (page) => {
      await pressed("Decide: Rename the greeting")(page);
      await page.locator(".opened form").first().waitFor();
    },
  },
  {
    name: "home-in-sleep",
    ...home,
    change: (world) => {
      withEach(world);
      const waits_for = { kind: "question", id: null, text: "Which greeting shall the guests get?" };
      const asleep = { status: "stopped", stop_reason: "idle", activity: "needs_you", waits_for };
      world.sessions = world.sessions.map((one, index) => (index === 0 ? { ...one, ...asleep } : one));
    },
    act: async (page) => {
      await pressed("Answer: Rename the greeting")(page);
      await page.getByText("went to sleep before an answer came").waitFor();
    },
  },
  {
    name: "home-approval",
    ...home,
    change: (world) => {
      world.sessions = [{ ...world.sessions[0], pending_approvals: 1 }];
      world.approvals = [waitingCall(SESSION_ID)];
    },
    act: async (page) => {
      await pressed("Decide: on-push")(page);
      await page.locator(".opened .ask-card").waitFor();
    },
  },
  {
    name: "palette-found",
    ...home,
    change: withMessage,
    act: async (page) => {
      await page.keyboard.press("Control+k");
      await page.locator(".palette input").fill("porcupine");
      await page.locator(".found-line").waitFor();
    },
  },
  { name: "home-found", hash: "#/?search=porcupine", shows: ".session", change: withMessage },
  { name: "home-done", ...home, change: withDone },
  {
    name: "home-new",
    hash: "#/",
    shows: ".empty",
    change: (world) => {
      world.sessions = [];
      world.me = { ...world.me, account: { ...Object(world.me["account"]), queued_fires: 0 } };
    },
  },
  {
    name: "home-refused",
    ...home,
    change: (world) => {
      world.refused = {
        status: 429,
        code: "session_cap_reached",
        error: "All 50 sessions of the account are in use.",
      };
    },
    act: async (page) => {
      await page.getByLabel("What should the agent do?").fill("Say good day.");
      await page.keyboard.press("Control+Enter");
      await page.getByRole("alert").getByText("All 50 sessions").waitFor();
    },
  },
  {
    name: "home-put-away",
    hash: "#/?archived=yes",
    shows: ".session",
    change: (world) => {
      world.sessions = world.sessions.map((one) => ({ ...one, archived: true }));
    },
  },
  { name: "home-archived", ...home, change: withProject({ status: "archived" }) },
  { name: "home-empty", hash: "#/", shows: ".empty", change: none },
];
