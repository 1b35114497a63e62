/**
 * Every command against the real service over HTTP: what people see, the API's own document for programs,
 * and how it ends when it is refused. A command without a row here fails the first test.
 */
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import * as Effect from "effect/Effect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as SqlClient from "effect/sql/SqlClient";
import { TestMailServer } from "../support/servers/mail-server.ts";
import { ReceiverServer } from "../support/servers/receiver.ts";
import { commands } from "../../src/assembly/commands.ts";
import { Identity } from "../../src/store/ports/people/identity.ts";
import { Sessions } from "../../src/store/ports/sessions/sessions.ts";
import { gitOk } from "../git/git-client.ts";
import {
  commitFiles,
  deliver,
  eventually,
  expectStatus,
  fields,
  hmac,
  listOf,
  makeProject,
  putSecret,
  runSession,
  SECRET,
  SECRET_NAME,
  stopSession,
  webhookEntry,
} from "../support/service/requests.ts";
import { startUpstream, type UpstreamServer } from "../git/external/upstream-server.ts";
import { runHere, type Running } from "../support/service/command-line.ts";
import { peopleRows } from "./fixtures/rows-people.ts";
import { APART, ID, type Row, type World } from "./fixtures/row.ts";
import { rowsOf } from "./fixtures/rows.ts";
import { startMcpServer, type McpServer } from "../support/servers/mcp-server.ts";
import { startTestService, type TestService } from "../support/service/service.ts";

/** Two for each row that proposes something. */
const BRANCHES = 28;
const connectorEntry = (url: string): string =>
  `[[connectors]]\nslug = "wiki"\nkind = "mcp"\nurl = "${url}"\nauth = "bearer"\n`;

const MANIFEST = `${webhookEntry("push", "Review {{ body.ref }}")}
[[triggers]]
slug = "nightly"
type = "cron"
cron = "0 30 2 * * *"
prompt = "Update"

[[triggers]]
slug = "off"
type = "cron"
enabled = false
cron = "0 0 3 * * *"
prompt = "Rest"

[[triggers]]
slug = "broken"
type = "cron"
cron = "never"
prompt = "x"
`;

let service: TestService;
let pid: string;
const upstreams = mkdtempSync(path.join(tmpdir(), "upstreams-"));
let upstream: UpstreamServer;
let receiver: ReceiverServer;
let externalPid: string;

/** The notes beside a new session: this one, and the address of its page. */
const noted = (before: string) => expect.stringContaining(`${before}Page: `) as string;

const run = (args: readonly string[], { env = {}, ...rest }: Running = {}) =>
  runHere(args, {
    env: {
      PLATFORM_API_URL: `${service.url}/v1`,
      PLATFORM_CLI_TOKEN: service.token,
      PLATFORM_PROJECT_ID: pid,
      ...env,
    },
    ...rest,
  });

const get = async (target: string): Promise<unknown> => {
  const from = target.startsWith("/v1") ? target : `/v1/projects/${pid}${target}`;
  return expectStatus(await service.request("GET", from), 200).json;
};

/** Branches with a commit of its own each, to be used up. */
const branches: string[] = [];
const freshBranch = (): string => {
  const branch = branches.pop();
  if (branch === undefined) throw new Error("there are too few branches");
  return branch;
};

/** Pushes them all at once: a clone for each would be the longest part of this file. */
const pushBranches = async (count: number): Promise<void> => {
  const directory = mkdtempSync(path.join(service.importRoot, "work-"));
  const remote = `http://x:${service.token}@127.0.0.1:${service.port}/v1/git/${pid}.git`;
  await gitOk(directory, "clone", "--quiet", remote, ".");
  for (let number = 1; number <= count; number += 1) {
    const branch = `work-${number}`;
    await gitOk(directory, "checkout", "--quiet", "-b", branch, "origin/main");
    await commitFiles(directory, { [`${branch}.txt`]: "new\n" });
    branches.push(branch);
  }
  await gitOk(directory, "push", "--quiet", "origin", ...branches);
};

const openRequest = async (): Promise<string> => {
  const body = { head_ref: freshBranch(), title: "Proposed" };
  const answer = await service.request("POST", `/v1/projects/${pid}/change-requests`, { body });
  return String(fields(expectStatus(answer, 201))["number"]);
};

