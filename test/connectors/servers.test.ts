/** The client of MCP servers, over a small server that behaves well and badly. */
import { gzipSync } from "node:zlib";
import type { ServerResponse } from "node:http";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Result from "effect/Result";
import * as Scope from "effect/Scope";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { ServerFault, Servers, ServerTarget } from "../../src/connectors/port.ts";
import { makeServers, RESULT_MAX_BYTES } from "../../src/connectors/servers.ts";
import { startMcpServer, textResult, type Answering, type McpServer } from "../support/servers/mcp-server.ts";

/** Long enough for an answer on a busy machine, for tests of servers that do answer. */
const PATIENT_MS = 100_000;
/** A test that waits for the deadline waits this long. */
const SHORT_MS = 3000;

let server: McpServer;
let other: McpServer;
let scope: Scope.Closeable;
let servers: Servers;
beforeAll(async () => {
  server = await startMcpServer([{ name: "echo", description: "Echoes." }]);
  other = await startMcpServer([]);
  scope = Effect.runSync(Scope.make());
  servers = await Effect.runPromise(Scope.provide(makeServers(["127.0.0.1"], PATIENT_MS), scope));
});
afterAll(async () => {
  await Effect.runPromise(Scope.close(scope, Exit.void));
  await Promise.all([server.close(), other.close()]);
});
beforeEach(() => {
  server.instead = null;
  server.page = null;
  server.receive = null;
  server.revision = "2025-11-25";
  server.sessions.clear();
  server.answers.clear();
  server.calls.length = 0;
  server.requests.length = 0;
  other.requests.length = 0;
});

const target = (fields: Partial<ServerTarget> = {}): ServerTarget => ({
  url: server.url,
  headers: { authorization: "Bearer the-credential" },
  protocol: "2025-11-25",
  ...fields,
});

const CALL = {
  kind: "mcp" as const,
  owner: null,
  name: "echo",
  inputSchema: { type: "object" },
  arguments: { text: "hello" },
};

const call = (fields: Partial<ServerTarget> = {}, by: Servers = servers) =>
  Effect.runPromise(Effect.result(by.call(target(fields), CALL)));

const faultOf = async (answer: Answering): Promise<ServerFault> => {
  server.answers.set("echo", answer);
  const result = await call();
  if (Result.isSuccess(result)) throw new Error("the call succeeded");
  return result.failure;
};

/** Answers by hand. */
const raw =
  (write: (response: ServerResponse, id: unknown) => void): Answering =>
  ({ text }, response) => {
    write(response, (JSON.parse(text) as { readonly id: unknown }).id);
    return null;
  };

const message = (id: unknown, result: object): string => JSON.stringify({ jsonrpc: "2.0", id, result });

test("lists the tools of a server that keeps sessions, and says which revision it speaks", async () => {
  const listed = await Effect.runPromise(servers.list(target({ protocol: null })));
  expect(listed).toEqual({
    tools: [{ name: "echo", description: "Echoes.", inputSchema: { type: "object" } }],
    leftOut: [],
    protocol: "2025-11-25",
  });
});

const listFault = async (): Promise<string> => {
  const result = await Effect.runPromise(Effect.result(servers.list(target({ protocol: null }))));
  if (Result.isSuccess(result)) throw new Error("the list was read");
  return result.failure.why;
};

test("reads a list page by page, and leaves out and names entries that are no tools", async () => {
  const good = { name: "good", description: null, inputSchema: { type: "object" } };
  const odd = { name: "odd", inputSchema: { type: "string" } };
  server.page = (cursor) =>
    cursor === "2"
      ? { tools: [odd, { name: "bare" }, 7], nextCursor: "" }
      : { tools: [good, { name: "told", description: 3, inputSchema: {} }], nextCursor: "2" };
  const listed = await Effect.runPromise(servers.list(target({ protocol: null })));
  expect(listed.tools.map(({ name, description }) => [name, description])).toEqual([
    ["good", ""],
    ["odd", ""],
  ]);
  expect(listed.leftOut).toEqual([
    { name: "told", why: "Its description is not a text." },
    { name: "bare", why: "It has no input schema." },
    { name: "number 5", why: "This entry of the server's list has no name." },
  ]);
});

test.each([
  ["that repeats itself", () => "same", "without end"],
  ["of more pages than anyone has", (cursor: unknown) => `${Number(cursor ?? 0) + 1}`, "more than 100 pages"],
])("names a list %s", async (_, next, why) => {
  server.page = (cursor) => ({ tools: [], nextCursor: next(cursor) });
  expect(await listFault()).toContain(why);
});

test.each(["1999-01-01", "2027-01-01"])("names the revision %s, which is unknown", async (revision) => {
  server.revision = revision;
  expect(await listFault()).toBe(
    `speaks no revision of MCP that this service speaks: it speaks "${revision}"`,
  );
});

test("calls a tool once, with the credential in every request, and ends the server's session", async () => {
  server.answers.set("echo", ({ arguments: given }) => textResult(JSON.stringify(given)));
  expect(await call()).toEqual(
    Result.succeed({ content: [{ type: "text", text: '{"text":"hello"}' }], isError: false, status: 200 }),
  );
  expect(server.calls.map(({ headers }) => headers.authorization)).toEqual(["Bearer the-credential"]);
  expect(server.requests.filter((line) => line.startsWith("POST"))).toEqual([
    "POST initialize",
    "POST notifications/initialized",
    "POST tools/call",
  ]);
  await expect.poll(() => server.sessions.size).toBe(0);
});

