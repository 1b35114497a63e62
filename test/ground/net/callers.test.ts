/**
 * Where everything dials that dials hosts which others may have named: addresses × callers. The rules of each caller's own
 * URLs are beside it.
 */
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as Effect from "effect/Effect";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeAsk } from "../../../src/connectors/asking.ts";
import { makeServers } from "../../../src/connectors/servers.ts";
import { clientOptions } from "../../../src/connectors/wire.ts";
import { NetClient } from "../../../src/ground/net/client.ts";
import type { Network } from "../../../src/ground/net/dial.ts";
import { makeWire } from "../../../src/git/github/wire.ts";
import { checkRemote, checkSource } from "../../../src/git/upstream/source.ts";
import { makeSender } from "../../../src/features/notifications/sender.ts";
import { openEgress } from "../../../src/sandbox/egress.ts";
import { publicRegistries } from "../../../src/sandbox/images/registry/lookup.ts";
import { registryClient } from "../../../src/sandbox/packages/upstream.ts";
import { NetworkDouble } from "../../support/network.ts";

const [V6, V4] = ["2606:4700::1111", "93.184.216.34"];
/** The host that the operator's lists have. */
const INSIDE = "inside.example.org";

interface Case {
  readonly host: string;
  /** Answers of the resolver, one after the other. */
  readonly answers: readonly (readonly string[])[];
  /** Addresses in the order in which they are dialled. */
  readonly dialled: readonly string[];
  readonly says: RegExp;
}

const PRIVATE = /private/;
const literal = (host: string): Case => ({ host, answers: [], dialled: [], says: PRIVATE });
const named = (addresses: readonly string[]): Case => ({
  host: "name.example.org",
  answers: [addresses],
  dialled: [],
  says: new RegExp(`has a private address \\(${addresses.at(-1)?.replaceAll(".", "\\.")}\\)`),
});
const REFUSED: readonly Case[] = [
  ...[
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f.1",
    "0177.0.0.1",
    "0",
    "0.0.0.0",
    "10.0.0.5",
    "127.0.0.1.",
  ].map(literal),
  ...["169.254.169.254", "[::]", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:a9fe:a9fe]"].map(
    literal,
  ),
  ...["[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[fd00:ec2::254]", "[fe80::1]"].map(literal),
  named(["127.0.0.1"]),
  named(["0.0.0.0"]),
  named(["169.254.169.254"]),
  named([V4, "10.0.0.1"]),
  named([V6, V4, "::1"]),
  named(["::ffff:10.0.0.1"]),
  named(["64:ff9b::a9fe:a9fe"]),
  named(["fe80::1%eth0"]),
  { ...named(["10.0.0.1"]), host: "name.example.org." },
  { host: "none.example.org", answers: [[]], dialled: [], says: / cannot be resolved/ },
  { host: "none.example.org", answers: [], dialled: [], says: / cannot be resolved/ },
];
const DIALLED: readonly Case[] = [
  {
    host: "rebinds.example.org",
    answers: [[V4], ["127.0.0.1"]],
    dialled: [V4],
    says: /93\.184\.216\.34|^$/,
  },
  {
    host: "two.example.org",
    answers: [[V6, V4]],
    dialled: [V6, V4],
    says: / cannot be reached \(\[2606:4700::1111\]:\d+ refuses connections, 93\.184\.216\.34:\d+ refuses/,
  },
];
const LISTED: readonly Case[] = [
  { host: INSIDE, answers: [["fd00::1", "10.0.0.1"]], dialled: ["fd00::1", "10.0.0.1"], says: /10\.0\.0\.1/ },
  {
    host: "Inside.Example.Org.",
    answers: [["10.0.0.1", V4]],
    dialled: ["10.0.0.1", V4],
    says: /10\.0\.0\.1/,
  },
];
const UNLISTED: readonly Case[] = [
  { ...named(["10.0.0.1"]), host: `x.${INSIDE}`, says: / has a private address \(10\.0\.0\.1\)/ },
];

interface Caller {
  readonly name: string;
  readonly hasList: boolean;
  /** What it says. Each host refuses connections. */
  readonly reach: (host: string, network: Network, allowHosts: readonly string[]) => Promise<string>;
}

const failure = async (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "",
    (error: unknown) => String(error instanceof Error ? error.message : error),
  );
/** Faults of adapters are sentences that begin with the host. */
const why = (host: string, result: { readonly failure?: { readonly why: string } }): string =>
  `${host} ${result.failure?.why ?? ""}`;

let directory = "";
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "platform-callers-"));
});
afterAll(() => rm(directory, { recursive: true }));

const throughEgress = async (
  network: Network,
  options: { method: string; path: string },
): Promise<string> => {
  const socketPath = join(directory, "egress.sock");
  const policy = { allow: ["*"], secretNames: [], serviceUrl: null, llmUpstream: null };
  const egress = await openEgress(socketPath, { policy, network });
  const outgoing = request({ socketPath, ...options });
  outgoing.end();
  const isTunnel = options.method === "CONNECT";
  const [incoming, socket, head] = (await once(outgoing, isTunnel ? "connect" : "response")) as [
    IncomingMessage,
    AsyncIterable<Buffer>,
    Buffer,
  ];
  let body = isTunnel ? head.toString() : "";
  for await (const chunk of isTunnel ? socket : incoming) body += String(chunk);
  egress.close();
  return (JSON.parse(body) as { error: string }).error;
};

