/** Calls that wait for a person: who decides, what is called, and what the agent hears. The server behind it is a real one. */
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { textResult } from "../../support/servers/mcp-server.ts";
import {
  mergeFiles,
  errorCode,
  eventually,
  expectStatus,
  fields,
  listOf,
  putSecret,
  stopSession,
  type Fields,
} from "../../support/service/requests.ts";
import { auditOf } from "../people/audit-rows.ts";
import { ExecutorWorld, HEADERS, manifest, textOf } from "../connectors/executor-world.ts";

/** Shorter than the service's own 10 s, and longer than most calls here take. */
const PROGRESS_MS = 3_000;
let world: ExecutorWorld;
beforeAll(async () => {
  // Callers hear sooner that their calls wait.
  world = await ExecutorWorld.start({}, { progressMs: PROGRESS_MS });
});
afterAll(() => world.close());
beforeEach(() => world.reset());

const approvals = async (session: string, query = ""): Promise<readonly Fields[]> => {
  const target = `/v1/projects/${world.pid}/approvals?session_id=${session}${query}`;
  return listOf(expectStatus(await world.service.request("GET", target), 200), "approvals");
};

/** The approval of a session, once it waits. */
const waiting = (session: string): Promise<string> =>
  eventually(async () => {
    const [one] = await approvals(session, "&status=pending");
    if (one === undefined) throw new Error("no call waits");
    return String(one["id"]);
  });

const decide = (id: string, wish: "approve" | "deny", options: { body?: Fields; token?: string } = {}) =>
  world.service.request("POST", `/v1/projects/${world.pid}/approvals/${id}/${wish}`, {
    ...(wish === "deny" && { body: {} }),
    ...options,
  });

const stateOf = async (session: string): Promise<Fields> => (await approvals(session))[0] ?? {};

const settled = (session: string, status: string): Promise<Fields> =>
  eventually(async () => {
    const found = await stateOf(session);
    expect(found["status"]).toBe(status);
    return found;
  });

/** Calls, and goes away while the call waits. @returns the approval's id */
const callAndLeave = async (session: string, by: string, given: Fields): Promise<string> => {
  const leaving = new AbortController();
  const call = world.call("wiki_publish", given, { by, signal: leaving.signal }).catch(() => null);
  const id = await waiting(session);
  leaving.abort();
  await call;
  return id;
};

const messagesOf = async (session: string): Promise<readonly Fields[]> => {
  const target = `/v1/projects/${world.pid}/sessions/${session}/conversation`;
  const { items, queue } = fields(expectStatus(await world.service.request("GET", target), 200));
  const all = new Map([...(items as Fields[]), ...(queue as Fields[])].map((item) => [item["id"], item]));
  return [...all.values()].filter(
    ({ kind, author }) => kind === "message" && (author as Fields | null)?.["kind"] === "service",
  );
};

const published = () => world.server.calls.filter(({ tool }) => tool === "publish");

