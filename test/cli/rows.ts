/** The call that commands.test.ts tries for each command: one row a command. */
import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import { makeUserToken, putSecret, runSession, SECRET_NAME } from "../support/service/requests.ts";
import { spendRowsOf } from "./spend-rows.ts";
import { subscriptionRowsOf } from "./subscription-rows.ts";
import { noticeRowsOf } from "./notice-rows.ts";
import { webhookRowsOf } from "./webhook-rows.ts";
import { connectorRowsOf } from "./connector-rows.ts";
import { ID, NOWHERE, notFound, type Row, type World } from "./row.ts";

/** A token in the right form that belongs to no user. */
const STRANGER = `platform_pat_${"x".repeat(43)}`;

const NOT_A_NUMBER = /^NUMBER must be a number of 1 or more\.\n$/;

/** The rows, by command; `world` exists when they are called. */
export const rowsOf = (world: World): Readonly<Record<string, Row>> => ({
  ...spendRowsOf(world),
  ...subscriptionRowsOf(world),
  ...noticeRowsOf(world),
  "models providers": {
    args: async () => (await world.modelProvider(), []),
    human:
      /^NAME +KIND +TRIED +MODELS +ADDRESS\n[^]*acme-\w+ +openai-compatible +- +1 +http:\/\/127\.0\.0\.1:9\/v1\n/,
    json: "/v1/model-providers",
    refused: [["--project", "x"], 4, /^No such project/],
  },
  "models add": {
    args: async () => {
      await world.modelProvider();
      const address = ["--kind", "openai-compatible", "--url", "http://127.0.0.1:9/v1/"];
      return ["fresh", ...address, "--models", "large, small", "--no-try"];
    },
    input: "sk-secret\n",
    human:
      /^provider +fresh\nkind +openai-compatible\naddress +http:\/\/127\.0\.0\.1:9\/v1\nkey +kept by the service\nmodels +fresh\/large, fresh\/small\ntried +no\n$/,
    json: { name: "fresh", has_key: true, models: ["large", "small"], tried_at: null },
    refused: [["other", "--kind", "closed"], 2, /^--kind must be one of anthropic, /],
  },
  "models change": {
    args: async () => [await world.modelProvider(), "--models", "other", "--no-try"],
    human: /\nmodels +acme-\w+\/other\n/,
    json: { models: ["other"] },
    refused: [["nothing"], 2, /^Give --url, --models, --key-file or --no-key\.\n$/],
  },
  "models delete": {
    args: async () => [await world.modelProvider(), "--yes"],
    human: /^acme-\w+ deleted\n$/,
    json: {},
    refused: [["nothing", "--yes"], 4, notFound("Model provider")],
  },
  "cr create": {
    args: () => ["--head", world.freshBranch(), "--title", "Add it", "--description-file", "-"],
    input: "Because.\n",
    human: /^#\d+ open: Add it \(work-\S+ into main\)\n$/,
    json: { title: "Add it", description: "Because.\n", status: "open" },
    refused: [
      ["--head", "nothing-there", "--title", "x"],
      1,
      /^The repository has no branch nothing-there\.\n$/,
    ],
  },
  "cr list": {
    args: async () => (await world.openRequest(), ["--status", "open", "--limit", "2"]),
    human:
      /^NUMBER +STATUS +BRANCH +CHANGED +ASKED BY +TITLE\n\d+ +open +work-\S+ +\d{4}-\d\d-\d\d \d\d:\d\dZ +- +\S/,
    json: "/change-requests?status=open&limit=2",
    refused: [["--status", "half-open"], 2, /^--status must be one of open, merged, closed\.\n$/],
  },
  "cr show": {
    args: async () => [await world.openRequest()],
    human:
      /^change request +#\d+ Proposed\nstatus +open\n.*\nopened .*\nmergeable +yes\n\nCOMMIT .*\n.* +Change\n\nADDED +REMOVED +FILE\n1 +0 +work-/,
    json: ([number = ""]) => `/change-requests/${number}`,
    refused: [["999"], 4, notFound("Change request")],
  },
  "cr diff": {
    args: async () => [await world.openRequest()],
    human: /^diff --git a\/work-.*\n[^]*\n\+new\n$/,
    json: { diff: expect.stringMatching(/^diff --git a\/work-[^]*\n\+new\n$/) as string },
    refused: [["1.5"], 2, NOT_A_NUMBER],
  },
  "cr edit": {
    args: async () => [await world.openRequest(), "--title", "Better"],
    human: /^#\d+ open: Better \(work-\S+ into main\)\n$/,
    json: { title: "Better" },
    refused: [["1"], 2, /^Give --title or --description\.\n$/],
  },
  "cr comment": {
    args: async () => [await world.openRequest(), "--body", "Why?", "--file", "a.txt", "--lines", "2-3"],
    human: /^[0-9a-f-]{36} \S+ \S+ .* says on a\.txt:2-3\n {2}Why\?\n$/,
    json: { kind: "comment", body: "Why?", place: { file: "a.txt", first_line: 2, last_line: 3 } },
    refused: [["1", "--body", "x", "--file", "a.txt"], 2, /^Give --file and --lines together\.\n$/],
  },
  "cr comments": {
    args: async () => [await world.openRequest()],
    human: /^No comments\.\n$/,
    json: { remarks: [] },
    refused: [["999"], 4, notFound("Change request")],
  },
  "cr approve": {
    args: async () => [await world.openRequest()],
    human: /^[0-9a-f-]{36} .* approves\n$/,
    json: { kind: "approval" },
    refused: [["999"], 4, notFound("Change request")],
  },
  "cr request-changes": {
    args: async () => [await world.openRequest(), "--body", "Not yet."],
    human: /^[0-9a-f-]{36} .* asks for changes\n {2}Not yet\.\n$/,
    json: { kind: "changes_requested" },
    refused: [["1"], 2, /^--body is missing\.\n$/],
  },
  "cr ask": {
    args: async () => [await world.openRequest(), await world.reader()],
    human: /^.* is asked to review #\d+\.\n$/,
    json: { answer: null },
    refused: [["1", NOWHERE], 4, notFound("Member")],
  },
  "cr resolve": {
    args: () => world.comment(),
    human: /^[0-9a-f-]{36} .* says \(resolved\)\n {2}Why\?\n$/,
    json: { resolved_at: expect.any(String) as string },
    refused: [["1", NOWHERE], 4, notFound("Remark")],
  },
  "cr merge": {
    args: async () => [await world.openRequest(), "--message", "Take it"],
    human: /^#\d+ merged: Proposed \(work-\S+ into main, merged as [0-9a-f]{40}\)\n$/,
    json: { status: "merged", merged_commit: expect.stringMatching(/^[0-9a-f]{40}$/) as string },
    refused: [["0"], 2, NOT_A_NUMBER],
  },
  "cr close": {
    args: async () => [await world.openRequest()],
    human: /^#\d+ closed: Proposed/,
    json: { status: "closed" },
    refused: [["999"], 4, notFound("Change request")],
  },
  activity: {
    args: async () => {
      const number = await world.openRequest();
      await world.service.request("POST", `/v1/projects/${world.pid}/change-requests/${number}/close`);
      return ["--own", "--limit", "1"];
    },
    human: /^AT +PROJECT +ABOUT +WHAT\n\S+ \S+Z +\S+ +#\d+ Proposed\S* +It was closed\n$/,
    json: "/v1/activity?own=true&limit=1",
    refused: [["--limit", "201"], 1, /^`limit` must be between 1 and 200\.\n/],
  },
  "sessions list": {
    args: async () => (await world.stoppedSession(), ["--limit", "1", "--activity", "asleep,failed"]),
    human: new RegExp(
      `^SESSION +STATE +WAITS FOR +SAVED +CREATED +STARTED BY +NAME\n${ID} +Asleep +- +\\S+ +.*Z +a person +Begin\n$`,
    ),
    json: "/sessions?limit=1&activity=asleep%2Cfailed",
    refused: [["--limit", "201"], 1, /^`limit` must be between 1 and 200\.\n/],
  },
  "sessions show": {
    args: async () => [await world.stoppedSession()],
    human: new RegExp(
      `^session +${ID}\nstate +Asleep\nstop reason +requested\nlast turn +failed at .*: Too many requests\\. \\(model_rate_limited\\)\n[^]*\nprompt +Begin\n$`,
    ),
    json: ([sid = ""]) => `/sessions/${sid}`,
    refused: [[NOWHERE], 4, notFound("Session")],
  },
  "sessions why": {
    args: async () => [await world.stoppedSession(), "--limit", "2"],
    human:
      /^session: stopped since [^\n]*Z\n {2}The session is stopped\. It uses no slot\.\n[^]*What would move it:\n {2}A restart boots [^]*\(restart\.requested -> provisioning\)\n[^]*AT +EVENT +STATE +AFTER +DETAIL\n[^]*sandbox\.ended +running -> stopped +\d+ s/,
    json: ([sid = ""]) => `/sessions/${sid}/machine?limit=2`,
    refused: [[NOWHERE], 4, notFound("Session")],
  },
  "sessions archive": {
    args: async () => [await world.stoppedSession()],
    human: new RegExp(`^${ID} archived\n$`),
    json: { archived: true },
    refused: [[NOWHERE], 4, notFound("Session")],
  },
  "sessions create": {
    args: () => ["--prompt", "Begin", "--name", "by the table", "--base", "main"],
    human: new RegExp(`^${ID} Starting\n$`),
    json: { name: "by the table", initial_prompt: "Begin", base_ref: "main" },
    refused: [["--base", "nothing-there"], 1, /nothing-there/],
  },
  "sessions send": {
    args: async () => [await runSession(world.service, world.pid), "Add a test."],
    human: new RegExp(`^${ID} (queued|sending)\n$`),
    json: { message: { content: [{ type: "text", text: "Add a test." }] } },
    refused: [[NOWHERE], 2, /^Give TEXT, --file or --attach\.\n$/],
  },
  "sessions interrupt": {
    args: async () => [await runSession(world.service, world.pid)],
    human: /^The agent does not work\.\n$/,
    json: { interrupted: false },
    refused: [[NOWHERE], 4, notFound("Session")],
  },
  "sessions give-credentials": {
    args: async () => [await runSession(world.service, world.pid)],
    human: /^Your own credentials work in this session again\.\n$/,
    json: {},
    refused: [[NOWHERE], 4, notFound("Session")],
  },
  "sessions stop": {
    args: async () => [await runSession(world.service, world.pid)],
    human: new RegExp(`^${ID} Asleep\n$`),
    json: { status: "stopped" },
    refused: [[], 2, /^SESSION is missing\. See `platform sessions stop --help`\.\n$/],
  },
  "sessions restart": {
    // Its boot, which finds no daemon, may have failed before the service reads the session for its answer.
    args: async () => [await world.stoppedSession()],
    human: new RegExp(`^${ID} (?:Starting|Failed)\n$`),
    json: { status: expect.stringMatching(/^(?:provisioning|failed)$/) },
    refused: [["../projects"], 4, /^No such session: give its id, /],
  },
  "sessions agents": {
    args: () => [],
    human:
      /^AGENT +RUNTIME +MODEL +MODE +EFFORT +PERMISSIONS +FALLBACK +PROBLEM\ndefault +opencode +- +- +- +- +-/,
    json: "/session-options",
    refused: [["--project", NOWHERE], 4, notFound("Project")],
  },
  "sessions saves": {
    args: () => [],
    human: /^No saved work\.\n$|^SESSION +SIZE +STATUS +NAME\n/,
    json: "/saves",
    refused: [["--project", NOWHERE], 4, notFound("Project")],
  },
  "sessions turns": {
    args: async () => [await world.stoppedSession()],
    human: /^No turn is saved\.\n$/,
    json: { turns: [] },
    refused: [[NOWHERE], 4, notFound("Session")],
  },
  "sessions delete": {
    args: async () => [await world.stoppedSession()],
    human: new RegExp(`^${ID} deleted\n$`),
    json: {},
    refused: [[NOWHERE], 4, notFound("Session")],
  },
  "sessions transcript": {
    args: async () => [await world.stoppedSession()],
    human: new RegExp(`^# Conversation\n\nSession ${ID}, .* UTC\n\n## admin, .* UTC\n\n> Begin\n$`),
    json: { items: [{ content: [{ type: "text", text: "Begin" }] }] },
    refused: [["--format", "html"], 2, /^--format must be one of md, json\.\n$/],
  },
  "sessions logs": {
    args: async () => [await world.stoppedSession()],
    human: /^- sandbox simulated sandbox\n$/,
    json: { log: "- sandbox simulated sandbox\n" },
    refused: [[], 2, /^SESSION is missing, and PLATFORM_SESSION_ID is not set\.\n$/],
  },
  "sessions diff": {
    args: async () => [await runSession(world.service, world.pid)],
    human: /^$/,
    json: { diff: "", live: true },
    refused: [["no-id"], 4, /^No such session: give its id, /],
  },
  "sessions files": {
    args: async () => [await runSession(world.service, world.pid)],
    human: /^The directory is empty\.\n$/,
    json: { kind: "directory", entries: [], truncated: false },
    refused: [[NOWHERE, "../x"], 1, /relative path/],
  },
  "sessions open": {
    args: async () => [await runSession(world.service, world.pid), "--port", "5173"],
    human: new RegExp(`^http://p5173-${ID}\\.localhost:\\d+/\\S+\n$`),
    json: { url: expect.stringContaining("//p5173-") as string },
    refused: [[NOWHERE, "--port", "70000"], 2, /^--port must be at most 65535\.\n$/],
  },
  "triggers list": {
    args: () => [],
    human:
      /^SLUG +TYPE +STATE [^]*push +webhook +on [^]*nightly +cron +on [^]*error: broken, .*\nAgents have HOOK_SECRET, .*\n$/,
    json: "/triggers",
    refused: [["too-much"], 2, /^Unexpected argument/],
  },
  "triggers why": {
    args: () => ["push"],
    human:
      /^trigger\n {2}A webhook trigger keeps no state: [^]*What would move it:\n {2}A delivery with a valid signature/,
    json: "/triggers/push/machine?limit=10",
    refused: [["missing"], 4, notFound("Trigger")],
  },
  "account why": {
    args: () => ["--limit", "1"],
    human: /^account: \w+[^]*\d+ of \d+ slots? in use\.[^]*What would move it:\n/,
    json: { machine: "account" },
    refused: [["--limit", "x"], 2, /^--limit must be a number of 1 or more\.\n$/],
  },
  "triggers fire": {
    args: () => ["push", "--text", "now", "--source", "the table"],
    human: new RegExp(`^fired: session ${ID}\n$`),
    json: { status: "fired" },
    refused: [["missing"], 4, notFound("Trigger")],
  },
  "triggers preview": {
    args: () => ["push", "--kind", "webhook", "--body-file", "-"],
    input: '{"ref": "main\\u001b[31m"}',
    human: /^Review main\\x1b\[31m\n$/,
    json: { prompt: "Review main\u001b[31m" },
    refused: [
      ["push", "--body-file", "missing.json"],
      2,
      /^The file missing\.json of --body-file cannot be read: it does not exist\.\n$/,
    ],
  },
  "triggers templates": {
    args: () => [],
    human: /^ID +TYPE +PURPOSE\n[^]*weekly-report +cron +Sums up /,
    json: {
      templates: expect.arrayContaining([expect.objectContaining({ id: "weekly-report" })]) as unknown,
    },
    refused: [["too-much"], 2, /^Unexpected argument/],
  },
  "triggers new": {
    args: () => [
      "--template",
      "weekly-report",
      "--slug",
      `report-${randomUUID().slice(0, 8)}`,
      "--cron",
      "0 0 8 * * 5",
    ],
    human: /^#\d+ open: Add the trigger report-\w+\n$/,
    json: { status: "open" },
    refused: [["--template", "none"], 2, /^--template must be one of triage-issue, .*weekly-report\.\n$/],
  },
  "triggers pause": {
    args: () => ["nightly"],
    human: /^#\d+ open: Pause the trigger nightly\n$/,
    json: { status: "open", title: "Pause the trigger nightly" },
    refused: [["missing"], 4, notFound("Trigger")],
  },
  "triggers resume": {
    args: () => ["off"],
    human: /^#\d+ open: Resume the trigger off\n$/,
    json: { status: "open" },
    refused: [["missing"], 4, notFound("Trigger")],
  },
  "triggers delete": {
    args: () => ["nightly"],
    human: /^#\d+ open: Delete the trigger nightly\n$/,
    json: { status: "open" },
    refused: [["missing"], 4, notFound("Trigger")],
  },
  "triggers fires": {
    args: async () => (await world.firedOnce(), ["push", "--limit", "1"]),
    human: new RegExp(`^FIRE +TRIGGER +KIND +STATUS .*\n${ID} +push +manual +fired +.+ +\\S+ \\S+ +${ID}\n$`),
    json: "/fires?slug=push&limit=1",
    refused: [["--status", "lost"], 2, /^--status must be one of queued/],
  },
  "triggers refused": {
    args: async () => (await world.refusedOnce(), ["--limit", "1"]),
    human:
      /^AT +TRIGGER +STATUS +REASON +EVENT +SENDER'S ID +FROM\n\d{4}-\d\d-\d\d \d\d:\d\dZ +push +401 +signature_mismatched +push +once +\S*127\.0\.0\.1\n$/,
    json: "/webhook-refusals?limit=1",
    refused: [["--cursor", "x"], 1, /cursor/],
  },
  "triggers replay": {
    args: async () => [await world.firedOnce()],
    human: new RegExp(`^fired: session ${ID}\n$`),
    json: { status: "fired" },
    refused: [[NOWHERE], 4, notFound("Fire")],
  },
  ...connectorRowsOf(world),
  "secrets list": {
    args: () => [],
    human: new RegExp(
      `^NAME +CHANGED +FOR AGENTS +MASKED IN LOGS +PREVIOUS UNTIL\n${SECRET_NAME} +\\d{4}-.* +yes +yes`,
    ),
    json: "/secrets",
    refused: [["--project", NOWHERE], 4, notFound("Project")],
  },
  ...webhookRowsOf(world),
  "secrets set": {
    args: () => ["BY_THE_TABLE"],
    input: "canary value\n",
    human: /^BY_THE_TABLE is set\n$/,
    json: { name: "BY_THE_TABLE" },
    refused: [["PLATFORM_X"], 1, /PLATFORM_/],
  },
  "secrets delete": {
    args: async () => (await putSecret(world.service, world.pid, "GOING", "x"), ["GOING"]),
    human: /^GOING deleted\n$/,
    json: {},
    refused: [["NOT_THERE"], 4, notFound("Secret")],
  },
  "environment show": {
    args: async () => [(await world.builtProject())[0]],
    human: new RegExp(
      `^environment +a Dockerfile\ndockerfile +\\.platform/Dockerfile\ncontext +\\.platform\ncommit +[0-9a-f]{40}\n` +
        `builder +simulated\nnewest build +${ID} ready\nsandboxes boot on +${ID} \\(0 MiB, 1 file\\)\n` +
        String.raw`made from +docker\.io/library/debian:13 never looked up\n$`,
    ),
    json: ([own = ""]) => `/v1/projects/${own}/environment`,
    refused: [[NOWHERE], 4, notFound("Project")],
  },
  "environment list": {
    args: async () => [(await world.builtProject())[0], "--limit", "1"],
    human: new RegExp(
      `^BUILD +STATUS +CAUSE +CREATED +TOOK +NODE +COMMIT +FAILURE\n${ID} +ready +manifest +\\S+ \\S+Z +\\d+ s +test-node +[0-9a-f]{12}\n$`,
    ),
    json: ([own = ""]) => `/v1/projects/${own}/environment/builds?limit=1`,
    refused: [["--limit", "201"], 1, /^`limit` must be between 1 and 200\.\n/],
  },
  "environment build": {
    args: async () => [(await world.builtProject())[0], "--wait"],
    human: new RegExp(`^\\[step 1, line 1\\] FROM scratch\n${ID} ready \\(0 MiB, 1 file\\)\n$`),
    json: { status: "ready", cause: "asked" },
    refused: [[], 5, /^The default branch has no Dockerfile\. /],
  },
  "environment logs": {
    args: () => world.builtProject(),
    human: /^\[step 1, line 1\] FROM scratch\n$/,
    json: { log: "[step 1, line 1] FROM scratch\n", build: expect.objectContaining({ status: "ready" }) },
    refused: [[], 4, /^The project has no builds\.\n$/],
  },
  "environment cancel": {
    args: () => world.builtProject(),
    human: new RegExp(`^${ID} ready\n$`),
    json: { status: "ready" },
    refused: [[NOWHERE], 2, /^BUILD is missing\. /],
  },
  "projects list": {
    args: () => ["--limit", "1"],
    human: new RegExp(`^PROJECT +STATUS +REPOSITORY +BRANCH +NAME\n${ID} +active +hosted +main +`),
    json: "/v1/projects?limit=1",
    refused: [["--limit", "many"], 2, /^--limit must be a number of 1 or more\.\n$/],
  },
  "projects show": {
    args: () => [],
    human: new RegExp(
      `^project +${ID}\nname +project\nstatus +active\nrepository +hosted\ndefault branch +main\n`,
    ),
    json: "",
    refused: [[NOWHERE], 4, notFound("Project")],
  },
  "projects usage": {
    args: () => ["--from", "2026-01-01", "--to", "2026-01-31"],
    human: /^No model was used from 2026-01-01 to 2026-01-31\.\n$/,
    json: "/usage?from=2026-01-01&to=2026-01-31",
    refused: [["--from", "January"], 1, /^`from` must be a day like 2026-01-31\.\n$/],
  },
  "projects create": {
    args: () => [`another ${randomUUID()}`, "--default-branch", "trunk"],
    human: /\nname +another [-0-9a-f]{36}\n[^]*\ndefault branch +trunk\n/,
    json: { default_branch: "trunk", repository: { kind: "hosted" } },
    refused: [["x", "--import-from", "ftp://example.org/x"], 1, /^Invalid `repository\.import_from`: /],
  },
  "projects sync": {
    args: () => [],
    human: /^SLUG +TYPE /,
    json: { triggers_paused: false },
    refused: [[NOWHERE], 4, notFound("Project")],
  },
  "projects update": {
    args: () => ["--name", "project", "--triggers", "on"],
    human: /\nname +project\n[^]*\ntriggers +on\n/,
    json: { name: "project", triggers_paused: false },
    refused: [[], 2, /^Give --name, --default-branch, --status, .* or --approvals\.\n$/],
  },
  "projects delete": {
    args: async () => [await world.sparePid()],
    human: /\nstatus +deleted\ngone at +20\d\d-/,
    json: { status: "deleted" },
    refused: [[NOWHERE, "--yes"], 4, notFound("Project")],
  },
  "projects restore": {
    args: async () => [await world.deletedPid()],
    human: /\nstatus +active\n/,
    json: { status: "active", deletes_at: null },
    refused: [[NOWHERE], 4, notFound("Project")],
  },
  "projects check": {
    args: async () => [await world.openedPid()],
    human: /^passed {3}host: The server answers\.\n[\s\S]*unknown {2}push: /,
    json: { usable: true, default_branch: "main" },
    refused: [[NOWHERE], 4, notFound("Project")],
  },
  "projects credential set": {
    args: () => [world.externalPid, "--username", "ci", "--password-file", "-"],
    input: "canary-password-7f3a\n",
    human: /^the repository credential of elsewhere [-0-9a-f]+ was replaced\n$/,
    json: {},
    refused: [["--app-id", "1"], 2, /^Give --app-id, --installation-id and --app-key-file together\.\n$/],
  },
  "projects credential delete": {
    args: async () => [await world.openedPid()],
    human: /^the repository credential was removed\n$/,
    json: {},
    refused: [[], 5, /^This service hosts the project's repository/],
  },
  queue: {
    args: () => [],
    human: /^The queue is empty\.\n$/,
    json: { queue: [], next_cursor: null },
    refused: [["--cursor", "forged"], 1, /cursor/],
  },
  login: {
    args: () => ["--url", world.service.url],
    input: "(the token)",
    human: /^Logged in as admin of the account default\.\n$/,
    json: "/v1/me",
    refused: [["--url", "ftp://x"], 2, /^The address must be an http or https URL/],
  },
  whoami: {
    args: () => [],
    human: new RegExp(
      `^user +admin \\(${ID}\\)\naccount +default \\(${ID}\\)\ntier +free\nsessions +\\d+ of 50, 0 fires queued\n`,
    ),
    json: { user: { name: "admin" } },
    refused: [["--loud"], 2, /^Unknown option --loud\. See `platform whoami --help`\.\n$/],
  },
  "tokens list": {
    args: () => ["--limit", "1"],
    human: new RegExp(`^TOKEN +CREATED +USED +EXPIRES +PROJECT +NAME\n${ID} +`),
    json: "/v1/tokens?limit=1",
    refused: [
      ["--limit", "-1"],
      2,
      /^--limit needs a value\. Write a value that begins with - as --limit=VALUE\./,
    ],
  },
  "tokens create": {
    args: () => ["laptop", "--bound-to", world.pid],
    human: /^platform_pat_[\w-]{43}\n$/,
    json: { name: "laptop", token: expect.stringMatching(/^platform_pat_[\w-]{43}$/) as string },
    refused: [
      ["laptop", "--expires", "2001-01-01T00:00:00.000Z"],
      1,
      /^`expires_at` must be an instant in the future\.\n/,
    ],
  },
  "tokens delete": {
    args: async () => [(await makeUserToken(world.service)).id],
    human: new RegExp(`^${ID} deleted\n$`),
    json: {},
    refused: [[STRANGER], 4, /^No such token: give its id, /],
  },
});
