/** Sessions through the API: what is checked before one is made, and its life from there (api.md 3). */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as Effect from "effect/Effect";
import { SimulatedSandboxes } from "../../../src/sandbox/simulated.ts";
import { GitBackend } from "../../../src/git/port.ts";
import { Sessions } from "../../../src/store/ports/sessions/sessions.ts";
import { startTestService, type Answer, type TestService } from "../../support/service/service.ts";
import {
  eventually,
  expectStatus,
  fields,
  listOf,
  makeAccount,
  makeProject,
  reached,
  runSession,
  stopSession,
  type Fields,
} from "../../support/service/requests.ts";

const CAP = 4;
const AGENT = { ".platform/runtime/agents/reviewer.md": "Review.\n" };

let service: TestService;
let pid = "";
beforeAll(async () => {
  service = await startTestService({
    PLATFORM_TIER_CAPS: JSON.stringify({ free: CAP }),
    PLATFORM_BOOT_TIMEOUT_MS: "5000",
  });
  pid = await makeProject(service, { files: AGENT });
});
afterAll(() => service.close());
const sessions = (rest = ""): string => `/v1/projects/${pid}/sessions${rest}`;
const create = (body: Fields = {}): Promise<Answer> => service.request("POST", sessions(), { body });
const seen = (answer: Answer): readonly [number, unknown] => [answer.status, fields(answer)["code"]];
const commitOf = (ref: string): Promise<string> =>
  service.inside(Effect.flatMap(GitBackend, (git) => git.resolveBase({ projectId: pid }, ref)));
const liveSandboxes = (sid: string): Promise<number> =>
  service.inside(
    Effect.gen(function* () {
      const all = [...(yield* (yield* SimulatedSandboxes).all).values()];
      return all.filter(({ spec }) => spec.sessionId === sid).length;
    }),
  );

const activeSessions = async (): Promise<unknown> =>
  (fields(await service.request("GET", "/v1/me"))["account"] as Fields)["active_sessions"];

