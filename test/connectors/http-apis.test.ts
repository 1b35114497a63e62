/** Calls of HTTP APIs, over a real server that behaves well and badly. */
import type { ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Result from "effect/Result";
import * as Scope from "effect/Scope";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { HttpOperation } from "../../src/domain/connector/http-operation.ts";
import type { ServerFault, Servers, ServerTarget, ToolResult } from "../../src/connectors/port.ts";
import { makeServers, RESULT_MAX_BYTES } from "../../src/connectors/servers.ts";
import { json, startPetsServer, type PetsServer } from "../support/servers/pets-server.ts";

/** Long enough for an answer on a busy machine, for tests of servers that do answer. */
const PATIENT_MS = 100_000;
/** A test that waits for the deadline waits this long. */
const SHORT_MS = 3000;

let server: PetsServer;
let other: PetsServer;
let scope: Scope.Closeable;
let servers: Servers;
beforeAll(async () => {
  server = await startPetsServer();
  other = await startPetsServer();
  scope = Effect.runSync(Scope.make());
  servers = await Effect.runPromise(Scope.provide(makeServers(["127.0.0.1"], PATIENT_MS), scope));
});
afterAll(async () => {
  await Effect.runPromise(Scope.close(scope, Exit.void));
  await Promise.all([server.close(), other.close()]);
});
beforeEach(() => {
  server.answer = null;
  server.requests.length = 0;
  other.requests.length = 0;
});

const ID = { argument: "id", name: "id", in: "path", style: "plain", required: true } as const;
const GET: HttpOperation = { method: "GET", path: "/pets/{id}", parameters: [ID], body: null };
const POST: HttpOperation = {
  method: "POST",
  path: "/pets",
  parameters: [],
  body: { type: "application/json", encoding: "json", argument: "body", required: true },
};

const target = (fields: Partial<ServerTarget> = {}): ServerTarget => ({
  url: server.url,
  headers: { authorization: "Bearer the-credential" },
  protocol: null,
  ...fields,
});

const call = (request: HttpOperation, given: object, fields: Partial<ServerTarget> = {}, by = servers) =>
  Effect.runPromise(
    Effect.result(
      by.call(target(fields), { kind: "http", request, arguments: given as Record<string, unknown> }),
    ),
  );

type Write = (response: ServerResponse) => unknown;

const answered = async (write: Write, request = GET): Promise<ToolResult> => {
  server.answer = (_, response) => void write(response);
  const result = await call(request, request === GET ? { id: 1 } : { body: {} });
  if (Result.isFailure(result)) throw new Error(result.failure.why);
  return result.success;
};

const faultOf = async (write: Write, request = GET): Promise<ServerFault> => {
  server.answer = (_, response) => void write(response);
  const result = await call(request, request === GET ? { id: 1 } : { body: {} });
  if (Result.isSuccess(result)) throw new Error(JSON.stringify(result.success));
  return result.failure;
};

test("sends one request with the credential, and passes JSON on as text and as structure", async () => {
  expect(await call(GET, { id: 1 })).toEqual(
    Result.succeed({
      content: [{ type: "text", text: '{"id":1,"name":"Tom","kind":"cat"}' }],
      structuredContent: { id: 1, name: "Tom", kind: "cat" },
      isError: false,
      status: 200,
    }),
  );
  expect(await call(POST, { body: { name: "Kit" } })).toMatchObject({ success: { status: 201 } });
  expect(server.requests).toMatchObject([
    { method: "GET", target: "/api/pets/1", headers: { authorization: "Bearer the-credential" }, body: "" },
    {
      method: "POST",
      target: "/api/pets",
      headers: {
        "content-type": "application/json",
        "accept-encoding": "identity",
        "user-agent": "platform",
      },
      body: '{"name":"Kit"}',
    },
  ]);
});

test.each([
  ["a list", "application/json", "[1]", "[1]"],
  ["JSON that is none", "application/json", "{", "{"],
  ["text in another charset", "text/plain; charset=iso-8859-1", Buffer.from([0xe9]), "é"],
  ["text of an unknown charset", "text/plain; charset=none", "a", "a"],
  ["a text without a type", "", "plain", "plain"],
  [
    "a picture",
    "image/png",
    "x".repeat(12),
    "The server answered with 12 bytes of image/png, which are not passed on.",
  ],
  [
    "bytes without a type",
    "",
    Buffer.from([0xff, 0]),
    "The server answered with 2 bytes of an unknown type, which are not passed on.",
  ],
])("passes %s on as a text alone", async (_, type, body, text) => {
  const result = await answered((response) =>
    response.writeHead(200, type === "" ? {} : { "content-type": type }).end(body),
  );
  expect(result).toEqual({ content: [{ type: "text", text }], isError: false, status: 200 });
});

test("says that an answer is empty", async () => {
  const result = await answered((response) => response.writeHead(204).end());
  expect(result.content).toEqual([
    { type: "text", text: "The server answered with status 204 and nothing else." },
  ]);
});

test("passes on JSON that is too deep for a structure as a text", async () => {
  const deep = `${'{"a":'.repeat(100)}1${"}".repeat(100)}`;
  const result = await answered((response) =>
    response.writeHead(200, { "content-type": "application/json" }).end(deep),
  );
  expect(result).toEqual({ content: [{ type: "text", text: deep }], isError: false, status: 200 });
});

test("makes an error of an error's status, with the body", async () => {
  const result = await answered((response) => json(response, { error: "There is no pet." }, 404));
  expect(result).toEqual({
    content: [
      {
        type: "text",
        text: 'The server answered with status 404. Its answer begins:\n{"error":"There is no pet."}',
      },
    ],
    isError: true,
    status: 404,
  });
});

test("reads the beginning of an error's endless body", async () => {
  const result = await answered((response) => {
    response.writeHead(500, { "content-type": "text/plain" });
    const more = (): void => {
      while (!response.destroyed && response.write("x".repeat(8192)));
    };
    response.on("drain", more);
    more();
  });
  expect(result.status).toBe(500);
  expect(JSON.stringify(result.content).length).toBeLessThan(70_000);
});

test.each([
  ["closes the connection", (response: ServerResponse) => response.destroy(), "closed the connection", null],
  [
    "breaks off its answer",
    (response: ServerResponse) => {
      response.writeHead(200, { "content-type": "text/plain", "content-length": "9" });
      response.write("x", () => response.destroy());
    },
    "closed the connection",
    200,
  ],
  [
    "answers 504 for another server",
    (response: ServerResponse) => response.writeHead(504).end("late"),
    "answered with status 504. It says: late",
    504,
  ],
  [
    "redirects after a POST",
    (response: ServerResponse) => response.writeHead(303, { location: "/api/pets/3" }).end(),
    "redirects (status 303), which is not followed",
    303,
  ],
])("says that the tool may have run when the server %s, and calls it once", async (_, write, why, status) => {
  expect(await faultOf(write, POST)).toEqual({ _tag: "ServerFault", why, isUnknown: true, status });
  expect(server.requests).toHaveLength(1);
});

test("says that a call with a wrong credential did nothing", async () => {
  expect(await faultOf((response) => response.writeHead(401).end("no"), POST)).toMatchObject({
    why: "answered with status 401. Its credential may be wrong. It says: no",
    isUnknown: false,
    status: 401,
  });
});

test("sends a request once that a server does not want to serve at this host", async () => {
  await faultOf((response) => response.writeHead(421).end(), POST);
  expect(server.requests).toHaveLength(1);
});

test("ends a call at its deadline, also in the middle of an answer, and says that the tool may have run", async () => {
  const run = Effect.scoped(
    Effect.flatMap(makeServers(["127.0.0.1"], SHORT_MS), (short) =>
      Effect.promise(() => call(POST, { body: 1 }, {}, short)),
    ),
  );
  server.answer = () => undefined;
  const late = { failure: { why: "did not answer within 3 s", isUnknown: true } };
  expect(await Effect.runPromise(run)).toMatchObject(late);
  server.answer = (_, response) => void response.writeHead(200, { "content-type": "text/plain" }).write("x");
  expect(await Effect.runPromise(run)).toMatchObject(late);
  expect(server.requests).toHaveLength(2);
});

test.each([
  ["plain", (body: Buffer) => body, {}],
  ["compressed", (body: Buffer) => gzipSync(body), { "content-encoding": "gzip" }],
])("refuses a %s answer that is too large [K07]", async (_, packed, headers) => {
  const body = packed(Buffer.alloc(64 * 1024 * 1024));
  const fault = await faultOf((response) =>
    response.writeHead(200, { "content-type": "text/plain", ...headers }).end(body),
  );
  expect(fault).toMatchObject({
    why: `answered with more than ${RESULT_MAX_BYTES} bytes`,
    isUnknown: true,
  });
});

test("decodes an answer that is compressed although it must not be", async () => {
  const headers = { "content-type": "application/json", "content-encoding": "gzip" };
  const result = await answered((response) => response.writeHead(200, headers).end(gzipSync('{"a":1}')));
  expect(result.structuredContent).toEqual({ a: 1 });
});

test.each([301, 302, 303, 307, 308])(
  "sends nothing to another place after a redirect with status %i [K08]",
  async (status) => {
    const fault = await faultOf((response) => response.writeHead(status, { location: other.url }).end());
    expect(fault).toMatchObject({ isUnknown: false, status });
    expect([server.requests.length, other.requests.length]).toEqual([1, 0]);
  },
);

test.each([
  ["https://169.254.169.254/latest", "has a private address"],
  ["http://example.com/", "is not reached, because its URL is not https"],
])("does not connect to %s for a call or a description [K08]", async (url, why) => {
  const fault = { failure: { why: expect.stringContaining(why), isUnknown: false } };
  expect(await call(GET, { id: 1 }, { url })).toMatchObject(fault);
  expect(await Effect.runPromise(Effect.result(servers.document(target({ url }))))).toMatchObject(fault);
});

test("sends nothing for arguments that leave the template, or that the connector sets itself [K18]", async () => {
  const query = { ...ID, in: "query", name: "key", argument: "key" } as const;
  const withKey = { url: `${server.url}?key=the-credential` };
  for (const result of [
    await call(GET, { id: "../owners" }),
    await call({ ...GET, parameters: [ID, query] }, { id: 1, key: "mine" }, withKey),
  ])
    expect(result).toMatchObject({
      failure: { why: expect.stringContaining("was not asked."), isUnknown: false },
    });
  expect(server.requests).toEqual([]);
});

test("fetches a description, and no more than 4 MiB of it", async () => {
  const url = `${server.origin}/openapi.yaml`;
  const fetched = () => Effect.runPromise(Effect.result(servers.document(target({ url }))));
  expect(await fetched()).toEqual(Result.succeed(server.description));
  expect(server.requests[0]?.headers.authorization).toBe("Bearer the-credential");
  for (const [write, why] of [
    [(response) => response.writeHead(403).end(), "answered with status 403 for its description"],
    [(response) => response.writeHead(302, { location: other.origin }).end(), "redirects (status 302)"],
    [(response) => response.end(Buffer.alloc(5 * 1024 * 1024)), "answered with more than 4194304 bytes"],
  ] satisfies readonly (readonly [Write, string])[]) {
    server.answer = (_, response) => void write(response);
    expect(await fetched()).toMatchObject({ failure: { why: expect.stringContaining(why) } });
  }
  expect(other.requests).toEqual([]);
});