/** A project over a repository at a git server. */
const makeExternal = async (): Promise<string> => {
  const bare = path.join(upstreams, "a.git");
  await gitOk(upstreams, "init", "--quiet", "--bare", "--initial-branch=main", bare);
  const work = path.join(upstreams, "work");
  await gitOk(upstreams, "clone", "--quiet", bare, work);
  await commitFiles(work, { "README.md": "one\n" });
  await gitOk(work, "push", "--quiet", "origin", "HEAD:refs/heads/main");
  const { username, password, origin } = upstream;
  const repository = { kind: "git", url: `${origin}/a.git`, username, password };
  const body = { name: `elsewhere ${randomUUID()}`, repository };
  return String(fields(expectStatus(await service.request("POST", "/v1/projects", { body }), 201))["id"]);
};

const openedPid = async (): Promise<string> => {
  upstream.isPublic = true;
  const { username, password } = upstream;
  const target = `/v1/projects/${externalPid}/repository/credential`;
  expectStatus(await service.request("PUT", target, { body: { username, password } }), 200);
  return externalPid;
};

/** One that waits for nothing any more, and holds no slot. */
const stoppedSession = async (): Promise<string> => {
  const sid = await runSession(service, pid, { initial_prompt: "Begin" });
  await service.inside(
    Effect.gen(function* () {
      const sessions = yield* Sessions;
      const sandboxId = (yield* sessions.get(sid))?.sandboxId ?? "";
      const error = { code: "model_rate_limited", message: "Too many requests." };
      const at = "2026-11-20T06:52:05.618Z";
      yield* sessions.noteTurn(sid, { sandboxId, number: 1, state: "failed", error, at, now: 0 });
    }),
  );
  await stopSession(service, pid, sid);
  return sid;
};

const firedOnce = async (): Promise<string> => {
  const { session_id: sid } = fields(
    await service.request("POST", `/v1/projects/${pid}/triggers/push/fire`, { body: {} }),
  );
  await stopSession(service, pid, String(sid));
  const [fire] = listOf(await service.request("GET", `/v1/projects/${pid}/fires`), "fires");
  return String(fire?.["id"]);
};

const refuse = async (): Promise<void> => {
  const headers = {
    "x-platform-signature": hmac("{}", "another secret"),
    "x-github-event": "push",
    "x-github-delivery": "once",
  };
  expectStatus(await deliver(service, `${pid}/push`, { headers }), 401);
  await eventually(async () => {
    const page = await service.request("GET", `/v1/projects/${pid}/webhook-refusals`);
    expect(listOf(page, "webhook_refusals")).toHaveLength(1);
  });
};

const builtProject = async (): Promise<readonly [string, string]> => {
  const own = await makeProject(service, { files: { ".platform/Dockerfile": "FROM debian:13\n" } });
  return eventually(async () => {
    const { current } = fields(await service.request("GET", `/v1/projects/${own}/environment`));
    expect(current).toMatchObject({ status: "ready" });
    return [own, (current as { id: string }).id] as const;
  });
};

const modelProvider = async (): Promise<string> => {
  const target = "/v1/model-providers";
  for (const { id } of listOf(await service.request("GET", target), "model_providers"))
    expectStatus(await service.request("DELETE", `${target}/${String(id)}`), 204);
  const name = `acme-${randomUUID().slice(0, 6)}`;
  const address = { kind: "openai-compatible", base_url: "http://127.0.0.1:9/v1" };
  const body = { name, ...address, models: ["large"], try: false };
  expectStatus(await service.request("POST", target, { body }), 201);
  return name;
};

const outboundWebhook = async (url = "https://receiver.example.org/"): Promise<string> => {
  const target = `/v1/projects/${pid}/webhooks`;
  // A project has few: those of earlier rows go.
  for (const { id } of listOf(await service.request("GET", target), "webhooks"))
    expectStatus(await service.request("DELETE", `${target}/${String(id)}`), 204);
  const body = { url, events: ["session.stopped"] };
  return String(fields(expectStatus(await service.request("POST", target, { body }), 201))["id"]);
};

