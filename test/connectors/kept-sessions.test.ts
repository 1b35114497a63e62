/** Sessions at MCP servers that are kept for sessions of ours, over a small server that keeps sessions. */
import type { ServerResponse } from "node:http";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Result from "effect/Result";
import * as Scope from "effect/Scope";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { KeptSessions } from "../../src/connectors/kept-sessions.ts";
import type { Servers, ServerTarget, SessionOwner } from "../../src/connectors/port.ts";
import { makeServers } from "../../src/connectors/servers.ts";
import {
  startMcpServer,
  textResult,
  type McpServer,
  type ReceivedCall,
} from "../support/servers/mcp-server.ts";

/** Long enough for an answer on a busy machine. */
const PATIENT_MS = 100_000;

let server: McpServer;
let scope: Scope.Closeable;
let servers: Servers;
/** What each session of the server remembers. */
const counts = new Map<string, number>();
const sessionOf = ({ headers }: ReceivedCall): string => String(headers["mcp-session-id"]);
const count = (call: ReceivedCall) => {
  const next = (counts.get(sessionOf(call)) ?? 0) + 1;
  counts.set(sessionOf(call), next);
  return textResult(String(next));
};
const answerTo = (call: ReceivedCall, response: ServerResponse, text: string): void => {
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify({ jsonrpc: "2.0", id: numberOf(call), result: textResult(text) }));
};
const numberOf = ({ text }: ReceivedCall): unknown => (JSON.parse(text) as { readonly id: unknown }).id;

beforeAll(async () => {
  server = await startMcpServer([{ name: "count", description: "Counts its calls." }]);
});
afterAll(() => server.close());
beforeEach(async () => {
  server.instead = null;
  server.guard = null;
  server.keepsSessions = true;
  server.sessions.clear();
  server.calls.length = 0;
  server.requests.length = 0;
  server.answers.set("count", count);
  scope = Effect.runSync(Scope.make());
  servers = await Effect.runPromise(Scope.provide(makeServers(["127.0.0.1"], PATIENT_MS), scope));
  return () => Effect.runPromise(Scope.close(scope, Exit.void));
});

const ownerOf = (sessionId: string, stand = "here"): SessionOwner => ({
  projectId: "project",
  sessionId,
  userId: "person",
  slug: "counter",
  stand,
});

const effectOf = (owner: SessionOwner | null, fields: Partial<ServerTarget> = {}) =>
  servers.call(
    { url: server.url, headers: { authorization: "Bearer first" }, protocol: "2025-11-25", ...fields },
    { kind: "mcp", owner, name: "count", inputSchema: { type: "object" }, arguments: {} },
  );

/** Calls for a session of ours. @returns the text of the result, or why the call failed */
const call = async (owner: SessionOwner | null, fields: Partial<ServerTarget> = {}): Promise<string> => {
  const result = await Effect.runPromise(Effect.result(effectOf(owner, fields)));
  if (Result.isFailure(result)) return result.failure.why;
  return (result.success.content as readonly { readonly text: string }[]).map(({ text }) => text).join("");
};

const said = (method: string): number => server.requests.filter((line) => line === method).length;

test("gives each session of ours one session at the server, which remembers", async () => {
  expect([await call(ownerOf("a")), await call(ownerOf("a"))]).toEqual(["1", "2"]);
  expect(server.requests).toEqual([
    "POST initialize",
    "POST notifications/initialized",
    "POST tools/call",
    "POST tools/call",
  ]);
  expect(server.calls.map(({ headers }) => headers["mcp-protocol-version"])).toEqual([
    "2025-11-25",
    "2025-11-25",
  ]);
  expect([await call(ownerOf("b")), await call(ownerOf("a"))]).toEqual(["1", "3"]);
  expect(server.sessions.size).toBe(2);
  // A call for no session has one of its own, and ends it.
  expect(await call(null)).toBe("1");
  await expect.poll(() => server.sessions.size).toBe(2);
});