describe("a call that a person must approve", () => {
  it("is made once after the approval, and the waiting agent gets its result", async () => {
    world.server.answers.set("publish", () => textResult("it is public"));
    const { session, by, rows } = await world.freshSession();
    const call = world.call("wiki_publish", { page: "home" }, { by });
    const id = await waiting(session);
    expect(published()).toEqual([]);
    expect((await rows())[0]).toMatchObject({ id, outcome: "pending", approver: null, ended_at: null });
    expect(await stateOf(session)).toMatchObject({
      connector: "wiki",
      tool: "publish",
      arguments: { page: "home" },
      decided_by: null,
    });
    expectStatus(await decide(id, "approve"), 200);
    expect(textOf(await call)).toBe("it is public");
    expect(published()).toHaveLength(1);
    const { user } = fields(await world.service.request("GET", "/v1/me"));
    const me = (user as Fields)["id"];
    expect((await rows())[0]).toMatchObject({ outcome: "ok", approver: me, upstream_status: 200 });
    const changes = { connector: "wiki", tool: "publish", session_id: session };
    const [given, ...others] = await auditOf(world.service, "approval.approved");
    expect(given).toMatchObject({ target: id, project_id: world.pid, actor: { id: me }, changes });
    expect(others).toEqual([]);
    expect(await settled(session, "done")).toMatchObject({
      arguments: null,
      decided_by: me,
      outcome: "ok",
      delivered_at: expect.any(String) as string,
    });
    expect(await messagesOf(session)).toEqual([]);
  });

  it("counts as a session that waits for those who may decide, and the conversation says who did", async () => {
    const { session, by } = await world.freshSession();
    const id = await callAndLeave(session, by, { page: "seen" });
    const target = "/v1/sessions?turn=requires_action&limit=200";
    const waits = async (token?: string) => {
      const given = await world.service.request("GET", target, token === undefined ? {} : { token });
      return listOf(expectStatus(given, 200), "sessions").filter((one) => one["id"] === session);
    };
    expect(await waits()).toMatchObject([{ pending_approvals: 1 }]);
    expect(await waits(by)).toEqual([]);
    const inProject = `/v1/projects/${world.pid}/sessions?turn=requires_action&limit=200`;
    const listed = listOf(await world.service.request("GET", inProject), "sessions");
    expect(listed.map((one) => one["id"])).toContain(session);
    expectStatus(await decide(id, "approve"), 200);
    expect(await waits()).toEqual([]);
    await settled(session, "done");
    const conversation = `/v1/projects/${world.pid}/sessions/${session}/conversation`;
    const { items } = fields(expectStatus(await world.service.request("GET", conversation), 200));
    const notes = (items as Fields[]).filter(({ kind }) => kind === "note");
    expect(JSON.stringify(notes)).toContain("approved the call of publish of the connector wiki.");
  });

  it("is not made if a person denies it, and the agent reads the reason", async () => {
    const { session, by, rows } = await world.freshSession();
    const call = world.call("call_tool", { name: "wiki_publish", arguments: { page: "x" } }, { by });
    const id = await waiting(session);
    expectStatus(await decide(id, "deny", { body: { reason: "Review it first." } }), 200);
    const result = await call;
    expect([result.isError, textOf(result)]).toEqual([
      true,
      `The call of publish of the connector wiki was denied by a person, and was not made. The reason: Review it first. The call's id is ${id}.`,
    ]);
    const late = await decide(id, "approve");
    expect([late.status, errorCode(late)]).toEqual([409, "approval_settled"]);
    expect((await rows())[0]).toMatchObject({ outcome: "denied", approver: expect.any(String) as string });
    const [denied] = await auditOf(world.service, "approval.denied");
    expect(denied).toMatchObject({ target: id });
    expect(JSON.stringify(denied)).not.toContain("Review it first.");
    expect(await auditOf(world.service, "approval.approved")).not.toContainEqual(
      expect.objectContaining({ target: id }),
    );
    expect(published()).toEqual([]);
  });

  it("is refused after the approval if the tool was changed meanwhile [K05]", async () => {
    const project = await world.newProject();
    await world.connect(project);
    const { session, by } = await world.freshSession(project);
    const call = world.call("wiki_publish", { page: "old" }, { by, project });
    const target = `/v1/projects/${project}/approvals`;
    const id = await eventually(async () => {
      const [one] = listOf(await world.service.request("GET", target), "approvals");
      if (one === undefined) throw new Error("no call waits");
      return String(one["id"]);
    });
    world.server.tools = world.server.tools.map((tool) =>
      tool.name === "publish" ? { ...tool, description: "Publishes everything." } : tool,
    );
    expectStatus(await world.change(project, { action: "refresh" }), 200);
    const { pin } = await world.catalogueOf(project);
    expectStatus(await world.change(project, { action: "accept", pin }), 200);
    expectStatus(await world.service.request("POST", `${target}/${id}/approve`), 200);
    expect(textOf(await call)).toContain("was changed after the call was asked for");
    expect(published()).toEqual([]);
    const [row] = await world.calls(project, `?session_id=${session}`);
    expect(row).toMatchObject({ outcome: "denied" });
  });

  it("expires if no person decides in time, and cannot be approved then", async () => {
    const { session, by } = await world.freshSession();
    const call = world.call("wiki_publish", { page: "slow" }, { by });
    const id = await waiting(session);
    await world.service.inside(
      Effect.flatMap(
        SqlClient.SqlClient,
        (sql) => sql`UPDATE approvals SET expires_at = now() - interval '1 second' WHERE id = ${id}`,
      ),
    );
    const late = await decide(id, "approve");
    expect([late.status, errorCode(late)]).toEqual([409, "approval_settled"]);
    expect(textOf(await call)).toContain(`no person decided on it within 24 hours. The call's id is ${id}.`);
    await settled(session, "expired");
    expect(published()).toEqual([]);
  });
});