describe("creating a session", () => {
  it("answers with all of its fields, provisioning, and it runs", async () => {
    const base = await commitOf("main");
    const wish = { name: "n", agent_model: "provider/model-1", initial_prompt: "Do.", metadata: { a: [1] } };
    const session = fields(expectStatus(await create(wish), 201));
    expect(session).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/),
      project_id: pid,
      account_id: expect.any(String),
      status: "provisioning",
      base_ref: "main",
      base_commit: base,
      branch_name: session["id"],
      ...wish,
      agent_name: "default",
      trigger_slug: null,
      fire_id: null,
      parent_session_id: null,
      created_by: expect.any(String),
      failure: null,
      stop_reason: null,
      saved: null,
      unsaved: null,
      restored: null,
      pending_approvals: 0,
      activity: "starting",
      waits_for: null,
      last_sentence: null,
      changes: null,
      change_request: null,
      person: { id: session["created_by"], name: expect.any(String) },
      archived: false,
      unread: false,
      last_turn: null,
      turn: { state: "idle", since: expect.any(String), waiting_for: null },
      usage: { input_tokens: 0, output_tokens: 0, cached_tokens: 0, cost_usd: 0 },
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      updated_at: session["created_at"],
      running_at: null,
      stopped_at: null,
      warnings: [],
    });
    const id = String(session["id"]);
    expect((await reached(service, pid, id, "running"))["running_at"]).not.toBeNull();
    const sandbox = fields(await service.request("GET", sessions(`/${id}/sandbox`)));
    const active = { session_id: id, provider: "simulated", status: "active", failure: null };
    expect(sandbox).toMatchObject(active);
    expect(await commitOf(id)).toBe(base);
    await stopSession(service, pid, id);
  });

  it("refuses a malformed base ref [G01]", async () => {
    for (const base_ref of ["--upload-pack=touch", "main\n", ""])
      expect(seen(await create({ base_ref }))).toEqual([400, "invalid_request"]);
  });

  it.each([["gone"], ["f".repeat(40)], [randomUUID()]])(
    "reports the base ref %s as unknown [G01]",
    async (base_ref) => {
      expect(seen(await create({ base_ref }))).toEqual([422, "unknown_base_ref"]);
    },
  );

  it("accepts a branch, a commit and another session's branch as its base [G01] [G02]", async () => {
    const feature = await commitOf("feature");
    const first = fields(expectStatus(await create({ base_ref: "feature" }), 201));
    expect(first["base_commit"]).toBe(feature);
    const sid = String(first["id"]);
    await reached(service, pid, sid, "running");
    const bases = await Promise.all(
      [feature, sid].map(async (base_ref) => fields(expectStatus(await create({ base_ref }), 201))),
    );
    expect(bases.map(({ base_commit: commit }) => commit)).toEqual([feature, feature]);
    for (const { id } of [first, ...bases]) await stopSession(service, pid, String(id));
  });

  it("checks the agent and the model", async () => {
    expect(seen(await create({ agent_name: "unknown" }))).toEqual([422, "unknown_agent"]);
    for (const agent_name of ["../x", ""]) {
      expect(seen(await create({ agent_name }))).toEqual([400, "invalid_request"]);
    }
    for (const agent_model of ["model", ""]) {
      expect(seen(await create({ agent_model }))).toEqual([400, "invalid_request"]);
    }
    const session = fields(expectStatus(await create({ agent_name: "reviewer" }), 201));
    expect(session["agent_name"]).toBe("reviewer");
    await stopSession(service, pid, String(session["id"]));
  });

  it("is refused in an archived project", async () => {
    const archived = await makeProject(service);
    await service.request("PATCH", `/v1/projects/${archived}`, { body: { status: "archived" } });
    const answer = await service.request("POST", `/v1/projects/${archived}/sessions`, { body: {} });
    expect(seen(answer)).toEqual([409, "project_not_active"]);
  });

  it("over the cap is 429 with the numbers, and another account's cap is separate", async () => {
    const running = await Promise.all(Array.from({ length: CAP }, () => runSession(service, pid)));
    const answer = await create();
    expect([...seen(answer), fields(answer)["details"]]).toEqual([
      429,
      "session_cap_reached",
      { limit: CAP, active_sessions: CAP },
    ]);
    const foreign = await makeAccount(service);
    const theirs = await makeProject(service, { token: foreign });
    const answered = await service.request("POST", `/v1/projects/${theirs}/sessions`, {
      body: {},
      token: foreign,
    });
    expect(answered.status).toBe(201);
    await Promise.all(running.map((sid) => stopSession(service, pid, sid)));
  });
});

describe("stopping, restarting, deleting", () => {
  it("a stop answers stopped, frees the slot and ends the sandbox", async () => {
    const sid = await runSession(service, pid);
    const stopped = await stopSession(service, pid, sid);
    expect(stopped).toMatchObject({ status: "stopped", stop_reason: "requested", failure: null });
    expect(stopped["stopped_at"]).not.toBeNull();
    expect(await activeSessions()).toBe(0);
    await eventually(async () => {
      expect(await liveSandboxes(sid)).toBe(0);
      const sandbox = fields(await service.request("GET", sessions(`/${sid}/sandbox`)));
      expect(sandbox["status"]).toBe("stopped");
    });
  });

  it("a stop during provisioning is final, and no part of the session is left [R02]", async () => {
    service.daemon.become("cloning");
    const sid = String(fields(expectStatus(await create(), 201))["id"]);
    await eventually(async () => expect(await liveSandboxes(sid)).toBe(1));
    expect(await stopSession(service, pid, sid)).toMatchObject({ status: "stopped", running_at: null });
    service.daemon.become("ready");
    await eventually(async () => expect(await liveSandboxes(sid)).toBe(0));
    // Every second stop passes through the mailbox behind the last messages of the boot.
    expect(await stopSession(service, pid, sid)).toMatchObject({ status: "stopped", running_at: null });
    expect(await activeSessions()).toBe(0);
  });

  it("a restart is 202, on the same branch, in a new sandbox; of a live one it is 409", async () => {
    const sid = await runSession(service, pid);
    const first = fields(await service.request("GET", sessions(`/${sid}/sandbox`)))["id"];
    expect(seen(await service.request("POST", sessions(`/${sid}/restart`)))).toEqual([
      409,
      "not_restartable",
    ]);
    await stopSession(service, pid, sid);
    const again = await service.request("POST", sessions(`/${sid}/restart`));
    expect([again.status, fields(again)["status"], fields(again)["branch_name"]]).toEqual([
      202,
      "provisioning",
      sid,
    ]);
    const running = await reached(service, pid, sid, "running");
    expect(running).toMatchObject({ stop_reason: null, stopped_at: null });
    const second = fields(await service.request("GET", sessions(`/${sid}/sandbox`)))["id"];
    expect(second).not.toBe(first);
    await stopSession(service, pid, sid);
  });

  it("a deletion stops a live session, hides it, and keeps the branch", async () => {
    const sid = await runSession(service, pid);
    expect((await service.request("DELETE", sessions(`/${sid}`))).status).toBe(204);
    for (const rest of ["", "/sandbox", "/events", "/logs"]) {
      expect(seen(await service.request("GET", sessions(`/${sid}${rest}`)))).toEqual([404, "not_found"]);
    }
    expect((await service.request("DELETE", sessions(`/${sid}`))).status).toBe(404);
    const listed = listOf(await service.request("GET", sessions("?limit=200")), "sessions");
    expect(listed.map(({ id }) => id)).not.toContain(sid);
    expect(await commitOf(sid)).toBe(await commitOf("main"));
    await eventually(async () => expect(await liveSandboxes(sid)).toBe(0));
    await eventually(async () => expect(await activeSessions()).toBe(0));
  });

  it("name and metadata can be changed, and nothing else", async () => {
    const sid = await runSession(service, pid, { name: "before" });
    const answer = await service.request("PATCH", sessions(`/${sid}`), { body: { metadata: { k: 1 } } });
    expect(fields(expectStatus(answer, 200))).toMatchObject({ name: "before", metadata: { k: 1 } });
    expect(
      (await service.request("PATCH", sessions(`/${sid}`), { body: { status: "stopped" } })).status,
    ).toBe(400);
    await stopSession(service, pid, sid);
  });
});

