/** States of sessions with work beside them, of empty lists, of forms and questions about work, and of the views of a state. */
import type { Page } from "playwright-core";
import type { World } from "../fakes/fake-service.ts";
import { conversationOf, planItems, sampleItem, sampleTool, text } from "../samples/sample-conversation.ts";
import { toolsConversation } from "../samples/sample-tools.ts";
import { FAILED_ID, PROJECT_ID, SESSION_ID, STOPPED_ID } from "../samples/sample-project.ts";
import { DELETED } from "../fakes/fake-settings.ts";
import { sampleWork } from "../samples/sample-settings.ts";
import { STATES_OF_SAVES } from "./states-of-saves.ts";
import { sampleWorkspace } from "../samples/sample-workspace.ts";
import { chosen, having, pressed, refusing, type State, unfolded, withProject } from "./state-of-a-page.ts";

const PROJECT = `#/projects/${PROJECT_ID}`;
const SESSION = `${PROJECT}/sessions/${SESSION_ID}`;

// eslint-disable-next-line no-restricted-properties -- the browser and the world use the real clock
const now = (): number => Date.now();

/** @param second since the failed session began */
const bootAt = (second: number): string => new Date(now() - 1_250_000 + second * 1000).toISOString();

const withWork = (world: World): void => {
  world.work = sampleWork(now());
  world.ports = [5173];
};

const withWorkspace = (world: World): void => {
  withWork(world);
  world.workspace = sampleWorkspace;
};

/** A request for a permission. */
const asking = (id: string, place: number, request: object, rest: object) => ({
  ...sampleItem(id, {
    kind: "request",
    request: { kind: "permission", questions: [], ...request },
    ...rest,
  }),
  place,
  seq: place,
});

const withPermission = (world: World): void => {
  const pushes = { title: "bash", patterns: ["git push *"], command: "git push origin HEAD --follow-tags" };
  const patch = "--- greet.sh\n+++ greet.sh\n@@ -1,2 +1,2 @@\n #!/bin/sh\n-echo Hello\n+echo Good day\n";
  const changes = [{ path: "greet.sh", operation: "update", patch }];
  const edits = { title: "edit", patterns: ["greet.sh"], always: ["*"], changes };
  const by = { kind: "user", name: "Mona", trigger_slug: null, fire_id: null };
  const allowed = {
    content: [{ type: "text", text: "once" }],
    answer: { by, choice: "once", message: null },
  };
  const open = { status: "pending", completed_at: null };
  const edit = { name: "edit", kind: "edit", title: "greet.sh", input: { filePath: "greet.sh" }, output: "" };
  const call = { ...sampleTool(edit), ...open, status: "running" };
  world.conversation.items = [
    ...world.conversation.items,
    asking("i-pushes", 88, pushes, allowed),
    { ...sampleItem("i-call", call), place: 89, seq: 89 },
    asking("i-permission", 90, edits, open),
  ];
  world.conversation.turn = { state: "requires_action", since: null, waiting_for: "i-permission" };
};

/** A message while the service takes none. */
const withMessageThatWaits = (world: World): void => {
  const faults = Array.from({ length: 100 }, () => "unavailable" as const);
  world.conversation = conversationOf([sampleItem("said", text("The release is ready."))], { faults });
};

const sendMessage = async (page: Page): Promise<void> => {
  await page.getByRole("textbox", { name: "Message", exact: true }).fill("Name the tag v1.2.0, and sign it.");
  await page.keyboard.press("Enter");
  await page.getByText("Waits for the service.").waitFor();
};

export const withPlan = (world: World): void => {
  const turn = { state: "requires_action", since: null, waiting_for: "i-plan" };
  world.conversation = conversationOf(planItems("i-plan"), { turn });
};

const withFirst =
  (rest: Readonly<Record<string, unknown>>) =>
  (world: World): void => {
    world.sessions = world.sessions.map((one, index) => (index === 0 ? { ...one, ...rest } : one));
  };

const withChange =
  (rest: Readonly<Record<string, unknown>>) =>
  (world: World): void => {
    world.changes = world.changes.map((one) => ({ ...one, ...rest }));
  };