/** Its receiver takes no event, and each test. */
const outboundDelivery = async (): Promise<readonly [string, string]> => {
  const id = await outboundWebhook(receiver.url);
  await stopSession(service, pid, await runSession(service, pid));
  return eventually(async () => {
    const page = await service.request("GET", `/v1/projects/${pid}/webhooks/${id}/deliveries`);
    const [delivery] = listOf(page, "deliveries");
    expect(delivery?.["last_try"]).toMatchObject({ status: 500 });
    return [id, String(delivery?.["id"])] as const;
  });
};

let mailServer: TestMailServer;
const mailbox = (): Promise<void> =>
  service.inside(
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient;
      yield* sql`
        INSERT INTO identities (id, issuer, subject, name, email, user_id, created_at)
        SELECT ${randomUUID()}, 'https://sso.example.org', 'ada', 'Ada', 'ada@example.org', user_id, now() FROM tokens
        WHERE origin = 'user' ORDER BY created_at LIMIT 1 ON CONFLICT DO NOTHING`;
    }),
  );

/** Once: the record is the same for each who asks. */
let refusal: Promise<void> | null = null;
const refusedOnce = (): Promise<void> => (refusal ??= refuse());

let mcp: McpServer;
const connectedPin = async (): Promise<string> => {
  const connector = `/v1/projects/${pid}/connectors/wiki`;
  const body = { value: "canary-credential" };
  expectStatus(await service.request("PUT", `${connector}/credential`, { body }), 200);
  return String(fields(expectStatus(await service.request("GET", `${connector}/catalogue`), 200))["pin"]);
};

const world: World = {
  get service() {
    return service;
  },
  get pid() {
    return pid;
  },
  get externalPid() {
    return externalPid;
  },
  openedPid,
  sparePid: () => makeProject(service),
  deletedPid: async () => {
    const spare = await makeProject(service);
    expectStatus(await service.request("DELETE", `/v1/projects/${spare}`), 202);
    return spare;
  },
  freshBranch,
  openRequest,
  reader: async () => String(Object(fields(await service.request("GET", "/v1/me"))["user"])["id"]),
  comment: async () => {
    const number = await openRequest();
    const target = `/v1/projects/${pid}/change-requests/${number}/remarks`;
    const said = await service.request("POST", target, { body: { body: "Why?" } });
    return [number, String(fields(said)["id"])];
  },
  builtProject,
  stoppedSession,
  firedOnce,
  refusedOnce,
  modelProvider,
  outboundWebhook: () => outboundWebhook(),
  outboundDelivery,
  mailbox,
  connectedPin,
};
const ROWS = { ...rowsOf(world), ...peopleRows(world) };

beforeAll(async () => {
  upstream = await startUpstream(upstreams);
  receiver = await ReceiverServer.open();
  receiver.behaviour = (response, { body }) => {
    const isTest = (JSON.parse(body) as { type: string }).type === "webhook.test";
    // No second try while a row is tested.
    response.writeHead(isTest ? 204 : 500, { "retry-after": "3600" }).end();
  };
  mailServer = await TestMailServer.open();
  service = await startTestService({
    PLATFORM_SMTP_URL: `smtp://127.0.0.1:${mailServer.port}`,
    PLATFORM_MAIL_FROM: "platform@example.org",
    PLATFORM_GIT_ALLOW_HOSTS: "127.0.0.1",
    PLATFORM_CONNECTOR_ALLOW_HOSTS: "127.0.0.1",
    PLATFORM_WEBHOOK_ALLOW_HOSTS: "127.0.0.1",
    PLATFORM_AGENT_RUNTIMES: "claude-code",
  });
  mcp = await startMcpServer([{ name: "read", description: "Reads a page." }]);
  externalPid = await makeExternal();
  pid = await makeProject(service, {
    name: "project",
    files: { "platform.toml": `${MANIFEST}\n${connectorEntry(mcp.url)}` },
  });
  await Promise.all([putSecret(service, pid, SECRET_NAME, SECRET), pushBranches(BRANCHES)]);
});
afterAll(async () => {
  await service?.close();
  await mcp?.close();
  await upstream?.close();
  await receiver?.close();
  await mailServer?.close();
  rmSync(upstreams, { recursive: true, force: true });
});

it("has a row for every command", () => {
  expect([...Object.keys(ROWS), ...APART].toSorted()).toEqual(commands.map(({ name }) => name).toSorted());
});