describe("a boot that fails", () => {
  it("fails with the daemon's reason, its sandbox gone and its slot free", async () => {
    service.daemon.become({ failed: "git: the remote hung up" });
    const sid = String(fields(expectStatus(await create(), 201))["id"]);
    const failed = await reached(service, pid, sid, "failed");
    expect(failed["failure"]).toEqual({
      code: "clone_failed",
      message: "git: the remote hung up",
      at: expect.any(String),
    });
    expect(await activeSessions()).toBe(0);
    await eventually(async () => expect(await liveSandboxes(sid)).toBe(0));
    const sandbox = fields(await service.request("GET", sessions(`/${sid}/sandbox`)));
    expect(sandbox).toMatchObject({ status: "error", failure: { code: "clone_failed" } });
    service.daemon.become("ready");
    expect((await service.request("POST", sessions(`/${sid}/restart`))).status).toBe(202);
    expect((await reached(service, pid, sid, "running"))["failure"]).toBeNull();
    await stopSession(service, pid, sid);
  });
});

describe("a list of sessions", () => {
  it("says what its reader has not seen, and leaves out what is archived until its next turn", async () => {
    const sid = await runSession(service, pid);
    // The clock of a sandbox may be ahead.
    const endTurn = (number: number): Promise<unknown> =>
      service.inside(
        Effect.gen(function* () {
          const { get, noteTurn } = yield* Sessions;
          const sandboxId = (yield* get(sid))?.sandboxId ?? "";
          const at = `2099-01-0${number}T00:00:00.000Z`;
          return yield* noteTurn(sid, { state: "completed", error: null, at, sandboxId, number, now: 0 });
        }),
      );
    const shown = async (): Promise<unknown> => {
      const rows = listOf(await service.request("GET", sessions("?archived=false&limit=200")), "sessions");
      return rows.find(({ id }) => id === sid)?.["unread"];
    };
    await endTurn(1);
    expect(await shown()).toBe(true);
    expectStatus(await service.request("POST", sessions(`/${sid}/seen`)), 204);
    expect(await shown()).toBe(false);
    const archived = await service.request("PATCH", sessions(`/${sid}`), { body: { archived: true } });
    expect(fields(archived)).toMatchObject({ archived: true });
    expect(await shown()).toBeUndefined();
    await endTurn(2);
    expect(await shown()).toBe(true);
    await stopSession(service, pid, sid);
  });
});
