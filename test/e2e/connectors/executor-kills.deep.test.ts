/**
 * Two services on one database. The one that performs an agent's call is killed with SIGKILL before the server of the
 * connector answered. The other one goes on: no call is sent twice, and what a person must decide is kept.
 */
import { randomBytes } from "node:crypto";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { connectBare, type Bare } from "../../support/postgres/bare.ts";
import { ABANDONED } from "../../../src/store/ports/connectors/executor-calls.ts";
import { freshDatabase } from "../../support/postgres/postgres.ts";
import { TEST_MS, WAIT_MS } from "../../support/patience.ts";
import { DaemonFarm } from "../../support/servers/daemon-farm.ts";
import { startMcpServer, textResult, type McpServer } from "../../support/servers/mcp-server.ts";
import { agentToken } from "../../support/service/agent-token.ts";
import { Installation, type Json, type Life } from "../../support/service/process-service.ts";

const POLL = { timeout: WAIT_MS, interval: 100 };

const manifest = (url: string): string => `
[[connectors]]
slug = "wiki"
kind = "mcp"
url = "${url}"
[[connectors.tools]]
match = "publish"
policy = "ask"
[[connectors.tools]]
match = "*"
policy = "allow"
`;

describe("an agent's call", () => {
  const scope = Effect.runSync(Scope.make());
  let database: Bare;
  let settings: Readonly<Record<string, string>>;
  let server: McpServer;
  let farm: DaemonFarm;
  /** It has the project, the session and its sandbox, and lives on. */
  let home: Installation;
  let life: Life;
  /** Its service is killed. */
  let away: Installation;
  let other: Life;
  let project = "";
  let token = "";

  beforeAll(async () => {
    const url = await Effect.runPromise(Scope.provide(freshDatabase("migrated"), scope));
    database = await connectBare(url);
    server = await startMcpServer(
      ["read", "write", "publish"].map((name) => ({ name, description: `Can ${name} a page.` })),
    );
    [home, away] = [await Installation.open(), await Installation.open()];
    farm = await DaemonFarm.start(home.directory);
    settings = {
      ...farm.settings,
      DATABASE_URL: url,
      PLATFORM_MASTER_KEY: randomBytes(32).toString("hex"),
      PLATFORM_CONNECTOR_ALLOW_HOSTS: "127.0.0.1",
    };
    life = await home.start(settings);
    project = await life.project(await home.repository(manifest(server.url)));
    const catalogue = `/v1/projects/${project}/connectors/wiki/catalogue`;
    const { pin } = await life.call("POST", catalogue, { action: "refresh" });
    await life.call("POST", catalogue, { action: "accept", pin });
    const { id } = await life.call("POST", `/v1/projects/${project}/sessions`, {});
    await life.session(project, String(id), ["running"]);
    token = await agentToken(url, String(id));
  }, TEST_MS);
  beforeEach(async () => {
    server.calls.length = 0;
    server.answers.clear();
    // A test that killed none leaves it running.
    await other?.end("SIGKILL");
    other = await away.start(settings);
  }, TEST_MS);
  afterAll(async () => {
    life?.signal("SIGCONT");
    await other?.end("SIGKILL");
    await life?.end("SIGTERM");
    await farm?.end();
    for (const installation of [home, away]) await installation?.close();
    await server?.close();
    await database?.end();
    await Effect.runPromise(Scope.close(scope, Exit.void));
  }, TEST_MS);

  /** Calls a tool as the agent's runtime does. @returns the text of the result. */
  const call = async (at: Life, name: string, given: Json): Promise<string> => {
    const answer = await fetch(`${at.url}/v1/projects/${project}/executor/mcp`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${token}`,
        accept: "application/json, text/event-stream",
        "content-type": "application/json",
      },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method: "tools/call",
        params: { name, arguments: given },
      }),
    });
    return answer.text();
  };
  const tool = (at: Life, name: string, page: string) =>
    call(at, "call_tool", { name: `wiki_${name}`, arguments: { page } });
  const pages = () => server.calls.map(({ tool: name, arguments: given }) => [name, (given as Json)["page"]]);
  const rows = async () =>
    ((await life.call("GET", `/v1/projects/${project}/executor/calls`))["calls"] as readonly Json[]).filter(
      (row) => server.calls.some(({ tool: name }) => name === row["tool"]),
    );
  const approvals = async () =>
    (await life.call("GET", `/v1/projects/${project}/approvals`))["approvals"] as readonly Json[];
  const waiting = async () => (await approvals()).filter(({ status }) => status === "pending");
  /** The server gets a call and never answers it. */
  const hang = (name: string) => server.answers.set(name, () => null);

  it(
    "is on record as unknown if its service is killed, is not sent again, and the next one works on the other service",
    async () => {
      hang("write");
      const lost = tool(other, "write", "one").catch(() => "the connection broke");
      await expect.poll(pages, POLL).toEqual([["write", "one"]]);
      expect(await rows()).toMatchObject([{ tool: "write", outcome: null }]);
      await other.end("SIGKILL");
      expect(await lost).toBe("the connection broke");
      expect(await tool(life, "read", "home")).toContain("read ran");
      // Six minutes go by for the row.
      await database.query("UPDATE executor_calls SET at = at - interval '6 minutes' WHERE tool = 'write'");
      const written = async () => (await rows()).find((row) => row["tool"] === "write");
      await expect.poll(written, POLL).toMatchObject({ outcome: "unknown", message: ABANDONED });
      expect(pages()).toEqual([
        ["write", "one"],
        ["read", "home"],
      ]);
    },
    TEST_MS,
  );

  it(
    "still waits for a person after its service was killed, is joined on the other service, and is made once [K11]",
    async () => {
      const lost = tool(other, "publish", "two").catch(() => "the connection broke");
      await expect.poll(approvals, POLL).toMatchObject([{ status: "pending", arguments: { page: "two" } }]);
      await other.end("SIGKILL");
      expect(await lost).toBe("the connection broke");
      const joined = tool(life, "publish", "two");
      const [{ id } = {}] = await approvals();
      const approve = () => life.call("POST", `/v1/projects/${project}/approvals/${String(id)}/approve`);
      await Promise.allSettled([approve(), approve()]);
      expect(await joined).toContain("publish ran");
      expect(pages()).toEqual([["publish", "two"]]);
      expect(await approvals()).toMatchObject([{ id, status: "done" }]);
    },
    TEST_MS,
  );

  it(
    "is made once if two people approve it at once on two services [K11]",
    async () => {
      const joined = tool(other, "publish", "twice");
      await expect.poll(waiting, POLL).toHaveLength(1);
      const [{ id } = {}] = await waiting();
      const approve = (at: Life) =>
        at.call("POST", `/v1/projects/${project}/approvals/${String(id)}/approve`);
      const decided = await Promise.allSettled([approve(life), approve(other)]);
      expect(decided.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
      expect(await joined).toContain("publish ran");
      expect(pages()).toEqual([["publish", "twice"]]);
    },
    TEST_MS,
  );

  it(
    "that was approved is unknown if its service is killed while it is made, and the agent reads that it is not made again [K14]",
    async () => {
      hang("publish");
      const joined = tool(other, "publish", "three").catch(() => "the connection broke");
      await expect.poll(waiting, POLL).toHaveLength(1);
      const [{ id } = {}] = await waiting();
      // Only the other service can make the call now.
      life.signal("SIGSTOP");
      await other.call("POST", `/v1/projects/${project}/approvals/${String(id)}/approve`);
      await expect.poll(pages, POLL).toEqual([["publish", "three"]]);
      await other.end("SIGKILL");
      life.signal("SIGCONT");
      expect(await joined).toBe("the connection broke");
      server.answers.set("publish", () => textResult("published again"));
      const state = async () => (await approvals()).find((one) => one["id"] === id)?.["status"];
      expect(await state()).toBe("calling");
      // Two minutes go by for the approval.
      await database.query("UPDATE approvals SET moved_at = moved_at - interval '2 minutes' WHERE id = $1", [
        id,
      ]);
      await expect.poll(state, POLL).toBe("unknown");
      const told = await call(life, "call_result", { id });
      expect(told).toContain("It is not called again.");
      expect(pages()).toEqual([["publish", "three"]]);
      expect((await rows())[0]).toMatchObject({ tool: "publish", outcome: "unknown" });
    },
    TEST_MS,
  );
});