const inputOf = ({ input }: Row): Running => ({
  input: input === "(the token)" ? service.token : (input ?? ""),
});

describe.each(Object.entries(ROWS))("platform %s", (name, row) => {
  const words = name.split(" ");

  it("shows a user the objects or the result", async () => {
    const ended = await run([...words, ...(await row.args())], inputOf(row));
    expect(ended).toMatchObject({ code: 0, stdout: expect.stringMatching(row.human) as string });
  });

  it("gives a program the API's own document and nothing else", async () => {
    const args = await row.args();
    const ended = await run([...words, ...args, "--json"], inputOf(row));
    expect(ended).toMatchObject({ code: 0, stderr: "" });
    const { json } = row;
    const expected = typeof json === "function" ? json(args) : json;
    const document: unknown = JSON.parse(ended.stdout);
    if (typeof expected !== "string") expect(document).toMatchObject(expected);
    else expect(withoutUse(document)).toEqual(withoutUse(await get(expected)));
  });

  it("explains a refusal in a sentence, and uses its exit code", async () => {
    const [args, code, sentence] = row.refused;
    const ended = await run([...words, ...args], inputOf(row));
    expect(ended).toMatchObject({ code, stdout: "", stderr: expect.stringMatching(sentence) as string });
  });
});

/** What changes with each use of a token, or with the clock. */
const withoutUse = (document: unknown): unknown =>
  JSON.parse(
    JSON.stringify(document, (key, value: unknown) =>
      ["last_used_at", "ticked_at", "active_sessions", "synced_at"].includes(key) ? undefined : value,
    ),
  );

describe("a webhook trigger with a filter", () => {
  const filter =
    '[webhooks.push]\nevents = ["push"]\nbranches = ["main"]\nif = { "body.forced" = false }\nown_pushes = true\n';

  it("is listed with its filter, and previewed as the receiver would decide", async () => {
    const own = await makeProject(service, { files: { "platform.toml": `${MANIFEST}\n${filter}` } });
    const triggers = await run(["triggers", "list", "--project", own]);
    expect(triggers.stdout).toContain("push; on main; body.forced = false; own pushes");
    const preview = (event: string) =>
      run(
        ["triggers", "preview", "push", "--project", own, "--kind", "webhook", "--body-file", "-"].concat([
          "--event",
          event,
          "--content-type",
          "application/x-www-form-urlencoded",
        ]),
        { input: new URLSearchParams({ payload: '{"ref": "refs/heads/main", "forced": false}' }).toString() },
      );
    const fires = { code: 0, stdout: "Review refs/heads/main\n" };
    expect(await preview("push")).toMatchObject({ ...fires, stderr: "" });
    expect(await preview("create")).toMatchObject({
      ...fires,
      stderr: "The delivery does not match the trigger's filter. It would not start a session.\n",
    });
    expect((await preview("ping")).stderr).toBe(
      "This is a ping. The service answers it and does not start a session.\n",
    );
    await run(["projects", "update", own, "--triggers", "paused"]);
    expect((await run(["triggers", "list", "--project", own])).stdout).toMatch(
      /\nAll triggers of this project are paused\. Webhook deliveries get a 404 response; see `platform triggers refused`\.\n$/,
    );
  });
});

describe("a project that requires a secret without a value", () => {
  it("starts sessions with a warning, and lists its triggers with the warning", async () => {
    const own = await makeProject(service, { files: { "platform.toml": '[env]\nrequired = ["NEEDED"]\n' } });
    const warning =
      "The manifest requires the secret NEEDED, but it has no value. Set it with `platform secrets set NEEDED`.\n";
    const create = (...more: string[]) => run(["sessions", "create", "--project", own, ...more]);
    const created = { code: 0, stdout: expect.stringMatching(`^${ID} Starting\n$`) as string };
    expect(await create()).toMatchObject({ ...created, stderr: noted(warning) });
    const { stderr, stdout } = await create("--json");
    expect([stderr, JSON.parse(stdout)]).toEqual([
      "",
      expect.objectContaining({ warnings: [expect.anything()] }),
    ]);
    expect((await run(["triggers", "list", "--project", own])).stdout).toBe(`No triggers.\n${warning}`);
    await putSecret(service, own, "NEEDED", "a value");
    expect(await create()).toMatchObject({ ...created, stderr: noted("") });
  });
});