test("makes one handshake for two first calls, and gives each answer to its own call", async () => {
  const waiting: (() => void)[] = [];
  server.answers.set("count", (received, response) => {
    const { arguments: given } = received;
    waiting.push(() => {
      answerTo(received, response, JSON.stringify(given));
    });
    return null;
  });
  const called = ["x", "y"].map((which) => {
    const wanted = {
      kind: "mcp",
      owner: ownerOf("a"),
      name: "count",
      inputSchema: {},
      arguments: { which },
    } as const;
    const target = { url: server.url, headers: {}, protocol: "2025-11-25" };
    return Effect.runPromise(servers.call(target, wanted));
  });
  await expect.poll(() => waiting.length).toBe(2);
  expect(new Set(server.calls.map(numberOf)).size).toBe(2);
  for (const answer of waiting.toReversed()) answer();
  expect(await Promise.all(called)).toMatchObject(
    ["x", "y"].map((which) => ({ content: [{ text: JSON.stringify({ which }) }] })),
  );
  expect(said("POST initialize")).toBe(1);
});

test("begins anew once when the server does not have the session any more", async () => {
  await call(ownerOf("a"));
  server.sessions.clear();
  expect(await call(ownerOf("a"))).toBe("1");
  expect(server.calls).toHaveLength(2);
  // A server that never has it.
  server.requests.length = 0;
  server.guard = (request, response) => {
    if (request.headers["mcp-session-id"] === undefined) return false;
    response.writeHead(404).end();
    return true;
  };
  expect(await call(ownerOf("a"))).toBe("answered with status 404");
  expect(said("POST initialize")).toBe(1);
});

test("repeats no call that is refused in another way, and begins anew with the next one", async () => {
  await call(ownerOf("a"));
  server.guard = (request, response) => {
    if (request.method !== "POST") return false;
    const error = { code: -32_000, message: "Bad Request: No valid session ID provided" };
    response.writeHead(400, { "content-type": "application/json" });
    response.end(JSON.stringify({ jsonrpc: "2.0", id: null, error }));
    return true;
  };
  expect(await call(ownerOf("a"))).toBe(
    "answered with status 400: Bad Request: No valid session ID provided",
  );
  server.guard = null;
  expect(await call(ownerOf("a"))).toBe("1");
  expect([said("POST initialize"), server.calls.length]).toEqual([2, 2]);
});

test.each([
  [
    "an error of the protocol",
    JSON.stringify({ jsonrpc: "2.0", error: { code: -1, message: "One session only." } }),
  ],
  ["an error of an API", JSON.stringify({ error: "One session only." })],
  ["a line of text", "One session only.\n"],
])("says %s with which a server refuses a second session", async (_, body) => {
  server.instead = (_request, response) => void response.writeHead(409).end(body);
  expect(await call(ownerOf("a"))).toBe("answered with status 409: One session only");
  // The next call tries again.
  server.instead = null;
  expect(await call(ownerOf("a"))).toBe("1");
});

test("calls a server that keeps no sessions as before", async () => {
  server.keepsSessions = false;
  for (const _ of [1, 2]) await call(ownerOf("a"));
  server.requests.length = 0;
  await call(ownerOf("a"));
  expect(server.requests).toEqual(["POST initialize", "POST notifications/initialized", "POST tools/call"]);
});

test("keeps no session of a revision without a handshake", async () => {
  server.keepsSessions = false;
  let discovered = 0;
  server.guard = async (request, response) => {
    if (request.headers["mcp-method"] !== "server/discover") return false;
    discovered += 1;
    const { id } = JSON.parse(await new Response(request as unknown as ReadableStream).text()) as {
      id: unknown;
    };
    const about = { resultType: "complete", ttlMs: 0, cacheScope: "private", capabilities: { tools: {} } };
    const result = { ...about, supportedVersions: ["2026-07-28"] };
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ jsonrpc: "2.0", id, result }));
    return true;
  };
  server.answers.set("count", () => ({ ...textResult("without one"), resultType: "complete" }));
  expect(await call(ownerOf("a"), { protocol: "2026-07-28" })).toBe("without one");
  expect([discovered, servers.sessions?.list()]).toEqual([1, []]);
});