test("reads a result from a stream of events", async () => {
  server.answers.set(
    "echo",
    raw((response, id) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(`event: message\ndata: ${message(id, textResult("streamed"))}\n\n`);
    }),
  );
  expect(await call()).toMatchObject({ success: { content: [{ type: "text", text: "streamed" }] } });
});

test.each([
  ["a ping", "ping", (response: ServerResponse) => response.writeHead(202).end()],
  [
    "a request for a sample",
    "sampling/createMessage",
    (response: ServerResponse) => response.writeHead(404).end(),
  ],
  ["a question for a person", "elicitation/create", (response: ServerResponse) => response.destroy()],
])("waits for the result while the server sends %s of its own", async (_, method, receive) => {
  let finish: (() => void) | null = null;
  server.answers.set(
    "echo",
    raw((response, id) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(`data: ${JSON.stringify({ jsonrpc: "2.0", id: "srv-9", method, params: {} })}\n\n`);
      finish = () => response.end(`data: ${message(id, textResult("after it"))}\n\n`);
    }),
  );
  server.receive = (response) => {
    receive(response);
    finish?.();
  };
  expect(await call()).toMatchObject({
    success: { content: [{ type: "text", text: "after it" }], status: 200 },
  });
});

test.each([
  ["closes the connection", raw((response) => response.destroy()), "closed the connection"],
  [
    "ends its stream without a result",
    raw((response) => response.writeHead(200, { "content-type": "text/event-stream" }).end(": nothing\n\n")),
    "closed the connection without a result",
  ],
  [
    "breaks off its stream",
    raw((response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(": nothing\n\n", () => response.destroy());
    }),
    "closed the connection",
  ],
  [
    "answers 504 for another server",
    raw((response) => response.writeHead(504).end()),
    "answered with status 504",
  ],
  [
    "answers with a page",
    raw((response) => response.writeHead(200, { "content-type": "text/html" }).end("<p>")),
    "answered with something that is not MCP",
  ],
])("says that the tool may have run when the server %s, and calls it once", async (_, answer, why) => {
  expect(await faultOf(answer)).toMatchObject({ why, isUnknown: true });
  expect(server.calls).toHaveLength(1);
});

test.each([
  ["500", raw((response) => response.writeHead(500).end("boom")), "answered with status 500"],
  [
    "401",
    raw((response) => response.writeHead(401).end()),
    "answered with status 401. Its credential may be wrong",
  ],
  [
    "an error of the protocol",
    raw((response, id) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32_602, message: "No text." } }));
    }),
    "answered: No text.",
  ],
])("says why when the server answers with %s", async (_, answer, why) => {
  const fault = await faultOf(answer);
  expect(fault.isUnknown).toBe(false);
  expect(fault.why).toContain(why);
});

test("ends a call at its deadline, and says that the tool may have run", async () => {
  const run = Effect.scoped(
    Effect.flatMap(makeServers(["127.0.0.1"], SHORT_MS), (short) =>
      Effect.result(short.call(target(), CALL)),
    ),
  );
  server.answers.set("echo", () => null);
  expect(await Effect.runPromise(run)).toMatchObject({
    failure: { why: "did not answer within 3 s", isUnknown: true },
  });
  server.instead = () => undefined;
  expect(await Effect.runPromise(run)).toMatchObject({ failure: { isUnknown: false } });
  expect(server.calls).toHaveLength(1);
});

test.each([
  ["plain", (body: Buffer) => body, {}],
  ["compressed", (body: Buffer) => gzipSync(body), { "content-encoding": "gzip" }],
])("refuses a %s answer that is too large [K07]", async (_, packed, headers) => {
  // Compressed, 64 MiB of zeros are 64 KiB.
  const body = packed(Buffer.alloc(64 * 1024 * 1024));
  const fault = await faultOf(
    raw((response) => response.writeHead(200, { "content-type": "application/json", ...headers }).end(body)),
  );
  expect(fault).toMatchObject({
    why: `answered with more than ${RESULT_MAX_BYTES} bytes`,
    isUnknown: true,
  });
});

test("refuses an endless stream [K07]", async () => {
  const fault = await faultOf(
    raw((response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      const more = (): void => {
        while (!response.destroyed && response.write(`: ${"x".repeat(8192)}\n\n`));
      };
      response.on("drain", more);
      more();
    }),
  );
  expect(fault.why).toBe(`answered with more than ${RESULT_MAX_BYTES} bytes`);
});

test.each([301, 302, 303, 307, 308])(
  "sends nothing to another origin after a redirect with status %i [K08]",
  async (status) => {
    const fault = await faultOf(raw((response) => response.writeHead(status, { location: other.url }).end()));
    expect(fault).toMatchObject({ isUnknown: false, status });
    expect(other.requests).toEqual([]);
  },
);

test.each([
  ["https://169.254.169.254/latest", "has a private address"],
  ["http://example.com/", "is not reached, because its URL is not https"],
])("does not connect to %s [K08]", async (url, why) => {
  const result = await call({ url });
  if (Result.isSuccess(result)) throw new Error("the call succeeded");
  expect(result.failure.why).toContain(why);
  expect(result.failure.isUnknown).toBe(false);
});

test("does not connect to a private host that the operator does not allow", async () => {
  const strict = Effect.scoped(
    Effect.flatMap(makeServers([], PATIENT_MS), (none) => Effect.result(none.call(target(), CALL))),
  );
  expect(await Effect.runPromise(strict)).toMatchObject({ failure: { isUnknown: false } });
  expect(server.requests).toEqual([]);
});