describe("a secret that is rotated", () => {
  it("says until when its previous value verifies webhooks", async () => {
    const set = (...more: string[]) => run(["secrets", "set", "ROTATED", ...more], { input: "a value" });
    expect((await set()).stdout).toBe("ROTATED is set\n");
    const instant = String.raw`\d{4}-\d\d-\d\d \d\d:\d\dZ`;
    expect((await set("--previous-valid", "24h")).stdout).toMatch(
      new RegExp(`^ROTATED is set; its previous value stays valid until ${instant}\n$`),
    );
    expect((await run(["secrets", "list"])).stdout).toMatch(
      new RegExp(`ROTATED +${instant} +yes +yes +${instant}\n`),
    );
    expect(await set("--previous-valid", "1 day")).toMatchObject({
      code: 2,
      stderr: "--previous-valid must be a duration such as 90s, 30m, 24h or 7d.\n",
    });
    expect((await set("--previous-valid", "8d")).stderr).toContain("previous_valid_ms");
    expect((await run(["secrets", "delete", "ROTATED"])).code).toBe(0);
  });
});

describe("a session", () => {
  it("starts from the saved work of another one", async () => {
    const sid = await runSession(service, pid);
    const from = (...more: string[]) => run(["sessions", "create", "--from", sid, ...more, "--json"]);
    expect((await from()).code).toBe(5);
    service.saves.of(sid).last = { sandboxId: sid, at: 1, files: new Map([["a.txt", "1"]]) };
    expect(JSON.parse((await from()).stdout)).toMatchObject({ saved: { files: 1 } });
    expect((await from("--base", "main")).stderr).toContain("Give one of --base, --from-here and --from.");
  });

  it("starts with files", async () => {
    const file = import.meta.filename;
    const made = await run(["sessions", "create", "--prompt", "Read it.", "--attach", file, "--json"]);
    const { id, name } = JSON.parse(made.stdout) as { readonly id: string; readonly name: string };
    expect(name).toBe("Read it.");
    await eventually(async () => {
      const read = await run(["sessions", "transcript", id, "--json"]);
      expect(read.stdout).toContain("commands.test.ts");
    });
  });
});

describe("at the account's cap", () => {
  it("a session waits as a fire does, is listed, and can be cancelled; with --no-queue it is refused with 6", async () => {
    await runSession(service, pid);
    const { account } = (await service.request("GET", "/v1/me")).json as { account: { id: string } };
    // The table left more than one session running.
    await service.inside(Effect.flatMap(Identity, ({ setTier }) => setTier(account.id, "free", 1)));
    const refused = await run(["sessions", "create", "--no-queue", "--json"]);
    expect({ ...refused, stderr: JSON.parse(refused.stderr) as unknown }).toMatchObject({
      code: 6,
      stdout: "",
      stderr: { code: "session_cap_reached", details: { limit: 1 } },
    });
    expect(fields(await deliver(service, `${pid}/push`))).toMatchObject({ status: "queued" });
    const waiting = await run(["queue"]);
    const id = new RegExp(`^POSITION .*\n1 +(${ID}) +push +${pid} `).exec(waiting.stdout)?.[1] ?? "";
    expect(await run(["triggers", "cancel", id])).toMatchObject({ code: 0, stdout: `${id} cancelled\n` });
    const asked = await run(["sessions", "create", "--name", "A draft"]);
    const own = new RegExp(`^(${ID}) Queued\n$`).exec(asked.stdout)?.[1] ?? "";
    expect([asked.code, asked.stderr]).toEqual([
      0,
      expect.stringMatching(
        new RegExp(`\nPlace 1 in the queue\\.\nTo cancel it: platform triggers cancel ${own}\n$`),
      ),
    ]);
    expect((await run(["queue"])).stdout).toMatch(new RegExp(`\n1 +${own} +admin +${pid} .* A draft\n$`));
    expect((await run(["triggers", "cancel", own])).code).toBe(0);
    const again = await run(["triggers", "cancel", id]);
    expect([again.code, again.stderr]).toEqual([5, expect.stringMatching(/^\S.*\.\n$/)]);
    expect(JSON.parse((await run(["queue", "--json"])).stdout)).toEqual({ queue: [], next_cursor: null });
  });
});