const server = (host: string) => ({ url: `https://${host}/api`, headers: {}, protocol: "2025-11-25" });
const OPERATION = { method: "GET", path: "/pets", parameters: [], body: null } as const;
const HEADERS = { headers: {} };

const CALLERS: readonly Caller[] = [
  {
    name: "a sandbox's request",
    hasList: false,
    reach: (host, network) => throughEgress(network, { method: "GET", path: `http://${host}/` }),
  },
  {
    name: "a sandbox's tunnel",
    hasList: false,
    reach: (host, network) => throughEgress(network, { method: "CONNECT", path: `${host}:443` }),
  },
  {
    name: "the package proxy",
    hasList: true,
    reach: async (host, network, allowHosts) => {
      const client = registryClient({ allowHosts, network });
      const said = await failure(client.request({ url: new URL(`https://${host}/ms`), ...HEADERS }));
      await client.close();
      return said;
    },
  },
  {
    name: "a look at a base image",
    hasList: false,
    reach: (host, network) =>
      failure(publicRegistries(network)({ url: new URL(`https://${host}/v2/`), ...HEADERS })),
  },
  {
    name: "a call of a connector's HTTP API",
    hasList: true,
    reach: (host, network, allowHosts) =>
      makeServers(allowHosts, 20_000, network).pipe(
        Effect.flatMap((servers) =>
          Effect.result(servers.call(server(host), { kind: "http", request: OPERATION, arguments: {} })),
        ),
        Effect.scoped,
        Effect.runPromise,
        async (result) => why(host, (await result) as { failure?: { why: string } }),
      ),
  },
  {
    name: "the list of an MCP server",
    hasList: true,
    reach: (host, network, allowHosts) =>
      makeServers(allowHosts, 20_000, network).pipe(
        Effect.flatMap((servers) => Effect.result(servers.list(server(host)))),
        Effect.scoped,
        Effect.runPromise,
        async (result) => why(host, (await result) as { failure?: { why: string } }),
      ),
  },
  {
    name: "the sign-in to a connector",
    hasList: true,
    reach: async (host, network, allowHosts) => {
      const client = new NetClient(clientOptions(allowHosts, network));
      const said = await failure(makeAsk({ client })(`https://${host}/token`));
      await client.close();
      return said;
    },
  },
  {
    name: "a code host",
    hasList: true,
    reach: (host, network, allowHosts) =>
      makeWire(allowHosts, network).pipe(
        Effect.flatMap((wire) =>
          Effect.result(
            wire({
              method: "GET",
              url: `https://${host}/user`,
              headers: {},
              body: null,
              maxBytes: 10,
              deadlineMs: 20_000,
            }),
          ),
        ),
        Effect.scoped,
        Effect.runPromise,
        async (result) => why(host, (await result) as { failure?: { why: string } }),
      ),
  },
  ...(["https", "ssh"] as const).map((scheme): Caller => ({
    name: `git over ${scheme}`,
    hasList: true,
    reach: (host, network, allowHosts) =>
      failure(Effect.runPromise(checkRemote(`${scheme}://${host}/a.git`, { allowHosts, ...network }))),
  })),
  {
    name: "an import",
    hasList: true,
    reach: (host, network, allowHosts) =>
      failure(Effect.runPromise(checkSource(`https://${host}/a.git`, { allowHosts, ...network }))),
  },
  {
    name: "the sender of webhooks",
    hasList: true,
    reach: (host, network, allowHosts) =>
      makeSender({ allowHosts, network }).pipe(
        Effect.flatMap((send) => send({ url: `https://${host}/hook`, headers: {}, body: "{}" })),
        Effect.scoped,
        Effect.runPromise,
        async (answer) => `${host} ${(await answer).error ?? ""}`,
      ),
  },
];

/** Git dials a single address itself. */
const dialsItself = (caller: Caller, { dialled }: Case): boolean =>
  /^git|^an import/.test(caller.name) && dialled.length === 1;

const attempts = CALLERS.flatMap((caller) =>
  [...REFUSED, ...DIALLED, ...UNLISTED, ...(caller.hasList ? LISTED : [])].map(
    (attempt) => [caller.name, attempt.host, JSON.stringify(attempt.answers), { caller, attempt }] as const,
  ),
);

test.each(attempts)("%s to %s, which resolves to %s [G03] [K08] [X04]", async (...row) => {
  const { caller, attempt } = row[3];
  const network = new NetworkDouble(attempt.answers);
  const said = await caller.reach(attempt.host, network, [INSIDE]);
  expect(said).toMatch(dialsItself(caller, attempt) ? /^$/ : attempt.says);
  const addresses = dialsItself(caller, attempt) ? [] : attempt.dialled;
  expect(network.dialled.map((place) => place.replace(/:\d+$/, ""))).toEqual(addresses);
});