describe("a client that wants to hear of progress", () => {
  it.each(["legacy", "auto"] as const)(
    "hears that its call waits, then gets the result on the same stream, in mode %s",
    async (mode) => {
      const { session, by } = await world.freshSession();
      const heard = Promise.withResolvers<{
        readonly progress: number;
        readonly message?: string | undefined;
      }>();
      const call = world.withClient(
        (client) =>
          client.callTool(
            { name: "wiki_publish", arguments: { mode } },
            { onprogress: (progress) => heard.resolve(progress) },
          ),
        { by, mode },
      );
      const { progress, message } = await heard.promise;
      expect(progress).toBeGreaterThanOrEqual(PROGRESS_MS / 1000);
      expect(message).toContain("waits for a person's approval");
      expectStatus(await decide(await waiting(session), "approve"), 200);
      expect((await call).content).toEqual([{ type: "text", text: "publish ran" }]);
      expect(published()).toHaveLength(1);
    },
  );

  it("is cut off when its session ends, and the call still waits for a person", async () => {
    const { session, by } = await world.freshSession();
    const params = { name: "wiki_publish", arguments: { session }, _meta: { progressToken: 1 } };
    const answer = await fetch(`${world.service.url}/v1/projects/${world.pid}/executor/mcp`, {
      method: "POST",
      headers: { ...HEADERS, authorization: `Bearer ${by}` },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
    });
    expect(answer.headers.get("content-type")).toBe("text/event-stream");
    await stopSession(world.service, world.pid, session);
    const text = await answer.text();
    expect(text).toContain("notifications/progress");
    expect(text).not.toContain('"result"');
    expect(await stateOf(session)).toMatchObject({ status: "pending" });
  });
});

describe("a decision", () => {
  it("is refused to a session's token, its own and another one's [K12]", async () => {
    const { session, by } = await world.freshSession();
    const other = await world.freshSession();
    const id = await callAndLeave(session, by, { page: "self" });
    for (const token of [by, other.by]) {
      expect((await decide(id, "approve", { token })).status).toBe(403);
      expect((await decide(id, "deny", { token, body: {} })).status).toBe(403);
      const target = `/v1/projects/${world.pid}/approvals`;
      expect((await world.service.request("GET", target, { token })).status).toBe(403);
    }
    expect(textOf(await world.call("call_result", { id }, { by: other.by }))).toBe(
      "This session has no call with this id.",
    );
    expect(await stateOf(session)).toMatchObject({ status: "pending" });
    expectStatus(await decide(id, "deny"), 200);
  });
});

describe("the arguments of a call that waits", () => {
  it("are in no log, event, message or plain row, and secrets among them are masked for people [K13]", async () => {
    const CANARY = "canary-argument-4711";
    await putSecret(world.service, world.pid, "DEPLOY_KEY", "a-deploy-key-value");
    const { session, by, rows } = await world.freshSession();
    const given = { page: "p", api_key: CANARY, note: "with a-deploy-key-value" };
    const id = await callAndLeave(session, by, given);
    expect((await stateOf(session))["arguments"]).toEqual({
      page: "p",
      api_key: "[hidden, 20 characters]",
      note: "with [redacted]",
    });
    const [shown] = await approvals(session, "&hidden=show");
    expect(shown?.["arguments"]).toEqual({ ...given, note: "with [redacted]" });
    const stored = await world.service.inside(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient;
        return [
          yield* sql`SELECT row_to_json(approvals)::text FROM approvals WHERE id = ${id}`,
          yield* sql`SELECT encode(arguments_envelope, 'escape') FROM approvals WHERE id = ${id}`,
          yield* sql`SELECT row_to_json(events)::text FROM events`,
          yield* sql`SELECT row_to_json(executor_calls)::text FROM executor_calls`,
        ];
      }),
    );
    expectStatus(await decide(id, "approve"), 200);
    await settled(session, "done");
    expect(published()[0]?.arguments).toEqual(given);
    const everything = JSON.stringify([stored, world.service.logs, await rows(), await stateOf(session)]);
    expect(everything).toContain("approval.waiting");
    expect(everything).not.toContain(CANARY);
    expect(everything).not.toContain("a-deploy-key-value");
  });
});

describe("a merged manifest", () => {
  it("that denies a tool decides about calls that wait", async () => {
    const project = await world.newProject();
    await world.connect(project);
    const { by } = await world.freshSession(project);
    const call = world.call("wiki_publish", {}, { by, project });
    const target = `/v1/projects/${project}/approvals`;
    const id = await eventually(async () => {
      const [one] = listOf(await world.service.request("GET", target), "approvals");
      if (one === undefined) throw new Error("no call waits");
      return String(one["id"]);
    });
    await mergeFiles(world.service, project, {
      "platform.toml": manifest(world.server.url).replace('policy = "ask"', 'policy = "deny"'),
    });
    expectStatus(await world.service.request("POST", `${target}/${id}/approve`), 200);
    expect(textOf(await call)).toContain("is denied by platform.toml");
    expect(published()).toEqual([]);
  });
});