test("never shares a session with another credential, and ends the former one with its own", async () => {
  const ends: unknown[] = [];
  server.guard = ({ method, headers }) => {
    if (method === "DELETE") ends.push([headers["mcp-session-id"], headers.authorization]);
    return false;
  };
  await call(ownerOf("a"));
  // A renewed token is the same credential.
  await call(ownerOf("a"), { headers: { authorization: "Bearer renewed" } });
  expect(await call(ownerOf("a", "elsewhere"), { headers: { authorization: "Bearer other" } })).toBe("1");
  await expect.poll(() => ends).toEqual([[sessionOf(server.calls[1] as ReceivedCall), "Bearer renewed"]]);
  expect(server.sessions.size).toBe(1);
});

test("ends a session at the server after its last call, and all when the service stops", async () => {
  const begun = Deferred.makeUnsafe<void>();
  let answer: (() => void) | null = null;
  server.answers.set("count", (received, response) => {
    answer = () => answerTo(received, response, "late");
    Deferred.doneUnsafe(begun, Effect.void);
    return null;
  });
  const calling = call(ownerOf("a"));
  await Effect.runPromise(Deferred.await(begun));
  expect(servers.sessions?.list()).toEqual([{ owner: ownerOf("a"), idleSince: null }]);
  await Effect.runPromise(servers.sessions?.end([ownerOf("a")]) ?? Effect.void);
  expect([servers.sessions?.list(), server.sessions.size]).toEqual([[], 1]);
  (answer as (() => void) | null)?.();
  expect(await calling).toBe("late");
  await expect.poll(() => server.sessions.size).toBe(0);

  server.answers.set("count", count);
  await call(ownerOf("b"));
  expect(servers.sessions?.list()).toEqual([
    { owner: ownerOf("b"), idleSince: expect.any(Number) as number },
  ]);
  await Effect.runPromise(Scope.close(scope, Exit.void));
  expect(server.sessions.size).toBe(0);
});

test("tells the server of a call that was given up, and keeps the session", async () => {
  await call(ownerOf("a"));
  const cancelled: unknown[] = [];
  server.guard = async (request, response) => {
    const text = await new Response(request as unknown as ReadableStream).text();
    const { method, params } = JSON.parse(text) as { readonly method: string; readonly params: object };
    if (method === "notifications/cancelled") cancelled.push(params);
    if (method === "tools/call") stop.abort();
    else response.writeHead(202).end();
    return true;
  };
  const stop = new AbortController();
  await Effect.runPromiseExit(effectOf(ownerOf("a")), { signal: stop.signal });
  const first = numberOf(server.calls[0] as ReceivedCall) as number;
  await expect.poll(() => cancelled).toMatchObject([{ requestId: expect.any(Number) as number }]);
  expect((cancelled[0] as { readonly requestId: number }).requestId).toBeGreaterThan(first);
  server.guard = null;
  expect(await call(ownerOf("a"))).toBe("2");
});

test("ends the session that was used longest ago when there is no room for another one", async () => {
  const ended: string[] = [];
  const kept = new KeptSessions(
    {
      begin: ({ url }) => Promise.resolve({ id: url, protocol: "2025-11-25" }),
      end: (_, { id }) => Promise.resolve(void ended.push(id)),
    },
    2,
  );
  const use = (name: string): void =>
    kept.release(kept.take({ url: name, headers: {}, protocol: null }, ownerOf(name), 1), 2);
  for (const name of ["a", "b", "a", "c"]) use(name);
  await expect.poll(() => ended).toEqual(["b"]);
  expect(kept.list().map(({ owner }) => owner.sessionId)).toEqual(["a", "c"]);
});
