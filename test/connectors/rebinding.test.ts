/** Names that resolve to a public address when they are checked, and to a private one when they are dialled. */
import type { LookupAddress } from "node:dns";
import * as Effect from "effect/Effect";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { HttpOperation } from "../../src/domain/http-operation.ts";
import type { ServerFault, Servers, ServerTarget } from "../../src/connectors/port.ts";
import { makeServers } from "../../src/connectors/servers.ts";
import { checkedLookup, type Resolve } from "../../src/connectors/wire.ts";
import { startPetsServer, type PetsServer } from "../support/servers/pets-server.ts";

const PUBLIC = "93.184.216.34";
const HOST = "rebinds.example.org";

let server: PetsServer;
beforeAll(async () => {
  server = await startPetsServer();
});
afterAll(() => server.close());
beforeEach(() => {
  server.requests.length = 0;
});

const addressed = (addresses: readonly string[]): LookupAddress[] =>
  addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));

/** Resolves to one list after the other, and counts. */
const scripted = (...answers: readonly (readonly string[])[]) => {
  const asked: string[] = [];
  const resolve: Resolve = (host, _, found) => {
    asked.push(host);
    found(null, addressed(answers[Math.min(asked.length, answers.length) - 1] ?? []));
  };
  return { asked, resolve };
};

const dialled = (resolve: Resolve, allowHosts: readonly string[] = []) =>
  new Promise<unknown>((done) => {
    checkedLookup(new Set(allowHosts), resolve)(HOST, { all: true }, (error, found) => done(error ?? found));
  });

describe("a name of a connector", () => {
  it("is resolved once, and what was checked is what is dialled [K08]", async () => {
    const { asked, resolve } = scripted([PUBLIC], ["127.0.0.1"]);
    expect(await dialled(resolve)).toEqual(addressed([PUBLIC]));
    expect(asked).toEqual([HOST]);
  });

  it.each([
    [["127.0.0.1"]],
    [["169.254.169.254"]],
    [["::1"]],
    [["::ffff:10.0.0.1"]],
    [["64:ff9b::a9fe:a9fe"]],
    [["fd00::1"]],
    [[PUBLIC, "10.0.0.1"]],
    [[]],
  ])("that resolves to %j is not dialled [K08]", async (addresses) => {
    expect(await dialled(scripted(addresses).resolve)).toMatchObject({ code: "EPRIVATE" });
  });

  const GET: HttpOperation = { method: "GET", path: "/pets", parameters: [], body: null };
  const ways: readonly (readonly [
    string,
    (servers: Servers, at: ServerTarget) => Effect.Effect<unknown, ServerFault>,
  ])[] = [
    [
      "a call of an HTTP API",
      (servers, at) => servers.call(at, { kind: "http", request: GET, arguments: {} }),
    ],
    ["a description", (servers, at) => servers.document(at)],
    ["the list of an MCP server", (servers, at) => servers.list(at)],
    [
      "a call of an MCP server",
      (servers, at) => servers.call(at, { kind: "mcp", name: "a", inputSchema: {}, arguments: {} }),
    ],
  ];
  const asked = (allowHosts: readonly string[], resolve: Resolve, ask: (typeof ways)[number][1]) => {
    const { port } = new URL(server.origin);
    const protocol = allowHosts.length === 0 ? "https" : "http";
    const at = { url: `${protocol}://${HOST}:${port}/api`, headers: {}, protocol: "2025-11-25" };
    const made = makeServers(allowHosts, 20_000, resolve);
    return Effect.runPromise(
      Effect.scoped(Effect.flatMap(made, (servers) => Effect.result(ask(servers, at)))),
    );
  };

  it.each(ways)("that turns private reaches nothing for %s [K08]", async (_, ask) => {
    const result = await asked([], scripted([PUBLIC, "127.0.0.1"], ["127.0.0.1"]).resolve, ask);
    expect(result).toMatchObject({
      failure: { why: expect.stringContaining("has a private address"), isUnknown: false },
    });
    expect(server.requests).toEqual([]);
  });

  it.each(ways)("is resolved by the same check for %s", async (_, ask) => {
    const { asked: names, resolve } = scripted(["127.0.0.1"]);
    await asked([HOST], resolve, ask);
    expect(server.requests.length).toBeGreaterThan(0);
    expect(new Set(names)).toEqual(new Set([HOST]));
  });
});