const inSession = { hash: SESSION, shows: ".items > .item" };
const inTriggers = { hash: `${PROJECT}/triggers`, shows: ".card" };
const withCallout = { hash: SESSION, shows: ".callout" };
const inChanges = { hash: `${PROJECT}/change-requests/7`, shows: ".diff" };

export const STATES_OF_WORK: readonly State[] = [
  ...STATES_OF_SAVES,
  {
    name: "projects-archived",
    hash: "#/projects",
    shows: ".card",
    change: withProject({
      name: "a-project-whose-name-somebody-made-very-long-without-a-space",
      repository: { kind: "git", url: "https://git.example.org/team/with/a/long/path/to/the/greeter.git" },
      status: "archived",
      triggers_paused: true,
      manifest: { commit: null, synced_at: null, error: "The server refused the credential." },
    }),
  },
  {
    name: "session-work",
    hash: `${SESSION}?tab=changes`,
    shows: "#work .file",
    change: (world) => {
      withWork(world);
      withFirst({
        name: "Note the first push, and greet people by the hour of the day in their own language",
        last_sentence:
          "The note is written and pushed, the greeting follows the hour, and both have tests that fail without the change.",
        trigger_slug: null,
      })(world);
    },
  },
  { name: "session-workspace", hash: `${SESSION}?tab=changes`, shows: "#work .file", change: withWorkspace },
  {
    name: "session-files",
    hash: `${SESSION}?tab=files`,
    shows: ".tree-list",
    change: withWorkspace,
    act: async (page) => {
      await page.locator("[data-directory=bin] > summary").click();
      await page.getByRole("button", { name: "greet.sh", exact: true }).click();
      await page.getByRole("heading", { name: "bin/greet.sh" }).scrollIntoViewIfNeeded();
    },
  },
  { name: "session-message-waits", ...inSession, change: withMessageThatWaits, act: sendMessage },
  {
    name: "session-asks",
    ...inSession,
    change: withPermission,
    act: (page) => page.getByRole("button", { name: "Allow once" }).waitFor(),
  },
  {
    name: "session-choices",
    ...inSession,
    act: async (page) => {
      await page.getByRole("button", { name: /^Model/ }).click();
      await page.getByLabel("Effort").waitFor();
    },
  },
  {
    name: "session-models",
    ...inSession,
    act: async (page) => {
      await page.getByRole("button", { name: /^Model/ }).click();
      await page.getByRole("combobox", { name: "Model" }).click();
      await page.getByRole("option", { name: "GPT-5 openai" }).waitFor();
    },
  },
  {
    name: "session-plan",
    ...inSession,
    change: withPlan,
    act: (page) => page.getByRole("button", { name: "Approve" }).waitFor(),
  },
  {
    name: "session-tools",
    ...inSession,
    change: having(() => ({ conversation: toolsConversation() })),
    act: async (page) => {
      for (const name of [/Explored/, /Run the tests/, /^Edit/, /Hello/, /odd_tool/])
        await page.locator("summary").filter({ hasText: name }).first().click();
      await page.locator(".talk").evaluate((log) => {
        log.scrollTop = 0;
      });
    },
  },
  {
    name: "session-provisioning",
    hash: SESSION,
    shows: ".boot-wait",
    change: (world) => {
      withFirst({ status: "provisioning", running_at: null })(world);
      world.sandbox = { ...world.sandbox, status: "provisioning", active_at: null };
      world.conversation.items = world.conversation.items.slice(0, 1);
      world.conversation.turn = { state: "idle", since: null, waiting_for: null };
    },
  },
  {
    name: "session-compacted",
    hash: SESSION,
    shows: ".meter",
    change: (world) => {
      const note =
        "The agent runtime replaced the conversation so far with a summary, to fit the model's context.";
      const { conversation } = world;
      const seq = conversation.seq + 1;
      const item = sampleItem("i-compacted", { kind: "note", role: null, compacts: true, ...text(note) });
      conversation.items = [
        ...conversation.items.filter(({ status }) => status !== "pending" && status !== "running"),
        { ...item, seq, place: seq },
      ];
      conversation.seq = seq;
      world.conversation.turn = { state: "idle", since: null, waiting_for: null };
    },
    act: (page) => page.locator(".meter").focus(),
  },
  {
    name: "session-branch",
    hash: SESSION,
    shows: ".turn-menu",
    change: (world) => {
      withFirst({ saved: { state: "complete", files: 3 } })(world);
      world.conversation.turn = { state: "idle", since: null, waiting_for: null };
      world.conversation.items = world.conversation.items.filter(
        ({ status }) => status !== "pending" && status !== "running",
      );
    },
    act: async (page) => {
      const menus = page.locator(".turn-menu > summary");
      await menus.first().scrollIntoViewIfNeeded();
      await menus.first().click();
    },
  },
  {
    name: "session-boot-ended",
    hash: `${PROJECT}/sessions/${FAILED_ID}?tab=details`,
    shows: ".waterfall",
    change: (world) => {
      const sandbox_id = "0199bbbb-0000-7000-8000-000000000003";
      const times = {
        created_at: bootAt(0),
        boot_started_at: bootAt(1),
        active_at: null,
        ended_at: bootAt(121),
      };
      world.sandbox = { ...world.sandbox, ...times, id: sandbox_id };
      world.logs = Object.entries({ listening: 3, runtime_started: 4, credential: 4, cloned: 9 }).map(
        ([step, second]) => ({
          sandbox_id,
          at: bootAt(second),
          source: "daemon",
          line: `boot step=${step} at_ms=1`,
        }),
      );
    },
    act: (page) => page.locator(".waterfall").scrollIntoViewIfNeeded(),
  },
  { name: "session-failed", hash: `${PROJECT}/sessions/${FAILED_ID}`, shows: ".callout" },
  { name: "session-stopped", hash: `${PROJECT}/sessions/${STOPPED_ID}`, shows: ".conversation" },
  // A search leads to a message, far above the newest.
  { name: "session-found", hash: `${SESSION}?item=i-prompt`, shows: "[data-marked]" },
  {
    name: "session-turn-failed",
    ...withCallout,
    change: (world) => {
      const error = {
        code: "model_unauthorized",
        message: "The provider refused the key: Incorrect API key provided.",
      };
      withFirst({ last_turn: { state: "failed", error, at: new Date(now() - 30_000).toISOString() } })(world);
      world.conversation.turn = { state: "idle", since: null, waiting_for: null };
    },
  },
  {
    name: "session-spend-limit",
    ...withCallout,
    change: (world) => {
      const error = {
        code: "spend_limit",
        message: "The limit of $5 for this session is reached: $5.02. Raise it, then send a message.",
      };
      withFirst({ last_turn: { state: "failed", error, at: new Date(now() - 30_000).toISOString() } })(world);
      world.conversation.turn = { state: "idle", since: null, waiting_for: null };
    },
    act: pressed("Raise the limit"),
  },
  {
    name: "session-lost",
    ...withCallout,
    change: (world) => {
      const at = new Date(now() - 30_000).toISOString();
      const message = `Kept from its last save at ${at}: 2 changed files. Later changes are lost. Reason: its PID 1 ended with SIGKILL.`;
      const error = {
        code: "sandbox_lost",
        message: "The agent had not finished. It does not go on by itself after a restart.",
      };
      withFirst({
        status: "failed",
        failure: { code: "sandbox_lost", message, at },
        last_turn: { state: "interrupted", error, at },
      })(world);
      world.conversation.turn = { state: "idle", since: null, waiting_for: null };
    },
  },
  {
    name: "session-silent-model",
    hash: SESSION,
    shows: ".silence",
    change: (world) => {
      const since = new Date(now() - 95_000).toISOString();
      world.conversation.items = world.conversation.items.filter(
        ({ status }) => status !== "running" && status !== "pending",
      );
      world.conversation.turn = { state: "running", since, waiting_for: null };
    },
  },
  {
    name: "session-terminal",
    hash: `${SESSION}?tab=terminal`,
    shows: ".terminal-offer",
    change: (world) => {
      world.me = { ...world.me, terminals: "members" };
    },
  },
  { name: "session-preview", hash: `${SESSION}?tab=preview`, shows: "#part-preview .row", change: withWork },
  {
    name: "session-port",
    hash: `${SESSION}?tab=preview`,
    shows: "#part-preview .actions",
    act: pressed("Open a port"),
  },
  { name: "session-log", hash: `${SESSION}?tab=log`, shows: ".logs" },
  { name: "session-details", hash: `${SESSION}?tab=details`, shows: ".timeline", change: withWork },
  { name: "session-proposal", ...inSession, change: withWork, act: chosen("Open a change request") },
  { name: "session-state", hash: `${SESSION}/state`, shows: ".machine" },
  {
    name: "session-state-names",
    hash: `${SESSION}/state`,
    shows: ".machine",
    act: async (page) => {
      await unfolded("The state machine, and its names")(page);
      await page.locator(".lit").first().waitFor();
    },
  },
  { name: "trigger-state", hash: `${PROJECT}/triggers/on-push/state`, shows: ".machine" },
  { name: "change-request-state", hash: `${PROJECT}/change-requests/7/state`, shows: ".machine" },
  { name: "account-state", hash: "#/account/state", shows: "h1" },
  { name: "projects-deleted", hash: "#/projects", shows: ".card", change: withProject(DELETED) },
  { name: "sessions-deleted", hash: PROJECT, shows: ".row", change: withProject(DELETED) },
  { name: "triggers-archived", ...inTriggers, change: withProject({ status: "archived" }) },
  {
    name: "new-session-archived",
    hash: `${PROJECT}/new`,
    shows: ".callout",
    change: withProject({ status: "archived" }),
  },
  { name: "new-trigger", hash: `${PROJECT}/triggers/new`, shows: ".card" },
  {
    name: "new-cron-trigger",
    hash: `${PROJECT}/triggers/new?from=weekly-report`,
    shows: ".instants",
    change: (world) => {
      world.draft = {
        lines: '[[triggers]]\nslug = "weekly-report"\ntype = "cron"\ncron = "0 0 9 * * 1"\n',
        upcoming: [4, 11, 18, 25].map((day) => `2027-01-${String(day).padStart(2, "0")}T09:00:00.000Z`),
        webhook_url: null,
        issues: [],
      };
    },
  },
  {
    name: "new-webhook-trigger",
    hash: `${PROJECT}/triggers/new?from=fix-failed-check`,
    shows: ".senders",
    change: (world) => {
      world.draft = {
        lines: null,
        upcoming: [],
        webhook_url: `http://127.0.0.1:8080/v1/webhooks/projects/${PROJECT_ID}/fix-failed-check`,
        issues: [
          { path: "events", message: "A ping never starts a session, so events must not include it." },
        ],
      };
    },
  },
  { name: "edit-trigger", hash: `${PROJECT}/triggers/new-year/edit`, shows: "form" },
  {
    name: "triggers-delete",
    ...inTriggers,
    act: async (page) => {
      await page.getByLabel("Actions for Note each push").click();
      await pressed("Delete: Note each push")(page);
    },
  },
  { name: "triggers-sender", ...inTriggers, act: unfolded("Set up a sender") },
  {
    name: "triggers-menu",
    ...inTriggers,
    act: (page) => page.getByLabel("Actions for Note each push").click(),
  },
  { name: "triggers-preview", ...inTriggers, act: pressed("Preview: Note each push") },
  { name: "triggers-run", ...inTriggers, act: pressed("Run now: Note each push") },
  {
    name: "triggers-empty",
    hash: `${PROJECT}/triggers`,
    shows: ".empty",
    change: (world) => {
      world.listing = { ...world.listing, triggers: [], errors: [] };
    },
  },
  {
    name: "runs-empty",
    hash: `${PROJECT}/fires`,
    shows: ".empty",
    change: (world) => {
      world.fires = [];
      world.refusals = [];
    },
  },
  {
    name: "refusals-empty",
    hash: `${PROJECT}/fires?status=refused`,
    shows: ".empty",
    change: having(() => ({ refusals: [] })),
  },
  { name: "queue-empty", hash: "#/queue", shows: ".empty", change: having(() => ({ queue: [] })) },
  {
    name: "usage-empty",
    hash: `${PROJECT}/usage`,
    shows: "h1",
    change: (world) => {
      const none = { input_tokens: 0, output_tokens: 0, cached_tokens: 0, cost_usd: 0 };
      world.usage = { ...world.usage, days: [], total: none };
    },
  },
  {
    name: "change-requests-empty",
    hash: `${PROJECT}/change-requests`,
    shows: ".empty",
    change: having(() => ({ changes: [] })),
  },
  {
    name: "change-request-conflict",
    hash: `${PROJECT}/change-requests/7`,
    shows: ".merge-point",
    change: withChange({ mergeable: false, conflicts: ["bin/greet.sh", "notes/6113728.md"] }),
  },
  {
    name: "change-request-warned",
    hash: `${PROJECT}/change-requests/7`,
    shows: ".merge-point",
    change: withChange({
      warnings: [
        { file: "platform.toml", line: 12, message: "triggers[1].cron: `cron` is missing." },
        { file: ".platform/Dockerfile", line: 3, message: "unknown instruction: RUM." },
      ],
      files_changed: [
        { path: "notes/6113728.md", additions: 3, deletions: 0 },
        { path: "greet.sh", additions: 1, deletions: 1 },
        { path: "web/package-lock.json", additions: 31_204, deletions: 112 },
      ],
      files_changed_total: 3,
    }),
  },
  {
    name: "change-request-review",
    ...inChanges,
    act: async (page) => {
      const file = page.locator(".file", { hasText: "greet.sh" });
      await file.locator(".diff .removed").click();
      await page.getByLabel(/^Comment on/).fill("Say it in French, too.");
      await page.getByRole("button", { name: "Add for the agent", exact: true }).click();
      await page.getByText("1 comment for the agent, not sent yet").waitFor();
      await file.locator(".diff .added").last().click();
      await page.getByLabel(/^Comment on/).fill("Why not “Hello”?");
    },
  },
  {
    name: "session-merged",
    hash: `${PROJECT}/sessions/${SESSION_ID}`,
    shows: ".conversation",
    change: (world) => {
      const [session = {}, ...others] = world.sessions;
      const begun = {
        session_id: STOPPED_ID,
        title: "Note the first push",
        at: new Date(now()).toISOString(),
      };
      world.sessions = [{ ...session, metadata: { begun_from: begun } }, ...others];
      const request = { ...world.changes[0], session_id: SESSION_ID };
      world.changes = [{ ...request, status: "merged", merged_commit: "5ca1ab1e".repeat(5) }];
    },
  },
  {
    name: "change-request-merged",
    ...inChanges,
    change: withChange({
      status: "merged",
      mergeable: false,
      merged_at: new Date(now() - 60_000).toISOString(),
      merged_commit: "5ca1ab1e".repeat(5),
    }),
  },
  {
    name: "change-request-ask",
    hash: `${PROJECT}/change-requests/7`,
    shows: ".reviewers .chip",
    act: async (page) => page.locator(".reviewers summary").click(),
  },
  { name: "change-request-merge", ...inChanges, act: pressed("Merge") },
  {
    name: "notice-failed",
    hash: `${PROJECT}/settings`,
    shows: "form",
    change: refusing("The database cannot be reached. Try again in a moment."),
    act: async (page) => {
      await pressed("Pause all triggers")(page);
      await page.locator(".notices p").waitFor();
    },
  },
  {
    name: "notice",
    hash: `${PROJECT}/settings`,
    shows: "form",
    act: async (page) => {
      await pressed("Pause all triggers")(page);
      await page.locator(".notices p").waitFor();
    },
  },
  {
    name: "session-notice",
    ...inSession,
    change: refusing("The database cannot be reached. Try again in a moment."),
    act: async (page) => {
      await chosen("Stop session")(page);
      await page.getByRole("dialog").getByRole("button", { name: "Stop" }).click();
      await page.locator(".notices p").waitFor();
    },
  },
];
