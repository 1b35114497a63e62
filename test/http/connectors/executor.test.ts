/** The gateway: what an agent may call, what is sent, and what is on record. The server behind it is a real one. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { textResult, type Answering } from "../../support/servers/mcp-server.ts";
import { expectStatus, stopSession } from "../../support/service/requests.ts";
import { auditRows } from "../people/audit-rows.ts";
import {
  connectorEntry,
  CREDENTIAL,
  ExecutorWorld,
  manifest,
  textOf,
  type Result,
} from "./executor-world.ts";

let world: ExecutorWorld;
beforeAll(async () => {
  world = await ExecutorWorld.start();
});
afterAll(() => world.close());
beforeEach(() => world.reset());

/** A server's answer that is an error of the protocol. */
const protocolError =
  (message: string): Answering =>
  ({ text }, response) => {
    const { id } = JSON.parse(text) as { readonly id: number };
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32_000, message } }));
    return null;
  };

/** The id of its row, which a refused call and an unknown one name. */
const idIn = (result: Result): string => /The call's id is (\S+)\.$/.exec(textOf(result))?.[1] ?? "";

describe("an agent", () => {
  it.each(["legacy", "auto"] as const)(
    "lists and calls tools without a session in the service, as a client of mode %s",
    async (mode) => {
      world.server.answers.set("read", ({ arguments: given }) => textResult(`page ${JSON.stringify(given)}`));
      await world.withClient(
        async (client) => {
          expect(client.getProtocolEra()).toBe(mode === "auto" ? "modern" : "legacy");
          const { tools } = await client.listTools();
          expect(tools.map(({ name }) => name)).toEqual([
            "call_result",
            "call_tool",
            "find_tools",
            "wiki_publish",
            "wiki_read",
          ]);
          expect(world.requests).toEqual([]);
          const { content } = await client.callTool({ name: "wiki_read", arguments: { page: 1 } });
          expect(content).toEqual([{ type: "text", text: 'page {"page":1}' }]);
        },
        { mode },
      );
    },
  );

  it("finds tools by words, and is not shown a tool that is denied", async () => {
    const found = JSON.parse(textOf(await world.call("find_tools", { query: "page" }))) as {
      readonly tools: readonly { readonly name: string; readonly note?: string }[];
    };
    expect(found.tools.map(({ name }) => name).toSorted()).toEqual([
      "wiki_publish",
      "wiki_read",
      "wiki_write",
    ]);
    expect(found.tools.find(({ name }) => name === "wiki_publish")?.note).toContain(
      "A person approves or denies",
    );
  });

  it("has on the audit record who stored and removed its credential, and who accepted its tools [T14]", async () => {
    const pid = await world.newProject();
    await world.connect(pid);
    const target = `/v1/projects/${pid}/connectors/wiki/credential`;
    expectStatus(await world.service.request("DELETE", target), 204);
    expectStatus(await world.service.request("DELETE", target), 404);
    const rows = await auditRows(world.service, `&project=${pid}`);
    const actions = ["credential_removed", "tools_accepted", "credential_set"].map(
      (each) => `connector.${each}`,
    );
    expect(rows.map(({ action }) => action)).toEqual([...actions, "project.created"]);
    expect(rows.slice(0, 3).map(({ target: slug }) => slug)).toEqual(["wiki", "wiki", "wiki"]);
    expect(JSON.stringify(rows)).not.toContain(CREDENTIAL);
  });

  it("uses a credential that it never sees, and each call has its row with the outcome", async () => {
    const { session, by, rows } = await world.freshSession();
    await world.call("call_tool", { name: "wiki_write", arguments: { text: "hello" } }, { by });
    expect(world.server.calls[0]).toMatchObject({ tool: "write", arguments: { text: "hello" } });
    expect(world.server.calls[0]?.headers.authorization).toBe(`Bearer ${CREDENTIAL}`);
    expect(world.server.calls[0]?.text).not.toContain(by);
    expect(JSON.stringify(world.server.calls[0]?.headers)).not.toContain(by);
    expect(await rows()).toEqual([
      expect.objectContaining({
        session_id: session,
        started_by: "user",
        connector: "wiki",
        tool: "write",
        rule: "*",
        origin: new URL(world.server.url).origin,
        arguments_preview: '{"text":"hello"}',
        outcome: "ok",
        message: null,
        upstream_status: 200,
      }),
    ]);
  });

  it.each([
    ["denied", "wiki_delete_all", "is denied by platform.toml", "delete_*"],
    ["not there", "wiki_nothing", "No tool has the name", null],
  ])("is refused a tool that is %s, by both names, on record", async (_, name, message, rule) => {
    const { by, rows } = await world.freshSession();
    const ids: string[] = [];
    for (const result of [
      await world.call(name, {}, { by }),
      await world.call("call_tool", { name }, { by }),
    ]) {
      expect(result.isError).toBe(true);
      expect(textOf(result)).toContain(message);
      ids.push(idIn(result));
    }
    expect(world.requests).toEqual([]);
    expect(await rows()).toEqual([
      expect.objectContaining({ outcome: "denied", rule, id: ids[1] }),
      expect.objectContaining({ outcome: "denied", rule, id: ids[0] }),
    ]);
  });

  it("has one session at the connector's server, which no other one shares, until its own session stops", async () => {
    const used = () => world.server.calls.map(({ headers }) => String(headers["mcp-session-id"]));
    const [one, two] = [await world.freshSession(), await world.freshSession()];
    for (const { by } of [one, one, two]) await world.call("wiki_read", {}, { by });
    const [first = "", second, other = ""] = used();
    expect(second).toBe(first);
    expect(other).not.toBe(first);
    await stopSession(world.service, world.pid, one.session);
    await expect.poll(() => world.server.sessions.has(first)).toBe(false);
    expect(world.server.sessions.has(other)).toBe(true);
  });

  it("gets the reason of a server that fails, in a sentence, and other connectors go on", async () => {
    const dead = await world.newProject(
      manifest(world.server.url, connectorEntry("dead", "http://127.0.0.1:9/mcp")),
    );
    await world.connect(dead);
    const { by, rows } = await world.freshSession(dead);
    expect(textOf(await world.call("dead_read", {}, { by, project: dead }))).toContain(
      "No tool has the name",
    );
    expect(textOf(await world.call("wiki_read", {}, { by, project: dead }))).toBe("read ran");
    world.server.answers.set("read", (_call, response) => {
      response.writeHead(500).end("boom");
      return null;
    });
    const failed = await world.call("wiki_read", {}, { by, project: dead });
    expect(textOf(failed)).toMatch(
      /^The connector wiki gave no result: 127\.0\.0\.1:\d+ answered with status 500: boom\.$/,
    );
    expect((await rows())[0]).toMatchObject({ outcome: "error", upstream_status: 500 });
  });

  it("is told that a call may have run when its answer was lost, and the call is not repeated", async () => {
    const { by, rows } = await world.freshSession();
    world.server.answers.set("write", (_call, response) => {
      response.destroy();
      return null;
    });
    const lost = await world.call("wiki_write", {}, { by });
    expect(textOf(lost)).toContain("The tool may have run. It is not called again.");
    expect(world.server.calls).toHaveLength(1);
    expect((await rows())[0]).toMatchObject({ outcome: "unknown", id: idIn(lost) });
  });

  it("never gets the credential from a server that echoes it, in any form [K06]", async () => {
    const forms = [
      CREDENTIAL,
      `Bearer ${CREDENTIAL}`,
      Buffer.from(`user:${CREDENTIAL}`).toString("base64"),
      Buffer.from(CREDENTIAL).toString("hex"),
      JSON.stringify({ deep: { [CREDENTIAL]: CREDENTIAL } }),
    ];
    world.server.answers.set("read", () => ({
      content: [...forms.map((text) => ({ type: "text", text })), { type: "text", text: "plain" }],
      structuredContent: { seen: [CREDENTIAL], [CREDENTIAL]: 1 },
    }));
    const { by } = await world.freshSession();
    const result = await world.withClient((client) => client.callTool({ name: "wiki_read" }), { by });
    const text = JSON.stringify(result);
    expect(text).toContain("plain");
    expect(text).not.toContain(CREDENTIAL);
    expect(text).not.toContain(Buffer.from(CREDENTIAL).toString("hex"));
    expect(text).not.toContain(Buffer.from(CREDENTIAL).toString("base64").slice(0, 20));
    world.server.answers.set("read", protocolError(`No ${CREDENTIAL}`));
    expect(textOf(await world.call("wiki_read", {}, { by }))).toContain("answered: No [redacted]");
    const everything = JSON.stringify([
      await world.calls(),
      await world.catalogueOf(world.pid),
      world.service.logs,
    ]);
    expect(everything).not.toContain(CREDENTIAL);
  });

  it("gets no part of a credential that stands where a server's error is cut [K06]", async () => {
    const { by, rows } = await world.freshSession();
    const parts = [9, 12, 16].map((length) => CREDENTIAL.slice(0, length));
    // The text that is cut begins with "answered: ".
    for (let before = 478; before <= 484; before += 1) {
      world.server.answers.set("read", protocolError(`${"x".repeat(before)}${CREDENTIAL} and more`));
      const seen = textOf(await world.call("wiki_read", {}, { by }));
      expect(seen).toContain(`answered: ${"x".repeat(before - 10)}`);
      for (const part of parts) expect(`${seen} ${JSON.stringify(await rows())}`).not.toContain(part);
    }
  });

  it("gets no more than a session may have under way", async () => {
    const { by } = await world.freshSession();
    const held: (() => void)[] = [];
    world.server.answers.set("read", ({ text }, response) => {
      const { id } = JSON.parse(text) as { readonly id: number };
      held.push(() => {
        response.writeHead(200, { "content-type": "application/json" });
        response.end(JSON.stringify({ jsonrpc: "2.0", id, result: textResult("late") }));
      });
      return null;
    });
    const eight = Array.from({ length: 8 }, () => world.call("wiki_read", {}, { by }));
    await expect.poll(() => held.length).toBe(8);
    expect(textOf(await world.call("wiki_read", {}, { by }))).toContain("This session has 8 calls under way");
    for (const answer of held) answer();
    expect((await Promise.all(eight)).map(textOf)).toEqual(Array.from({ length: 8 }, () => "late"));
  });
});
